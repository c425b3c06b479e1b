"""MANLI-Exact: the effects of its constraints over a parse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jacana_torch.systems.manli.manli import ManliExact
from jacana_torch.types import Sentence, SentencePair

QUICK = {"wordnet": False, "vectors": None, "max_phrase": 2}


def test_each_constraint_can_be_switched_off():
    both = (True, False)
    requires = {(m, k): ManliExact(modifier=m, lineage=k).requires for m in both for k in both}
    assert requires.pop((False, False)) == ("lemma", "pos")
    assert set(requires.values()) == {("head", "lemma", "pos")}


def links(aligner, pair, **switches):
    other = ManliExact(**QUICK, **{"modifier": False, "lineage": False, **switches})
    other.restore(aligner.state())
    return other.align([pair])[0].sure


def test_function_words_are_aligned_only_together_with_their_supporters():
    words = {"pos": ("DT", "NN", "IN"), "head": (1, -1, 1)}
    source = Sentence(("the", "lamp", "of"), {**words, "lemma": ("the", "lamp", "of")})
    target = Sentence(("the", "boat", "of"), {**words, "lemma": ("the", "boat", "of")})
    pair = SentencePair(source, target)
    aligner = ManliExact(**QUICK)
    names = aligner.extract.columns.names
    weights = np.zeros(len(names))
    for name, value in {"type.EQ": 1.0, "type.SUB": -9.0, "size.2x2": -9.0}.items():
        weights[names.index(name)] = value
    aligner.restore({"names": list(names), "weights": weights})
    assert links(aligner, pair) == {(0, 0), (2, 2)}
    assert links(aligner, pair, modifier=True) == {(2, 2)}
    assert links(aligner, pair, lineage=True) == {(0, 0)}
    assert links(aligner, pair, modifier=True, lineage=True) == set()
    related = replace(pair, target=replace(target, tokens=source.tokens, layers=source.layers))
    assert links(aligner, related, modifier=True, lineage=True) == {(0, 0), (1, 1), (2, 2)}


def test_a_loss_is_accepted_if_it_permits_a_larger_gain():
    """Aligning the nouns costs 1.5, and permits links of two words that gain 1 each."""
    words = {"pos": ("DT", "CD", "NN"), "head": (2, 2, -1)}
    source = Sentence(("the", "two", "lamps"), {**words, "lemma": ("the", "two", "lamps")})
    target = Sentence(("the", "two", "boats"), {**words, "lemma": ("the", "two", "boats")})
    aligner = ManliExact(**QUICK)
    names = aligner.extract.columns.names
    for cost, expected in ((1.5, {(0, 0), (1, 1), (2, 2)}), (2.5, set())):
        values = {"type.EQ": 1.0, "type.SUB": -cost, **dict.fromkeys(("size.1x2", "size.2x1", "size.2x2"), -9.0)}
        weights = np.array([values.get(name, 0.0) for name in names])
        aligner.restore({"names": list(names), "weights": weights})
        assert links(aligner, SentencePair(source, target), modifier=True) == expected
