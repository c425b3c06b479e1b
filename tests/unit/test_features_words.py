"""Words, what is computed of each, and pairs of words in grids: against the words themselves, one by one."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from operator import itemgetter

import numpy as np
import pytest
from feature_twin import Bases, random_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.annotate.tokens import matching_form
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.pos import TAG, Pos
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import (
    FORM,
    base_similarity,
    best_measure,
)
from jacana_torch.features.words import Lexicon, Signal, WordKey, WordPairs, numbered
from jacana_torch.types import Sentence, SentencePair

words = st.lists(st.text("abcAB'é", max_size=3), unique=True, max_size=12)
LEMMA = WordKey(matching_form, ("lemma", "pos"))
KEYS = (FORM, TAG, LEMMA, WordKey(str))


@given(st.lists(st.sampled_from(["a", "b", "", ("a", "b"), None, 1])))
def test_values_are_numbered_in_order_of_first_appearance(values):
    distinct, number = numbered(iter(values))
    assert [distinct[k] if k >= 0 else None for k in number] == values
    assert distinct == [v for v in dict.fromkeys(values) if v is not None] and number.dtype == np.int64


@given(words)
def test_attributes_are_computed_once_of_all_words(found):
    lexicon, calls = Lexicon(found), []

    def figures(of: Sequence[str]) -> list[list[int]]:
        calls.append(list(of))
        return [[len(w), sum(map(ord, w))] for w in of]

    for _ in range(2):
        assert lexicon.attribute("figures", figures).tolist() == [[len(w), sum(map(ord, w))] for w in found]
    assert calls == [found] and len(lexicon) == len(found)


@given(words)
def test_names_and_codes(found):
    lexicon = Lexicon(found)

    def name(word: str) -> str | None:
        return f"{word[0]}-" if len(word) > 1 else None

    def code(word: str) -> str | None:
        return {0: "", 1: None, 3: ""}.get(len(word), word[:1])

    names, number = lexicon.named("x", lambda of: [name(w) for w in of])
    assert [names[k] if k >= 0 else None for k in number] == [name(w) for w in found]
    assert len(set(names)) == len(names) and set(names) == {n for w in found if (n := name(w))}
    codes = lexicon.codes("x", lambda of: [code(w) for w in of])
    for (i, one), (j, other) in product(enumerate(found), repeat=2):
        assert (codes[i] == codes[j]) == (i == j or bool(code(one)) and code(one) == code(other))


def test_no_words():
    lexicon = Lexicon([])
    assert lexicon.codes("code", list).dtype == np.int64 and lexicon.named("name", list)[1].dtype == np.int64
    assert not len(lexicon.attribute("length", lambda of: [len(w) for w in of]))
    nothing = np.zeros(0, dtype=np.int64)
    assert not len(WordPairs(lexicon, nothing, nothing).both("yes", lambda of: [True for _ in of]))


def test_pairs_of_what_is_made_of_words():
    """Seen from either side; what is shared between the two is computed once."""
    lexicon = Lexicon([("a", "x"), ("b", "x"), ("a", "y")])
    pairs = WordPairs(lexicon, np.array([0, 1, 2]), np.array([2, 1, 1]))
    back, calls = pairs.flipped(), []
    for one, swapped in ((back, True), (pairs, False), (back.flipped(), False)):
        assert one.swapped == swapped and len(one) == 3
        first = one.mapped("first", itemgetter(0))
        made = first.lexicon.words
        pairs_of_first = [(made[a], made[b]) for a, b in zip(first.left, first.right, strict=True)]
        own = [("a", "a"), ("b", "b"), ("a", "b")]
        assert pairs_of_first == ([x[::-1] for x in own] if swapped else own) and first.swapped == swapped
        assert one.shared("x", lambda: calls.append(1) or len(calls)) == 1
        assert first.equal("same", list).tolist() == [True, True, False]
        assert first.both("b", lambda of: [w == "b" for w in of]).tolist() == [False, True, False]
    assert pairs.mapped("first", itemgetter(0)).lexicon is back.mapped("first", itemgetter(0)).lexicon


# In grids


def number(left: object, right: object, k: int) -> float:
    """A different number for any two words, and for the other order of them."""
    return sum(ord(c) * (i + k) for i, c in enumerate(f"{left}|{right}", start=1)) % 1009


def made(k: int, key: WordKey, asked: list | None = None) -> Signal:
    def compute(pairs: WordPairs) -> np.ndarray:
        of = pairs.lexicon.words
        both = [(of[a], of[b]) for a, b in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]
        if asked is not None:
            asked.extend(both)
        return np.array([number(a, b, k) for a, b in both])

    return Signal(("made", k), key, compute)


def words_of(pair: SentencePair, key: WordKey) -> tuple[list, list]:
    def of(sentence) -> list:
        layers = [sentence.layer(name) for name in key.layers]
        if key.form is None:
            return list(zip(*layers, strict=True))
        forms = [key.form(t) for t in sentence.tokens]
        return list(zip(forms, *layers, strict=True)) if layers else forms

    return of(pair.source), of(pair.target)


def expected(pairs: list[SentencePair], k: int, key: WordKey) -> list[float]:
    return [number(a, b, k) for x in pairs for a in words_of(x, key)[0] for b in words_of(x, key)[1]]


seeds = st.integers(0, 10**6)


def test_a_key_takes_the_token_its_form_or_layers_alone():
    sentences = [
        Sentence(("A", "b"), {"pos": ("NN", "VB"), "lemma": ("a", "be")}),
        Sentence((), {"pos": (), "lemma": ()}),
    ]

    def words(key: WordKey, count: int = 1) -> list[object]:
        distinct, number = key.words(sentences * count, {})
        assert len(set(distinct)) == len(distinct)
        return [distinct[k] for k in number]

    assert words(WordKey(str)) == ["A", "b"]
    assert words(WordKey(str.lower), 2) == ["a", "b"] * 2
    assert words(WordKey(lambda token: "")) == ["", ""]
    assert words(WordKey(str.lower, ("pos", "lemma"))) == [("a", "NN", "a"), ("b", "VB", "be")]
    assert words(WordKey(None, ("pos",)), 2) == [("NN",), ("VB",)] * 2


@given(seeds, st.sampled_from(KEYS))
def test_signals_are_those_of_the_words_of_each_cell(seed, key):
    pairs, asked = random_pairs(seed, 3), []
    grid = Grid(pairs)
    for _ in range(2):
        assert grid.per_cell(made(1, key, asked)).tolist() == expected(pairs, 1, key)
        assert grid.per_cell(made(2, key)).tolist() == expected(pairs, 2, key)
    assert len(asked) == len(set(asked))  # each distinct pair once


@given(seeds)
def test_signals_of_the_families(seed):
    pairs = random_pairs(seed, 3)
    base = [v for x in pairs for row in Bases(x).base for v in row]
    assert Grid(pairs).per_cell(base_similarity) == pytest.approx(base, abs=1e-7)


@given(seeds, st.booleans(), st.sampled_from(KEYS))
def test_flipped_grids(seed, flipped_first, key):
    """A directed signal takes its words in the order of the flipped grid, any other in that of the grid itself."""
    pairs = random_pairs(seed, 3)
    grid = Grid(pairs)
    other, back = grid.flipped(), [x.flip() for x in pairs]
    sides = [(grid, pairs), (other, back)]
    for one, own in reversed(sides) if flipped_first else sides:
        assert one.per_cell(made(1, key), directed=True).tolist() == expected(own, 1, key)
    assert other.per_cell(best_measure).tolist() == Grid(back).per_cell(best_measure).tolist()
    there = dict(zip(zip(grid.pair, grid.n, grid.m, strict=True), grid.per_cell(made(2, key)), strict=True))
    undirected = other.per_cell(made(2, key))
    assert undirected.tolist() == [there[cell] for cell in zip(other.pair, other.m, other.n, strict=True)]


def test_a_grid_flipped_twice_is_itself():
    pairs = random_pairs(11, 3)
    twice = Grid(pairs).flipped().flipped()
    assert twice.per_cell(made(1, FORM), directed=True).tolist() == expected(pairs, 1, FORM)
    assert not twice.is_flipped


def test_parts_and_both_directions_compute_each_pair_of_words_once():
    pairs, asked = random_pairs(5, 12), []
    grid, signal = Grid(pairs), made(1, FORM, asked)
    for one in (grid.flipped(), grid):
        one.per_cell(signal)
        for _, part in one.parts():
            part.per_cell(signal)
            part.flipped().per_cell(signal)
    found = {(a, b) for x in pairs for a in words_of(x, FORM)[0] for b in words_of(x, FORM)[1]}
    assert len(asked) == len(set(asked)) and set(asked) == found


def test_nothing_is_kept_of_a_grid():
    """Also without the cyclic garbage collector: batches follow one another faster than it runs."""
    pairs = random_pairs(3, 6)
    gc.disable()
    try:
        grid = Grid(pairs)
        back = grid.flipped()
        parts = [part for _, part in grid.parts()]
        for one in (grid, back, *parts, *(part.flipped() for part in parts)):
            for family in (String(), Context(), Pos()):
                blocks_of(family, one)
            assert len(one.words(FORM).cell) == one.n_cells
        gone = [weakref.ref(x) for x in (grid, back, *parts, grid.words(FORM), grid.words(FORM).lexicon)]
        del grid, back, parts, one
        assert not any(found() for found in gone)
    finally:
        gc.enable()


def test_threads_compute_what_one_does_alone():
    families = String(), Context(), Pos()
    signals = (
        base_similarity,
        best_measure,
        made(2, LEMMA),
    )
    streams = [[random_pairs(10 * k + j, 3) for j in range(4)] for k in range(4)]

    def run(stream: list[list[SentencePair]]) -> list:
        found = []
        for grid in map(Grid, stream):
            found += [grid.per_cell(signal).tolist() for signal in signals]
            for family in families:
                blocks = blocks_of(family, grid)
                found += [block.dense().tolist() for block in (*blocks.link, *blocks.null)]
        return found

    alone = [run(stream) for stream in streams]
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(run, streams)) == alone
    finally:
        sys.setswitchinterval(before)
