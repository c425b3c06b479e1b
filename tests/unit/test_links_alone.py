"""Links without confidences are the same links; alignments made without checks equal checked ones."""

from __future__ import annotations

import pickle

import pytest
from feature_twin import random_pairs
from hypothesis import given
from hypothesis import strategies as st
from test_together import trained
from variants import variants

from jacana_torch.model.model import Model
from jacana_torch.types import Alignment, Example, Sentence, SentencePair, trusted


def checked(a: Alignment) -> Alignment:
    return Alignment(a.n_source, a.n_target, a.sure, a.possible, a.confidence, a.score)


@pytest.mark.parametrize("symmetrize", variants(["backward", "grow-diag-final", "forward", "union"], 2))
def test_links_alone_are_the_links_with_confidences(symmetrize):
    both, pairs = trained(), random_pairs(11, 40)
    pairs.insert(7, SentencePair(Sentence(()), Sentence(("a",))))
    whole = both.align(pairs, symmetrize)
    alone = Model(both).align(pairs, symmetrize, confidence=False)
    assert alone == whole and any(a.sure for a in alone)
    for a, b in zip(alone, whole, strict=True):
        assert not a.confidence and a.score is None
        assert b.confidence.keys() == b.sure and all(0 < p <= 1 for p in b.confidence.values())
        assert checked(b) == b and checked(a) == a
        assert all(type(i) is type(j) is int for i, j in a.sure)


def test_one_direction_too():
    one, pairs = trained().forward, random_pairs(12, 20)
    prepared = one.prepared(pairs)
    assert one.align(pairs, confidence=False) == one.decode(prepared, confidence=False) == one.decode(prepared)
    assert all(a.score is None for a in one.align(pairs, confidence=False))
    assert all(a.score < 0 for a in one.align(pairs))


def test_confidences_are_removed_if_the_aligner_always_gives_them():
    class Sure:
        requires = ()

        def align(self, pairs):
            return [Alignment(1, 1, {(0, 0)}, confidence={(0, 0): 0.5}, score=-1.0) for _ in pairs]

    (with_it,), (without,) = (Model(Sure()).align([("a", "a")], confidence=c) for c in (True, False))
    assert with_it.confidence == {(0, 0): 0.5} and with_it.score == -1.0
    assert without == with_it and not without.confidence and without.score is None


cells = st.tuples(st.integers(0, 4), st.integers(0, 6))
probabilities = st.floats(0, 1)


@given(
    st.frozensets(cells), st.frozensets(cells), st.dictionaries(cells, probabilities), st.none() | probabilities
)
def test_trusted_alignments_are_like_others(sure, possible, confidence, score):
    plain = Alignment(5, 7, sure, possible, confidence, score)
    fast = trusted(5, 7, sure, possible - sure, dict(confidence), score)
    for a in (fast, pickle.loads(pickle.dumps(plain)), plain.flip().flip()):
        assert (a, a.confidence, a.score) == (plain, confidence, score) and hash(a) == hash(plain)
        assert a.__dict__.keys() == plain.__dict__.keys()
        with pytest.raises(TypeError):
            a.confidence[(0, 0)] = 1.0
        with pytest.raises(AttributeError):
            a.score = 0.0


layers = st.sampled_from([{}, {"pos": ("A", "B")}, {"pos": ["A", "B"], "head": (1, -1)}])


@given(layers, st.none() | st.text(), st.none() | st.text())
def test_sentences_and_pairs_travel(layers, text, name):
    sentence = Sentence(["a", "b"], layers, text)
    pair = SentencePair(sentence, Sentence(()), name)
    for value in (sentence, pair, Example(pair), Example(pair, Alignment(2, 0))):
        assert pickle.loads(pickle.dumps(value)) == value
    assert sentence.tokens == ("a", "b") and set(map(type, sentence.layers.values())) <= {tuple}
    with pytest.raises(TypeError):
        sentence.layers["pos"] = ()


def test_numpy_and_torch_find_the_same_links():
    """The device "cpu" runs numpy, and "cpu:0" torch."""
    both, pairs = trained(), random_pairs(13, 40)
    pairs.insert(3, SentencePair(Sentence(("a",)), Sentence(())))
    other = trained()
    for chain in (other.forward, other.backward):
        chain.device = "cpu:0"
    for one, two in zip(both.directions(pairs), other.directions(pairs), strict=True):
        assert one == two and any(a.sure for a in one)
        for a, b in zip(one, two, strict=True):
            assert b.confidence == pytest.approx(a.confidence, abs=1e-5)
            assert b.score == pytest.approx(a.score, abs=1e-4)
    for symmetrize in ("posterior", "grow-diag-final"):
        for a, b in zip(both.align(pairs, symmetrize), other.align(pairs, symmetrize), strict=True):
            assert a == b and b.confidence == pytest.approx(a.confidence, abs=1e-6)
