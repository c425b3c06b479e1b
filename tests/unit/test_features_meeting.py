"""Figures of two words are what they are, whatever a memory holds: small ones, full ones, shared ones."""

from __future__ import annotations

import pickle
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest
from feature_twin import Bases, interrupted_at, random_pairs
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.annotate.normalise import matching_form
from jacana_torch.features import lexicon
from jacana_torch.features import word_pairs as meeting
from jacana_torch.features.families.context import Context, content_similarity
from jacana_torch.features.families.pos import TAG, Pos, same_tag
from jacana_torch.features.families.string import String
from jacana_torch.features.featureset import blocks_of
from jacana_torch.features.grid import Grid
from jacana_torch.features.lexicon import Lexicon
from jacana_torch.features.string_similarity import (
    FORM,
    base_similarity,
    best_measure,
    identical_words,
    same_words,
)
from jacana_torch.features.word_pairs import Memory, Signal, WordKey, WordPairs
from jacana_torch.types import Sentence, SentencePair

LEMMA = WordKey(matching_form, ("lemma", "pos"))


def number(left: object, right: object, k: int) -> float:
    """Something else for every two words, and for the other order of them."""
    return sum(ord(c) * (i + k) for i, c in enumerate(f"{left}|{right}", start=1)) % 1009


def made(k: int, key: WordKey) -> Signal:
    def compute(pairs: WordPairs) -> np.ndarray:
        words = pairs.lexicon.words
        meet = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        return np.array([number(words[a], words[b], k) for a, b in meet])

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


KEYS = (FORM, TAG, LEMMA)
seeds = st.lists(st.integers(0, 10**6), min_size=1, max_size=4)


@given(seeds, st.sampled_from([2, 3, 4, 10]), st.sampled_from(KEYS), st.lists(st.integers(0, 3), min_size=1))
def test_figures_are_those_of_the_words(stream, bits, key, asked):
    """Signals come in any order; few slots, so that nearly every pair takes another's."""
    memory = Memory(bits)
    for seed in stream:
        pairs = random_pairs(seed, 3)
        grid, alone = Grid(pairs).remember(memory), Grid(pairs)
        for k in asked:
            want = expected(pairs, k, key)
            assert grid.figure(made(k, key)).tolist() == want
            assert alone.figure(made(k, key)).tolist() == want


SIGNALS = (base_similarity, identical_words, same_words, best_measure, content_similarity, same_tag)


@given(seeds, st.sampled_from([2, 3, 4, 10]))
def test_the_families_signals_with_a_memory_and_without(stream, bits):
    memory = Memory(bits)
    for seed in stream:
        pairs = random_pairs(seed, 3)
        grid, alone = Grid(pairs).remember(memory), Grid(pairs)
        for signal in SIGNALS:
            assert grid.figure(signal).tolist() == alone.figure(signal).tolist(), signal
        base = [v for x in pairs for row in Bases(x).base for v in row]
        assert grid.figure(base_similarity) == pytest.approx(base, abs=1e-7)


@given(seeds, st.sampled_from([None, 2, 10]), st.booleans(), st.sampled_from(KEYS))
def test_flipped_grids(stream, bits, flipped_first, key):
    """A directed signal takes its words in the order of the flipped grid, any other in that of the grid itself."""
    memory = None if bits is None else Memory(bits)
    for seed in stream:
        pairs = random_pairs(seed, 3)
        grid = Grid(pairs) if memory is None else Grid(pairs).remember(memory)
        other, back = grid.flipped(), [x.flip() for x in pairs]
        sides = [(grid, pairs), (other, back)]
        for one, own in reversed(sides) if flipped_first else sides:
            assert one.figure(made(1, key), directed=True).tolist() == expected(own, 1, key)
        assert other.figure(same_words).tolist() == Grid(back).figure(same_words).tolist()
        there = dict(zip(zip(grid.pair, grid.n, grid.m, strict=True), grid.figure(made(2, key)), strict=True))
        undirected = other.figure(made(2, key))
        assert undirected.tolist() == [there[cell] for cell in zip(other.pair, other.m, other.n, strict=True)]


def test_a_grid_flipped_twice_is_itself():
    pairs = random_pairs(11, 3)
    twice = Grid(pairs).flipped().flipped()
    assert twice.figure(made(1, FORM), directed=True).tolist() == expected(pairs, 1, FORM)
    assert not twice.is_flipped


@pytest.mark.parametrize("bits", [3, 12])
def test_more_signals_than_a_memory_has_room_for(bits):
    memory, some = Memory(bits), [made(k, FORM) for k in range(2 * meeting.MOST_SIGNALS + 3)]
    for seed in range(3):
        pairs = random_pairs(seed, 4)
        grid = Grid(pairs).remember(memory)
        for k in [*range(len(some)), *range(0, len(some), 3)]:
            assert grid.figure(some[k]).tolist() == expected(pairs, k, FORM)
    assert len(memory.of(FORM)[1].signals) <= meeting.MOST_SIGNALS


