"""The nltk annotator: NLTK's tags, the lemmas of NLTK's WordNet, errors that name the missing resource."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys

import pytest
from nltk.tag.perceptron import PerceptronTagger

from jacana_torch import resources
from jacana_torch.annotate import tokens as tokens_module
from jacana_torch.annotate.nltk import NltkAnnotator
from jacana_torch.annotate.tokens import lemmas, lower_case, wordnet_pos
from jacana_torch.errors import MissingResource
from jacana_torch.resources import store
from jacana_torch.types import Sentence, SentencePair

SOURCE = Sentence(tuple("Two geese were n't running -LRB- they 're the mayor ’s worst hens -RRB- .".split()))
TARGET = Sentence(("The", "goose", "ran", "."))
PAIR = SentencePair(SOURCE, TARGET, "7")

needs_tagger = pytest.mark.skipif(not resources.available("tagger"), reason="the tagger is not installed")
needs_wordnet = pytest.mark.skipif(not resources.available("wordnet"), reason="WordNet is not installed")


def nltk_tags(tokens) -> tuple[str, ...]:
    read = resources.tagger_weights()
    tagger = PerceptronTagger(load=False)
    tagger.model.weights, tagger.tagdict = read.weights, read.tagdict
    tagger.classes = tagger.model.classes = set(read.classes)
    return tuple(tag for _, tag in tagger.tag(list(tokens)))


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without any resources."""
    monkeypatch.setenv("JACANA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NLTK_DATA", raising=False)
    if resources.available("wordnet") or resources.available("tagger"):
        pytest.skip("NLTK's data lie in a place of the whole machine")


@needs_tagger
@needs_wordnet
def test_tags_and_lemmas():
    done = NltkAnnotator()([PAIR])[0]
    assert done.source.layer("pos") == nltk_tags(SOURCE.tokens)
    assert done.target.layer("pos") == nltk_tags(TARGET.tokens)
    assert done.target.layer("lemma")[:2] == ("the", "goose")
    lemma_of = dict(zip(SOURCE.tokens, done.source.layer("lemma"), strict=True))
    expected = {
        "geese": "goose",
        "were": "be",
        "n't": "not",
        "running": "run",
        "-LRB-": "(",
        "'re": "be",
        "hens": "hen",
    }
    assert {token: lemma_of[token] for token in expected} == expected
    assert done.id == "7" and not PAIR.source.layers


@needs_tagger
def test_unescaped_tags():
    done = NltkAnnotator(lemmas=False, unescape=True)([PAIR])[0]
    assert done.source.tokens == SOURCE.tokens
    tokens = [{"-LRB-": "(", "-RRB-": ")", "’s": "'s"}.get(token, token) for token in SOURCE.tokens]
    assert done.source.layer("pos") == nltk_tags(tokens) != nltk_tags(SOURCE.tokens)


@needs_wordnet
def test_given_tags_make_the_lemmas():
    tagged = Sentence(("saws", "saws", "left"), {"pos": ("NNS", "VBZ", "JJ")})
    noun = Sentence(("lives", "lives", "taller"), {"pos": ("NNS", "VBZ", "JJR")})
    done = NltkAnnotator()([SentencePair(tagged, noun)])[0]
    assert done.source.layer("pos") == ("NNS", "VBZ", "JJ")
    assert done.source.layer("lemma") == ("saw", "saw", "left")
    assert done.target.layer("lemma") == ("life", "live", "tall")


@needs_wordnet
def test_lemmas_do_not_depend_on_earlier_calls(monkeypatch):
    sentences = [["Geese", "were", "saws"], ["saws", "geese"], [], ["n't", "wo", "wo", "'s", "\ud800", ""]]
    tags = [["NNS", "VBD", "NNS"], ["VBZ", "NNS"], [], ["RB", "MD", "NN", "VBZ", "NN", "NN"]]
    expected = [("goose", "be", "saw"), ("saw", "goose"), (), ("not", "will", "wo", "be", "\ud800", "")]
    monkeypatch.setattr(tokens_module, "_CACHED_LEMMAS", 3)
    assert lemmas(sentences, tags) == expected
    known = tokens_module._known_lemmas[resources.wordnet()]
    for sentence, of_words, right in zip(sentences, tags, expected, strict=True):
        assert lemmas([sentence], [of_words]) == [right]
        assert len(known) <= 3 + len(sentence)


@needs_tagger
@needs_wordnet
def test_overwriting_replaces_tags_and_lemmas():
    tagged = Sentence(("The", "geese"), {"pos": ("X", "X"), "lemma": ("x", "x")})
    done = NltkAnnotator(overwrite=True)([SentencePair(tagged, tagged)])[0]
    assert done.source.layer("pos") == nltk_tags(tagged.tokens) != ("X", "X")
    assert done.source.layer("lemma") == ("the", "goose")


def test_wordnet_pos():
    tags = {
        "NN": "n",
        "NNPS": "n",
        "VBZ": "v",
        "MD": None,
        "JJR": "a",
        "RB": "r",
        "RP": None,
        "WRB": None,
        "": None,
    }
    assert {tag: wordnet_pos(tag) for tag in tags} == tags


def test_lower_case():
    assert lower_case(("-LRB-", "The", "“", "İT")) == ("(", "the", '"', "İT".lower())


def test_missing_resources_are_named(nowhere):
    with pytest.raises(MissingResource, match="wordnet.*lemmas=false"):
        NltkAnnotator()([PAIR])
    with pytest.raises(MissingResource, match="tagger"):
        NltkAnnotator(lemmas=False)([PAIR])


@needs_tagger
def test_odd_sentences():
    odd = [Sentence(()), Sentence(("x",) * 3000), Sentence(("\u0301", "👩\u200d💻", "a\u00a0b", "\ud7ff", "-"))]
    done = NltkAnnotator(lemmas=False)([SentencePair(s, s) for s in odd])
    for sentence, pair in zip(odd, done, strict=True):
        assert pair.source.layer("pos") == nltk_tags(sentence.tokens)


@needs_tagger
@needs_wordnet
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_worker_reads_nothing_again(monkeypatch):
    annotator = NltkAnnotator()
    expected = annotator([PAIR])

    def refuse(*_):
        raise AssertionError("a worker looks for, or opens, what its parent has")

    for module, function in ((store, "open_arrays"), (resources, "find")):
        monkeypatch.setattr(module, function, refuse)  # what is compiled is opened through these
    with multiprocessing.get_context("fork").Pool(1) as workers:
        assert workers.apply_async(annotator, ([PAIR],)).get(timeout=60) == expected
    assert len(pickle.dumps(annotator)) < 300


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, jacana_torch.annotate.nltk, jacana_torch.annotate.spacy, jacana_torch.annotate.given, "
        "jacana_torch.annotate.tokens; "
        "print([m for m in ('torch', 'spacy', 'nltk', 'scipy', 'numpy', 'hydra') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
