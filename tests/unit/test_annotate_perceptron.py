"""The lock-step tagger against NLTK's own PerceptronTagger: the same tag for every token of every sentence."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tag.perceptron import PerceptronTagger

from jacana_torch import resources
from jacana_torch.annotate import perceptron
from jacana_torch.annotate.perceptron import LockstepTagger
from jacana_torch.resources.build import Writer
from jacana_torch.resources.tagger_files import TaggerWeights, compile_tagger

SENTENCES = [
    "The ferry left Kowloon at 10:30 , and nobody waved .",
    "In 1987 the co-owner , a 45-year-old , sold 3,000 shares for $ 12.50 each .",
    "-LRB- She did n't say when -- or whether -- they would -RRB-",
    "`` Mind the - gap '' , 2004 ²³ half-½ ٣٤٥٦ -5 !",
    "naïve Zoë 👍🏽 's İstanbul trip cost €40 -START- -START2- -END- bias",
    "",
    "the the the the the the",
    "x",
]
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
TRAINING = [
    [("the", "DT"), ("ferry", "NN"), ("left", "VBD"), (".", ".")],
    [("she", "PRP"), ("left", "VBD"), ("the", "DT"), ("left", "JJ"), ("shoe", "NN"), ("at", "IN"), ("10", "CD")],
    [("co-owners", "NNS"), ("left", "VBN"), ("in", "IN"), ("1987", "CD"), ("did", "VBD"), ("n't", "RB")],
    [("a", "DT"), ("left", "NN"), ("-", ":"), ("hand", "NN"), ("turn", "NN"), ("turns", "VBZ"), ("the", "DT")],
] * 30


def lockstep(weights, tagdict, classes) -> LockstepTagger:
    writer = Writer(None)
    compile_tagger(TaggerWeights(weights, tagdict, tuple(classes)), writer)
    return LockstepTagger(writer.finish())


def theirs(weights, tagdict, classes) -> PerceptronTagger:
    tagger = PerceptronTagger(load=False)
    tagger.model.weights, tagger.tagdict = weights, tagdict
    tagger.classes = tagger.model.classes = set(classes)
    return tagger


def assert_same(parts, sentences) -> None:
    """Compare tags, of all sentences in one batch and of each alone. `parts`: weights, tagdict and classes."""
    ours, nltk = lockstep(*parts), theirs(*parts)
    expected = [tuple(tag for _, tag in nltk.tag(list(sentence))) for sentence in sentences]
    together = ours.tag(sentences)
    assert len(together) == len(sentences)
    for sentence, tags, alone, right in zip(
        sentences, together, (ours.tag([s])[0] for s in sentences), expected, strict=True
    ):
        assert tags == right, sentence
        assert alone == right, sentence


@pytest.fixture(scope="module")
def trained():
    random.seed(5)  # NLTK shuffles with the global generator
    tagger = PerceptronTagger(load=False)
    tagger.train(TRAINING, nr_iter=5)
    assert tagger.tagdict and any(word not in tagger.tagdict for s in TRAINING for word, _ in s)
    return tagger.model.weights, tagger.tagdict, tagger.classes


@pytest.fixture(scope="module")
def real():
    if not resources.available("tagger"):
        pytest.skip("the tagger's weights are not installed: jacana-torch resources install tagger")
    read = resources.tagger_weights()
    return read.weights, read.tagdict, read.classes


def test_trained_weights(trained):
    shuffled = random.Random(1)
    more = [[shuffled.choice(WORDS + ["left", "shoe", "ferry"]) for _ in range(n)] for n in range(1, 60)]
    assert_same(trained, [sentence.split() for sentence in SENTENCES] + more)


TAGS = ("NN", "VB", "DT", "``")
FEATURES = st.one_of(
    st.just("bias"),
    st.builds("i suffix {}".format, st.sampled_from(["ab", "b", "-"])),
    st.builds("i pref1 {}".format, st.sampled_from("ab1-")),
    st.builds("{} {}".format, st.sampled_from(["i-1 tag", "i-2 tag"]), st.sampled_from((*TAGS, "-START-"))),
    st.builds(
        "i tag+i-2 tag {} {}".format, st.sampled_from(TAGS), st.sampled_from((*TAGS, "-START-", "-START2-"))
    ),
    st.builds(
        "i-1 tag+i word {} {}".format,
        st.sampled_from((*TAGS, "-START-")),
        st.sampled_from(["a", "b", "a b", "!YEAR", "!HYPHEN"]),
    ),
    st.builds(
        "{} {}".format,
        st.sampled_from(["i word", "i-1 word", "i-2 word", "i+1 word", "i+2 word", "i-1 suffix", "i+1 suffix"]),
        st.sampled_from(["a", "b", "a b", "!YEAR", "!DIGITS", "-START-", "RT-", "-END-", "ND-", "-END2-", "D2-"]),
    ),
)
# 0.1 + 0.2 - 0.3 and the like: sums that tie on paper and are parted by rounding, in the order of addition
WEIGHTS = st.dictionaries(st.sampled_from(TAGS), st.sampled_from([0.1, 0.2, 0.3, -0.1, -0.2, -0.3, 0.7, 1.0, 0.0]))
TOKENS = st.sampled_from(["a", "b", "A", "ab", "a b", "1999", "12", "a-b", "-", "-b", "²", "1999x", "forced", ""])


@given(
    st.dictionaries(FEATURES, WEIGHTS, max_size=30),
    st.lists(st.lists(TOKENS, max_size=12), max_size=6),
    st.dictionaries(st.sampled_from(["forced", "a"]), st.sampled_from((*TAGS, "OTHER", ""))),
)
def test_any_weights_with_ties(weights, sentences, tagdict):
    assert_same((weights, tagdict, TAGS), sentences)


@pytest.mark.parametrize(
    ("up", "down"),
    [
        ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)),  # equal when the words' scores are added first
        ((0.1, 0.1, 0.4), (0.1, 0.4, 0.1)),  # the lower is then the greater
        ((1e5, 1e5, 4e5), (1e5, 4e5, 1e5)),
        ((0.11e5, 0.31e5, 0.87e5), (0.31e5, 0.87e5, 0.11e5)),
    ],
)
def test_rounding_decides_ties_as_in_nltk(up, down):
    """NLTK adds (bias + tag) + next word; the lock-step tagger adds (bias + next word) + tag."""
    features = ("bias", "i-1 tag -START-", "i+2 word b")
    for better, other in (("NN", "VB"), ("VB", "NN")):
        weights = {f: {better: high, other: low} for f, high, low in zip(features, up, down, strict=True)}
        assert_same((weights, {}, TAGS), [["a", "x", "b"]])
        if sum(up) > sum(down):
            assert lockstep(weights, {}, TAGS).tag([["a", "x", "b"]])[0][0] == better


def test_every_unicode_token(trained):
    @given(st.lists(st.lists(st.text(min_size=1, max_size=6), max_size=8), max_size=4))
    def check(sentences):
        assert_same(trained, sentences)

    check()


def test_batches_and_the_cache_change_nothing(trained, monkeypatch):
    generator = random.Random(3)
    sentences = [[generator.choice(WORDS) for _ in range(generator.randrange(30))] for _ in range(80)]
    sentences += [[f"w{k}{generator.choice('abc')}" for k in range(10 * n, 10 * n + 10)] for n in range(60)]
    sentences.append([f"v{k}" for k in range(500)])
    generator.shuffle(sentences)
    expected = lockstep(*trained).tag(sentences)
    monkeypatch.setattr(perceptron, "_TOKENS_AT_ONCE", 50)
    monkeypatch.setattr(perceptron, "_CACHED_WORDS", 100)
    tagger = lockstep(*trained)
    for at, sentence in enumerate(sentences):
        assert tagger.tag([sentence]) == [expected[at]]
        assert len(tagger._ids) <= len(tagger._rows) <= max(100, len(sentence)) + 4
    assert lockstep(*trained).tag(sentences) == expected
    assert tagger.tag([]) == [] and tagger.tag([[], []]) == [(), ()]


def test_real_weights(real):
    generator = random.Random(11)
    vocabulary = [*WORDS, *generator.sample(sorted(real[1]), 300)]
    for feature in generator.sample(sorted(real[0]), 2000):
        vocabulary += feature.split(" ")[2:]
    mixed = [[generator.choice(vocabulary) for _ in range(generator.randrange(1, 40))] for _ in range(400)]
    long = [[generator.choice(vocabulary) for _ in range(3000)]]
    assert_same(real, [sentence.split() for sentence in SENTENCES] + mixed + long)


def test_real_weights_on_any_text(real):
    """Sentences of any characters and English words, in one tagger with a cache."""
    ours, nltk = lockstep(*real), theirs(*real)
    words = st.text(min_size=1, max_size=6) | st.sampled_from(WORDS) | st.sampled_from(sorted(real[1]))

    @given(st.lists(st.lists(words, max_size=10), max_size=4))
    def check(sentences):
        assert ours.tag(sentences) == [tuple(tag for _, tag in nltk.tag(list(sentence))) for sentence in sentences]

    check()


@pytest.mark.parametrize("corpus", ["msr/dev.jsonl", "edinburgh/train.jsonl"])
@pytest.mark.slow
def test_real_weights_on_the_corpora(real, data_root, corpus):
    lines = (data_root / corpus).read_text(encoding="utf-8").splitlines()
    sentences = [row[side] for row in map(json.loads, lines) for side in ("source", "target")]
    assert len(sentences) > 1000 and all(isinstance(sentence, list) for sentence in sentences)
    assert_same(real, sentences)