def test_a_full_lexicon_makes_way_for_a_new_one(monkeypatch):
    monkeypatch.setattr(meeting, "MOST_WORDS", 20)
    memory, lexicons, grids = Memory(8), [], []
    for seed in range(12):
        pairs = random_pairs(seed, 4)
        grid = Grid(pairs).remember(memory)
        assert grid.figure(made(1, FORM)).tolist() == expected(pairs, 1, FORM)
        lexicons.append(grid.meeting(FORM).lexicon)
        grids.append((grid, pairs))
    assert 3 < len({id(one) for one in lexicons}) < 12
    assert max(map(len, lexicons)) < 20 + 100
    for grid, pairs in grids:  # those made before the change go on with the words that they know
        assert grid.figure(made(2, FORM)).tolist() == expected(pairs, 2, FORM)
        assert grid.figure(base_similarity).tolist() == Grid(pairs).figure(base_similarity).tolist()


def test_what_was_met_again_is_known_after_others_were_forgotten(monkeypatch):
    monkeypatch.setattr(meeting, "MOST_WORDS", 12)
    memory, asked, lexicons = Memory(12), [], []

    def compute(pairs: WordPairs) -> np.ndarray:
        words = pairs.lexicon.words
        asked.extend((words[a], words[b]) for a, b in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        return np.array([number(words[a], words[b], 1) for a, b in zip(pairs.left, pairs.right, strict=True)])

    signal, usual = Signal("counted", FORM, compute), ("barn", "owl", "rain")
    for turn in range(9):
        rare = tuple(f"rare{turn}{k}" for k in range(4))
        pairs = [SentencePair(Sentence((*usual, *rare)), Sentence(usual))]
        grid = Grid(pairs).remember(memory)
        assert grid.figure(signal).tolist() == expected(pairs, 1, FORM)
        lexicons.append(grid.meeting(FORM).lexicon)
    assert len({id(one) for one in lexicons}) >= 3 and max(map(len, lexicons)) <= 12 + 4
    assert len([pair for pair in asked if set(pair) <= set(usual)]) == 9


def test_pairs_of_words_go_by_serials_only_until_these_run_out(monkeypatch):
    monkeypatch.setattr(meeting, "MOST_WORDS", 20)
    monkeypatch.setattr(meeting, "MOST_SERIALS", 60)
    memory, largest, begun = Memory(8), [], 0
    for seed in range(16):
        pairs = random_pairs(seed, 4)
        grid = Grid(pairs).remember(memory)
        assert grid.figure(made(1, FORM)).tolist() == expected(pairs, 1, FORM)
        largest.append(int(memory.of(FORM)[0].serials.max(initial=0)))
        begun += len(largest) > 1 and largest[-1] < largest[-2]
    assert begun and max(largest) <= 60 + 100


def test_a_table_grows_with_what_it_knows_and_loses_nothing(monkeypatch):
    """Few pairs have few slots; what was known before the table grew is not asked for again."""
    monkeypatch.setattr(meeting, "_FIRST_BITS", 4)
    memory, asked = Memory(16), []

    def compute(pairs: WordPairs) -> np.ndarray:
        asked.append(len(pairs))
        return made(1, FORM).compute(pairs)

    def figures(words: list[str]) -> list[float]:
        pair = SentencePair(Sentence(tuple(words)), Sentence(("owl",)))
        found = Grid([pair]).remember(memory).figure(Signal("grows", FORM, compute)).tolist()
        assert found == expected([pair], 1, FORM)
        return found

    words = [f"word{k}" for k in range(400)]
    figures(words[:2])
    few = len(memory.of(FORM)[1])
    for k in range(2, 400, 2):
        figures(words[k : k + 2])
    many = len(memory.of(FORM)[1])
    assert few == 2**4 and 400 < many < 2**13
    lost = sum(asked) - 400  # none before
    figures(words)
    assert lost == 0 and sum(asked) - 400 < 400 // 2  # those whose slot another had


def test_what_is_worked_out_about_some_pairs_goes_before_the_next(monkeypatch):
    monkeypatch.setattr(meeting, "_AT_ONCE", 3)
    memory, alive, most = Memory(), weakref.WeakSet(), []

    class Large:
        pass

    def compute(pairs: WordPairs) -> np.ndarray:
        alive.add(pairs.shared("large", Large))
        most.append(len(alive))
        return np.zeros(len(pairs))

    signal = Signal("large", FORM, compute)
    Grid(random_pairs(1, 1)).remember(memory).figure(signal)
    most.clear()
    Grid(random_pairs(2, 6)).remember(memory).figure(signal)
    assert len(most) > 5 and max(most) <= 2  # the one at work and the one before it


def test_what_is_known_is_not_asked_for_again():
    memory, asked = Memory(), []

    def compute(pairs: WordPairs) -> np.ndarray:
        words = pairs.lexicon.words
        asked.extend((words[a], words[b]) for a, b in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        return np.zeros(len(pairs))

    signal = Signal("counted", FORM, compute)
    for seed in (1, 1, 2, 1):
        pairs = random_pairs(seed, 5)
        for grid in (Grid(pairs), Grid(pairs), Grid(pairs).flipped()):
            grid.remember(memory).figure(signal)
            for _, part in grid.parts():
                part.figure(signal)
    met = {(a, b) for seed in (1, 2) for x in random_pairs(seed, 5) for a in words_of(x, FORM)[0]
           for b in words_of(x, FORM)[1]}  # fmt: skip
    assert len(asked) == len(set(asked)) and set(asked) == met


def test_signals_of_one_name_under_different_keys_are_different():
    pairs = random_pairs(4, 4)
    grid = Grid(pairs).remember(Memory(6))
    for key in KEYS:
        assert grid.figure(made(1, key)).tolist() == expected(pairs, 1, key)


def test_a_memory_stays_at_home_when_it_is_sent_away():
    memory = Memory(5)
    Grid(random_pairs(1, 3)).remember(memory).figure(base_similarity)
    sent = pickle.loads(pickle.dumps(memory))
    assert len(memory.of(FORM)[0]) and not len(sent.of(FORM)[0])
    assert len(sent.of(FORM)[1]) == 2**5


def test_threads_that_share_a_memory():
    """Figures and whole families; the memory is small, so that each takes the others' slots."""
    memory, families = Memory(6), (String(), Context(), Pos())
    streams = [[random_pairs(10 * k + j, 3) for j in range(6)] for k in range(4)]

    def run(stream: list[list[SentencePair]], shared: Memory | None) -> list:
        found = []
        for pairs in stream:
            grid = Grid(pairs) if shared is None else Grid(pairs).remember(shared)
            found += [grid.figure(signal).tolist() for signal in (*SIGNALS, made(1, FORM), made(2, LEMMA))]
            for family in families:
                blocks = blocks_of(family, grid)
                found += [named(some) for some in (blocks.link, blocks.null)]
        return found

    alone = [run(stream, None) for stream in streams]
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(lambda stream: run(stream, memory), streams)) == alone
    finally:
        sys.setswitchinterval(before)


def test_threads_that_bring_signals_of_their_own():
    """What one of them adds must not change the table under another's hands."""
    memory, pairs = Memory(4), [random_pairs(seed, 2) for seed in range(5)]

    def slow(k: int) -> Signal:
        def compute(both: WordPairs) -> np.ndarray:
            time.sleep(0.001)
            return made(k, FORM).compute(both)

        return Signal(("slow", k), FORM, compute)

    def run(k: int) -> bool:
        return all(Grid(x).remember(memory).figure(slow(k)).tolist() == expected(x, k, FORM) for x in pairs)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(4)))


