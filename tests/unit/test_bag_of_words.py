"""The bag-of-words baseline against its formulas, and its counts."""

from __future__ import annotations

import math

import msr_dev
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.errors import ConfigError, CorpusError, MissingLayer, ModelError
from jacana_torch.evaluate import score
from jacana_torch.systems import bag_of_words as module
from jacana_torch.systems.bag_of_words import BagOfWords
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

lemmas = st.lists(st.text("abc", min_size=1, max_size=5), max_size=7)


def sentence(words) -> Sentence:
    words = words.split() if isinstance(words, str) else words
    return Sentence(tuple(words), {"lemma": [word.lower() for word in words]})


def pair(source, target) -> SentencePair:
    return SentencePair(sentence(source), sentence(target))


def edits(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


def similarity(a: str, b: str) -> float:
    return 1 - edits(a, b) / max(len(a), len(b))


def place(k: int, n: int) -> float:
    return (k + 0.5) / n


@given(lemmas, lemmas, st.sampled_from(module.TIES), st.sampled_from([0.0, 0.4]))
def test_every_word_is_aligned_to_the_most_similar_one(source, target, ties, least):
    (found,) = BagOfWords(ties=ties, least=least).align([pair(source, target)])
    assert len({j for _, j in found.sure}) == len(found.sure)
    linked = {j: i for i, j in found.sure}
    total = 0.0
    for j, word in enumerate(target):
        alike = [similarity(word, other) for other in source]
        highest = max(alike, default=0.0)
        total += math.log(max(highest, 0.01))
        assert (j in linked) == (bool(source) and highest >= least - 1e-12)
        if j in linked:
            equals = [i for i, value in enumerate(alike) if value > highest - 1e-12]
            distance = {i: abs(place(i, len(source)) - place(j, len(target))) for i in equals}
            nearest = next(i for i in equals if distance[i] < min(distance.values()) + 1e-12)
            assert linked[j] == {"nearest": nearest, "first": equals[0], "last": equals[-1]}[ties]
    assert found.score == pytest.approx(total / max(len(target), 1))


def test_long_pairs_are_compared_in_parts(monkeypatch):
    one = pair("an owl saw an eel and an elk", "elks and owls and an eel saw an ant")
    whole = BagOfWords().align([one])
    monkeypatch.setattr(module, "CELLS_AT_ONCE", 17)
    parts = BagOfWords().align([one])
    assert parts == whole and parts[0].score == whole[0].score


def test_rare_words_weigh_more_once_counted():
    texts = [("the owl", "the elk"), ("the eel", "the ant"), ("the owl the owl", "a crow")]
    examples = [Example(p, Alignment(len(p.source), len(p.target))) for p in (pair(*text) for text in texts)]
    aligner = BagOfWords()
    asked = pair("the owls", "the owl")
    assert aligner.align([asked])[0].score == pytest.approx(math.log(3 / 4) / 2)
    assert aligner.state() == {}
    aligner.fit(examples)
    idf = math.log((6 + 1) / (2 + 1))  # six sentences, two of which hold an owl
    assert aligner.align([asked])[0].score == pytest.approx(idf * math.log(3 / 4) / 2)
    unseen = math.log(7)
    assert aligner.align([pair("crab", "crow")])[0].score == pytest.approx(math.log(7 / 2) * math.log(0.5))
    assert aligner.align([pair("lynx", "lion")])[0].score == pytest.approx(unseen * math.log(0.25))
    other = BagOfWords()
    other.restore(aligner.state())
    assert other.align([asked])[0].score == aligner.align([asked])[0].score
    with pytest.raises(ModelError, match="1 counts for 2"):
        other.restore({**aligner.state(), "words": ["a", "b"], "counts": aligner.state()["counts"][:1]})
    other.restore({})
    assert other.align([asked])[0].score == pytest.approx(math.log(3 / 4) / 2)


def test_frequencies_come_from_a_file(tmp_path):
    file = tmp_path / "counts.txt"
    file.write_text("The 90\nowl\t9\n\n", encoding="utf-8")
    score = math.log(100 / 10) * math.log(3 / 4) / 2
    asked = pair("the owls", "the owl")
    assert BagOfWords(frequencies=str(file)).align([asked])[0].score == pytest.approx(score)
    aligner = BagOfWords(frequencies=str(file))
    aligner.fit([])
    file.unlink()  # what was counted is kept
    kept = BagOfWords(frequencies=str(file))
    kept.restore(aligner.state())
    assert kept.align([asked])[0].score == pytest.approx(score)


@pytest.mark.parametrize(
    ("text", "told"),
    [("owl 9\nelk\n", ":2:.*'elk'"), ("owl -1\n", ":1:"), ("\n", "no word"), (None, "counts.txt")],
)
def test_invalid_frequencies_are_errors(text, told, tmp_path):
    file = tmp_path / "counts.txt"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=told):
        BagOfWords(frequencies=str(file)).align([pair("owl", "owl")])


def test_invalid_input_is_an_error():
    for kw in ({"ties": "best"}, {"least": 1.5}, {"floor": 0.0}):
        with pytest.raises(ConfigError, match=next(iter(kw))):
            BagOfWords(**kw)
    with pytest.raises(MissingLayer, match="lemma"):
        BagOfWords().align([SentencePair(Sentence(("owl",)), Sentence(("owl",)))])


def test_msr_dev(data_root):
    dev = msr_dev.examples(data_root)
    found = score([e.gold for e in dev], BagOfWords().align([e.pair for e in dev]))
    assert abs(found.f1 - 0.675) < 0.03 and 0.025 < found.exact < 0.05
