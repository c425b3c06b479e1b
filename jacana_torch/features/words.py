"""Words and pairs of words of one batch: what families compute once for each, however often it occurs.

All but `KnownPairs`, which aligning uses, lasts as long as the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, repeat
from operator import attrgetter, methodcaller
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from ..types import Sentence
from ..util.geometry import Ints

T = TypeVar("T")
Word = Any  # a string, or a tuple with the values of layers
Compute = Callable[[list[Word]], "Sequence[Any] | np.ndarray"]


@dataclass(frozen=True)
class WordKey:
    """What makes two tokens the same word: equal forms, and equal values of some layers.

    `form` is a function of the token: `str` for the token itself, None to ignore it. A word is a string, or a
    tuple of the form (unless that is None) and the layers' values. Functions are compared by identity, so keys
    belong in module constants.
    """

    form: Callable[[str], str] | None
    layers: tuple[str, ...] = ()

    def words(self, sentences: Sequence[Sentence]) -> list[Word]:
        """The word of each token of some sentences."""
        columns = []
        if self.form is not None:
            tokens = list(chain.from_iterable(map(attrgetter("tokens"), sentences)))
            distinct = dict.fromkeys(tokens)
            forms = dict(zip(distinct, map(self.form, distinct), strict=True))
            columns.append(list(map(forms.__getitem__, tokens)))
        for name in self.layers:
            columns.append(list(chain.from_iterable(map(methodcaller("layer", name), sentences))))
        return list(zip(*columns, strict=True)) if self.layers else columns[0]


def numbered(values: Iterable[Hashable]) -> tuple[list[Any], Ints]:
    """Distinct values in order of first appearance, and which of them each value is; -1 for None."""
    every = list(values)
    distinct = dict.fromkeys(every)
    distinct.pop(None, None)
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    return list(distinct), np.fromiter(map(number.get, every, repeat(-1)), np.int64, len(every))


@dataclass(frozen=True)
class Lexicon:
    """The W distinct words of a batch, and what is computed of each: by the first family that asks."""

    words: list[Word]
    _memo: dict[tuple[str, Hashable], Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.words)

    def attribute(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[W, ...] `compute(words)`."""
        key = "attribute", name
        if key not in self._memo:
            self._memo[key] = np.asarray(compute(self.words))
        values: np.ndarray = self._memo[key]
        return values

    def named(self, name: Hashable, compute: Compute) -> tuple[tuple[str, ...], Ints]:
        """The distinct names that `compute(words)` gives, and [W] the number of each word's; -1 for None."""
        key = "named", name
        if key not in self._memo:
            names, number = numbered(compute(self.words))
            self._memo[key] = tuple(names), number
        names_and_number: tuple[tuple[str, ...], Ints] = self._memo[key]
        return names_and_number

    def codes(self, name: Hashable, compute: Compute) -> Ints:
        """[W] equal numbers for words of equal values; "" and None equal nothing, not even each other."""
        key = "codes", name
        if key not in self._memo:
            values, code = numbered(compute(self.words))
            empty = (code < 0) | (code == values.index("")) if "" in values else code < 0
            self._memo[key] = np.where(empty, -1 - np.arange(len(code)), code)
        codes: Ints = self._memo[key]
        return codes

    def mapped(self, name: Hashable, of: Callable[[Word], Hashable]) -> tuple[Lexicon, Ints]:
        """The lexicon of the distinct values of `of(word)`, and [W] the number of each word's."""
        key = "mapped", name
        if key not in self._memo:
            values, number = numbered(map(of, self.words))
            self._memo[key] = Lexicon(values), number
        mapped: tuple[Lexicon, Ints] = self._memo[key]
        return mapped