def named(blocks) -> dict[str, list[float]]:
    """Columns by name; those of words that others met are zero here, and do not count."""
    columns = {name: block.dense()[:, k] for block in blocks for k, name in enumerate(block.names)}
    return {name: values.tolist() for name, values in columns.items() if values.any()}


def test_an_interruption_anywhere_does_no_lasting_harm():
    first, second = random_pairs(1, 2), random_pairs(2, 2)
    signals = [made(1, FORM), made(2, FORM)]

    def ask(memory: Memory, pairs: list[SentencePair]) -> bool:
        grid = Grid(pairs).remember(memory)
        return all(grid.figure(s).tolist() == expected(pairs, k, FORM) for k, s in enumerate(signals, start=1))

    for file in (meeting.__file__, lexicon.__file__):
        for k in count():
            memory = Memory(3)
            Grid(first).remember(memory).figure(signals[0])
            if not interrupted_at(k, file, lambda known=memory: ask(known, second)):
                break
            assert ask(memory, first) and ask(memory, second), (file, k)
        assert k > 20


def test_pairs_of_parts_of_words():
    """Seen from either side, and what is shared between the two is computed once."""
    known = Lexicon()
    known.numbers([("a", "x"), ("b", "x"), ("a", "y")])
    pairs = WordPairs(known, np.array([0, 1, 2]), np.array([2, 1, 1]))
    back, calls = pairs.flipped(), []
    for one, swapped in ((back, True), (pairs, False), (back.flipped(), False)):
        assert one.swapped == swapped
        part = one.part(0)
        words = part.lexicon.words
        meet = [(words[a], words[b]) for a, b in zip(part.left, part.right, strict=True)]
        own = [("a", "a"), ("b", "b"), ("a", "b")]
        assert meet == ([x[::-1] for x in own] if swapped else own) and part.swapped == swapped
        assert one.shared("x", lambda: calls.append(1) or len(calls)) == 1
        assert part.equal("same", list).tolist() == [True, True, False]
        assert part.both("b", lambda new: [w == "b" for w in new]).tolist() == [False, True, False]
