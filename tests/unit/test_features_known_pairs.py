"""Words and signals that outlive a batch: never other than computed anew, however little is kept, and bounded."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from feature_twin import random_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features import words as known_pairs
from jacana_torch.features.grid import Grid
from jacana_torch.features.string_similarity import FORM, base_similarity
from jacana_torch.features.words import KnownPairs, Lexicon, Signal, WordKey, WordPairs, numbered
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
        assert len(table.words._number) <= most and len(table.words._seen_once) <= most + 60


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
    # The first batch makes the signal known, the second one the pairs.
    assert len(computed) == 2 and computed[0] == computed[1] > 50


def test_a_signal_may_be_new_in_any_batch():
    known = KnownPairs()
    for k, grid in enumerate(batches(2, 8)):
        again = Grid(grid.pairs)
        again.known = known
        for n in range(k // 2 + 1):
            signal = Signal(("test.points", n), FORM, code_points, np.float64)
            np.testing.assert_array_equal(again.per_cell(signal), grid.per_cell(DIRECTED))


def lexicon_of(known: KnownPairs, words: list[Any], key: WordKey = FORM) -> Lexicon:
    """The lexicon of a batch in which each word occurs twice."""
    return known.lexicon(key, words, np.repeat(np.arange(len(words)), 2))


def first_letter(words: list[str]) -> list[str | None]:
    return [None if word.isdigit() else word[:1] for word in words]


LETTERS = st.lists(st.text("abAB1", max_size=4), unique=True, max_size=9)


COMPUTED = {
    "length": lambda words: [len(word) for word in words],
    "twice": lambda words: [word * 2 for word in words],  # an array's strings are as long as its longest
    "mixed": lambda words: [len(word) if word[:1] == "a" else 0.5 for word in words],
    "wide": lambda words: np.array([[len(word), word.count("a")] for word in words], np.int8).reshape(-1, 2),
}


@given(st.lists(LETTERS, min_size=2, max_size=6), st.sampled_from([2, 7, 1 << 14]))
def test_a_lexicon_of_known_words_equals_one_of_new_words(batches, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_pairs, "MOST_WORDS", most)
        known = KnownPairs()
        for words in batches:
            both = lexicon_of(known, words), Lexicon(words)
            for name, compute in COMPUTED.items():
                found, expected = (lexicon.attribute(name, compute) for lexicon in both)
                assert found.tolist() == expected.tolist()
            for lexicon, anew in (both, [lexicon.mapped("lower", str.lower)[0] for lexicon in both]):
                assert lexicon.words == anew.words
                found, expected = (one.codes("letter", first_letter) for one in (lexicon, anew))
                assert found.tolist() == expected.tolist()
                (names, found), (same, expected) = (one.named("letter", first_letter) for one in (lexicon, anew))
                assert names == same and found.tolist() == expected.tolist()
            found, expected = (lexicon.mapped("lower", str.lower)[1] for lexicon in both)
            assert found.tolist() == expected.tolist()


def test_attributes_are_computed_once_of_words_that_come_back():
    computed: list[list[str]] = []

    def size(words: list[str]) -> list[int]:
        computed.append(list(words))
        return [len(word) for word in words]

    known = KnownPairs()

    def ask(*tokens: str) -> list[str]:
        words, number = numbered(tokens)
        lexicon = known.lexicon(FORM, words, number)
        computed.append([])
        assert lexicon.attribute("size", size).tolist() == [len(word) for word in words]
        return computed[-1]

    assert ask("twice", "once", "twice") == ["twice", "once"]
    assert ask("twice", "new") == ["new"]
    assert ask("once", "new") == ["once", "new"]  # they are known from now on
    assert ask("twice", "once", "new") == []


def test_words_that_never_come_back_are_not_kept(monkeypatch):
    monkeypatch.setattr(known_pairs, "MOST_WORDS", 20)
    known = KnownPairs()
    for k in range(50):
        words = [f"{k}.{n}" for n in range(5)]
        assert known.lexicon(FORM, words, np.arange(5)).attribute("size", lambda of: list(map(len, of))).max() <= 4
    table = known._tables[FORM]
    assert not table.words._number and len(table.words._seen_once) <= 25


@pytest.mark.parametrize("first", [True, False])
def test_a_word_that_cannot_be_computed_fails_in_its_own_batches_only(first):
    def size(words: list[str]) -> list[int]:
        return [len(word.encode()) for word in words]

    known = KnownPairs()
    bad, good, other = (
        lexicon_of(known, words) for words in (["a", "\ud800", "new"], ["a", "bc"], ["new", "def"])
    )
    if not first:
        assert good.attribute("size", size).tolist() == [1, 2]
    for _ in range(2):
        with pytest.raises(UnicodeEncodeError):
            bad.attribute("size", size)
    assert good.attribute("size", size).tolist() == [1, 2]
    assert other.attribute("size", size).tolist() == [3, 3]
    assert lexicon_of(known, ["def", "new", "a"]).attribute("size", size).tolist() == [3, 3, 1]


def test_a_failing_pair_leaves_nothing_behind():
    """Neither a word nor a pair of a batch that failed is wrong, or missing, in the next one."""
    failing = True

    def fussy(pairs: WordPairs) -> np.ndarray:
        if failing and "bad" in pairs.lexicon.words:
            raise ValueError
        return code_points(pairs)

    known, signal = KnownPairs(), Signal("test.fussy", FORM, fussy, np.float64)
    for pairs in (good := random_pairs(3, 8, WORDS), good, random_pairs(4, 8, [*WORDS, "bad"]), good, good):
        grid, anew = Grid(pairs), Grid(pairs)
        grid.known = known
        if pairs is good:
            np.testing.assert_array_equal(grid.per_cell(signal), anew.per_cell(DIRECTED))
        else:
            with pytest.raises(ValueError):
                grid.per_cell(signal)
    failing = False
    check(batches(5, 3), known)


def test_words_that_are_forgotten_do_not_mix_with_those_after_them(monkeypatch):
    """Grids of another thread go on with words that this one forgot."""
    monkeypatch.setattr(known_pairs, "MOST_WORDS", 9)
    known = KnownPairs()
    check(batches(1, 3), known)
    before, after = Grid(random_pairs(7, 6, WORDS)), Grid(random_pairs(8, 6, ["x", "y", "z", *WORDS]))
    for grid in (before, after):
        grid.known = known
        grid.words(FORM)
    assert before.words(FORM).lexicon.known is not after.words(FORM).lexicon.known
    for grid in (before, after):
        anew = Grid(grid.pairs)
        for one, other in ((grid, anew), (grid.flipped(), anew.flipped())):
            np.testing.assert_array_equal(one.per_cell(DIRECTED, True), other.per_cell(DIRECTED, True))


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
