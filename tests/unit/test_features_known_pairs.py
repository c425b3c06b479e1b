"""Signals that outlive a batch: never other than computed anew, however little is remembered, and bounded."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from feature_twin import random_pairs

from jacana_torch.features import words as known_pairs
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import FORM, base_similarity
from jacana_torch.features.words import KnownPairs, Signal, WordPairs
from jacana_torch.types import Sentence, SentencePair

WORDS = "the a old new boat boats Boat barn red read reading 12 12th of off well-known known".split()


def code_points(pairs: WordPairs) -> np.ndarray:
    """A signal that is not the same from either side."""
    size = pairs.lexicon.attribute("size", lambda words: np.array([sum(map(ord, word)) for word in words]))
    return size[pairs.left] * 3.0 - size[pairs.right]


DIRECTED = Signal("test.points", FORM, code_points, np.float64)


def batches(seed: int, count: int) -> list[Grid]:
    made_up = [f"{word}{seed}{k}" for k, word in enumerate(WORDS)]
    return [Grid(random_pairs(seed + k, 6, WORDS + made_up[k : k + 4], longest=9)) for k in range(count)]


def check(grids: list[Grid], known: KnownPairs) -> None:
    for grid in grids:
        again = Grid(grid.pairs)
        again.known = known
        for one, other in ((grid, again), (grid.flipped(), again.flipped())):
            for signal, directed in ((base_similarity, False), (DIRECTED, True)):
                np.testing.assert_array_equal(one.per_cell(signal, directed), other.per_cell(signal, directed))


@pytest.mark.parametrize(("bits", "most"), [(19, 1 << 15), (3, 1 << 15), (6, 5), (12, 20)])
def test_what_is_remembered_is_what_is_computed(monkeypatch, bits, most):
    monkeypatch.setattr(known_pairs, "SLOT_BITS", bits)
    monkeypatch.setattr(known_pairs, "MOST_WORDS", most)
    monkeypatch.setattr(known_pairs, "AT_ONCE", 7)
    known = KnownPairs()
    check(batches(1, 25), known)
    for table in known._tables.values():
        assert len(table.code) == 1 << bits
        assert len(table.number) <= most + 60 and len(table.seen_once) <= most + 60


def test_pairs_are_computed_once_while_they_are_remembered():
    computed = []

    def counted(pairs: WordPairs) -> np.ndarray:
        computed.append(len(pairs))
        return np.zeros(len(pairs))

    known, signal = KnownPairs(), Signal("test.counted", FORM, counted)
    for _ in range(6):
        grid = Grid(random_pairs(3, 8, WORDS, longest=9))
        grid.known = known
        grid.per_cell(signal)
    # The first batch makes the signal known, the second one the words, the third one their pairs.
    assert len(computed) == 3 and computed[0] == computed[1] == computed[2] > 50


def test_pairs_that_are_asked_for_stay_and_others_make_room(monkeypatch):
    monkeypatch.setattr(known_pairs, "SLOT_BITS", 2)  # room for four pairs
    computed: list[int] = []

    def counted(pairs: WordPairs) -> np.ndarray:
        computed[-1] += len(pairs)
        return np.zeros(len(pairs))

    known, signal = KnownPairs(), Signal("test.counted", FORM, counted)

    def ask(*pairs: tuple[str, str]) -> int:
        grid = Grid([SentencePair(Sentence((a,)), Sentence((b,))) for a, b in pairs])
        grid.known = known
        computed.append(0)
        grid.per_cell(signal)
        return computed[-1]

    frequent, later = (
        [("a", "e"), ("b", "f"), ("c", "g"), ("d", "h")],
        [("a", "f"), ("b", "g"), ("c", "h"), ("d", "e")],
    )
    assert [ask(*frequent) for _ in range(9)][-3:] == [0, 0, 0]
    others = [(a, b) for a in "abcd" for b in "efgh" if (a, b) not in frequent]
    assert [ask(*frequent, other) for other in others] == [1] * 12  # they stay, and the others find no room
    assert [ask(*later) for _ in range(12)][-3:] == [0, 0, 0]  # until they are no longer asked for


def test_threads_share_it():
    known, failures = KnownPairs(), []

    def work(seed: int) -> None:
        try:
            check(batches(seed, 8), known)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