@dataclass(frozen=True)
class WordPairs:
    """U pairs of words: `left` and `right` [U] are numbers in the lexicon. `swapped`: seen from the other side."""

    lexicon: Lexicon
    left: Ints
    right: Ints
    swapped: bool = False
    _shared: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def flipped(self) -> WordPairs:
        """The same pairs seen from the other side; the two share what `shared` computes."""
        return WordPairs(self.lexicon, self.right, self.left, not self.swapped, self._shared)

    def shared(self, name: Hashable, compute: Callable[[], T]) -> T:
        """What is the same from either side, computed by the first family that asks."""
        if name not in self._shared:
            self._shared[name] = compute()
        value: T = self._shared[name]
        return value

    def mapped(self, name: Hashable, of: Callable[[Word], Hashable]) -> WordPairs:
        """The pairs of `of(word)`, under a name of their own: of the lemmas of words that are tuples, say."""
        key = "mapped", name
        if key not in self._shared:
            lexicon, number = self.lexicon.mapped(name, of)
            left, right = (self.right, self.left) if self.swapped else (self.left, self.right)
            self._shared[key] = WordPairs(lexicon, number[left], number[right])
        pairs: WordPairs = self._shared[key]
        return pairs.flipped() if self.swapped else pairs

    def equal(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` gives both words the same value."""
        codes = self.lexicon.codes(name, compute)
        same: np.ndarray = codes[self.left] == codes[self.right]
        return same

    def both(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` holds of both words."""
        holds = self.lexicon.attribute(name, compute).astype(bool, copy=False)
        both: np.ndarray = holds[self.left] & holds[self.right]
        return both


@dataclass(frozen=True)
class Signal:
    """A number for any two words, which several families read: `compute(pairs)` gives [U] of them.

    Signals of one name and key are the same. The fewer bits `precision` has, the faster are the computations with
    neighbouring cells. A `flipped` signal takes the words from the other side.
    """

    name: Hashable
    key: WordKey
    compute: Callable[[WordPairs], np.ndarray] = field(compare=False, repr=False)
    precision: type[np.floating[Any]] = field(default=np.float32, compare=False)
    flipped: bool = False

    def of(self, pairs: WordPairs) -> np.ndarray:
        """[U] the signal of word pairs."""
        return np.asarray(self.compute(pairs.flipped() if self.flipped else pairs), dtype=self.precision)


@dataclass(frozen=True)
class WordTable:
    """The words of a grid under one key, and the distinct pairs of them that its cells hold.

    `source` [Ts] and `target` [Tt] are the word of each token, as numbers in the lexicon.
    """

    lexicon: Lexicon
    source: Ints
    target: Ints
    find_pairs: Callable[[], tuple[WordPairs, Ints]] = field(repr=False)

    @cached_property
    def _pairs_and_cell(self) -> tuple[WordPairs, Ints]:
        return self.find_pairs()

    @property
    def pairs(self) -> WordPairs:
        """The U distinct pairs of a source and a target word that share a cell."""
        return self._pairs_and_cell[0]

    @property
    def cell(self) -> Ints:
        """[C] the word pair of each cell."""
        return self._pairs_and_cell[1]


MOST_WORDS = 1 << 15  # with a number: then all are forgotten; seen once: then these are
SLOT_BITS, WAYS = 19, 4
AT_ONCE = 1 << 14  # word pairs that are computed together, so that they stay in the cache
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


class KnownPairs:
    """Signals of word pairs that outlive a batch: in running text, most pairs of words were seen before.

    All signals ever asked for are kept, of as many pairs as there is room for. What is kept never changes a result
    beyond rounding, only the time: aligning a corpus that is repeated with misspellings takes 12 to 17% less CPU
    time with it in `core` (20,000 pairs) and 3 to 10% in `standard` (8,000), and a sixth less memory. Threads may
    share it.
    """

    def __init__(self) -> None:
        self._tables: dict[WordKey, _Table] = {}
        self._lock = RLock()

    def __reduce__(self) -> tuple[type[KnownPairs], tuple[()]]:  # another process starts its own
        return KnownPairs, ()

    def per_cell(
        self, asked: Signal, words: WordTable, source_token: np.ndarray, target_token: np.ndarray
    ) -> dict[Signal, np.ndarray]:
        """Return signals [C] of the two words of each cell, given its two tokens.

        These are all signals of the key that were asked for before. A signal that is new is returned alone, and
        remembered from the next batch on.
        """
        with self._lock:
            table = self._tables.get(asked.key)
            if table is not None and asked in table.signals and len(table.number) <= MOST_WORDS:
                return table.look_up(words, source_token, target_token)
            signals = dict.fromkeys([*(table.signals if table else ()), asked])
            self._tables[asked.key] = _Table(list(signals))
        return {asked: asked.of(words.pairs)[words.cell]}


class _Table:
    """Signals by slot; a pair of words may have any of a few slots.

    Words have a `number` from the second batch on that they occur in, and only pairs of such words are kept: most
    new words of a text, such as misspellings, never come back. A new pair takes a slot that is empty, or whose
    pair was not asked for since it came; otherwise, the pairs there have to be asked for once more to stay.
    """

    def __init__(self, signals: list[Signal]) -> None:
        self.number: dict[object, int] = {}
        self.seen_once: set[object] = set()
        self.signals = signals
        self.values: dict[Signal, np.ndarray] = {}

    def _allocate(self) -> None:
        self.code = np.zeros(1 << SLOT_BITS, dtype=np.int64)  # 0 is empty
        self.asked_again = np.zeros(1 << SLOT_BITS, dtype=bool)
        room = map(partial(np.empty, 1 << SLOT_BITS), map(attrgetter("precision"), self.signals))
        self.values = dict(zip(self.signals, room, strict=True))  # last: an interruption leaves all or nothing

    def look_up(
        self, words: WordTable, source_token: np.ndarray, target_token: np.ndarray
    ) -> dict[Signal, np.ndarray]:
        if not self.values:  # a single batch needs no room
            self._allocate()
        of_word = self._numbers(words.lexicon.words)
        code = (of_word[words.source] << 32)[source_token] | of_word[words.target][target_token]
        slot, known = self._find(code)
        self.asked_again[slot[known]] = True
        found = {signal: values.take(slot) for signal, values in self.values.items()}
        cells = np.flatnonzero(~known)
        if len(cells):
            source, target = words.source[source_token[cells]], words.target[target_token[cells]]
            local = source * len(words.lexicon) + target
            _, first, place = np.unique(local, return_index=True, return_inverse=True)
            values = self._computed(words.lexicon, source[first], target[first])
            for signal, of_new in values.items():
                found[signal][cells] = of_new[place]
            self._keep(code[cells[first]], values)
        return found

    def _numbers(self, words: list[object]) -> np.ndarray:
        """Return [W] the number of each word, from 1 on; -1 for those seen for the first time."""
        numbers = np.fromiter(map(self.number.get, words, repeat(-1)), np.int64, len(words))
        if len(self.seen_once) > MOST_WORDS:
            self.seen_once = set()
        for k in np.flatnonzero(numbers < 0).tolist():
            if words[k] in self.seen_once:
                self.seen_once.discard(words[k])
                numbers[k] = self.number[words[k]] = len(self.number) + 1
            else:
                self.seen_once.add(words[k])
        return numbers

    def _computed(self, lexicon: Lexicon, left: np.ndarray, right: np.ndarray) -> dict[Signal, np.ndarray]:
        """Compute all signals of some pairs, with what they share of their words."""
        used, place = np.unique(np.concatenate([left, right]), return_inverse=True)
        own = Lexicon([lexicon.words[k] for k in used.tolist()])
        left, right = np.split(place, 2)
        values = {signal: np.empty(len(left), signal.precision) for signal in self.values}
        for first in range(0, len(left), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            pairs = WordPairs(own, left[some], right[some])
            for signal, of_pairs in values.items():
                of_pairs[some] = signal.of(pairs)
        return values

    def _find(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return [C] slots, and [C] whether these hold the codes."""
        slot = _slots(code)
        known = self.code[slot] == code
        others = np.flatnonzero(~known)  # most are in their first slot
        for way in range(1, WAYS):
            place = slot[others] ^ way
            there = self.code[place] == code[others]
            slot[others[there]], known[others[there]] = place[there], True
            others = others[~there]
        return slot, known

    def _keep(self, code: np.ndarray, found: dict[Signal, np.ndarray]) -> None:
        numbered = np.flatnonzero(code > 0)
        ways = _slots(code[numbered])[:, None] ^ np.arange(WAYS)
        rank = np.where(self.code[ways] == 0, 0, 1 + self.asked_again[ways])
        best = np.take_along_axis(ways, rank.argmin(1)[:, None], 1)[:, 0]
        free = rank.min(1) < 2
        self.asked_again[ways[~free]] = False
        place, kept = best[free], numbered[free]
        self.code[place] = 0  # an interruption leaves no values under the code of another pair
        for signal, values in found.items():
            self.values[signal][place] = values[kept]
        self.code[place] = code[kept]


def _slots(code: np.ndarray) -> np.ndarray:
    slots: np.ndarray = (code.view(np.uint64) * _SCATTER >> np.uint64(64 - SLOT_BITS)).view(np.int64)
    return slots
