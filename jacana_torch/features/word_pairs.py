"""What two words are to each other, whatever the sentences: worked out once per pair of words, and remembered.

In: the words that meet in the cells of a `Grid`. Out: one figure a cell for every `Signal` asked for. A `Memory`
outlives grids: a pair of words met before costs a look in a table. Its size is bounded, and what it holds never
changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import TypeVar

import numpy as np

from .lexicon import Compute, Lexicon, Word
from .slots import NOTHING, Slots

T = TypeVar("T")

MOST_WORDS = 1 << 14  # then those met but once are forgotten; must stay below 2 ** 24: two numbers make one code
MOST_SERIALS = 1 << 30  # then all is begun anew; two of twice as many make one code
SLOT_BITS = 19
_FIRST_BITS = 17  # the slots of few pairs; with fewer too many would push one another out
MOST_SIGNALS = 12
_RUN = 1 << 13  # cells that are looked up together
_AT_ONCE = 1 << 14  # pairs of words that are worked out together


@dataclass(frozen=True)
class WordKey:
    """What of a token counts as the word: `form(token)` (None: nothing), and the values of some layers."""

    form: Callable[[str], str] | None
    layers: tuple[str, ...] = ()

    def met(self, tokens: list[str], layer: Callable[[str], list]) -> Iterable[Word]:
        """What a lexicon is asked for: tokens as they are, with their layers."""
        layers = [layer(name) for name in self.layers]
        return zip(*([tokens] if self.form else []), *layers, strict=True) if layers else tokens

    def word(self, met: Word) -> Word:
        """The word that these count as: a string, or a tuple where there are layers."""
        if self.form is None:
            return met
        return (self.form(met[0]), *met[1:]) if isinstance(met, tuple) else self.form(met)


@dataclass(frozen=True)
class WordPairs:
    """Pairs of words: `left` and `right` [U] are numbers in a lexicon. `swapped`: seen from the other side."""

    lexicon: Lexicon
    left: np.ndarray
    right: np.ndarray
    swapped: bool = False
    _shared: dict = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    def flipped(self) -> WordPairs:
        """The same pairs seen from the other side; what `shared` computes is computed once for the two."""
        return WordPairs(self.lexicon, self.right, self.left, not self.swapped, self._shared)

    def shared(self, name: Hashable, compute: Callable[[], T]) -> T:
        """What is the same from either side, computed by the first who asks."""
        if name not in self._shared:
            self._shared[name] = compute()
        return self._shared[name]

    def part(self, place: int) -> WordPairs:
        """Where words are tuples: the pairs of what stands at one place of them."""

        def compute() -> WordPairs:
            inner, number = self.lexicon.part(place)
            plain = WordPairs(inner, number[self.left], number[self.right], self.swapped)
            return plain.flipped() if self.swapped else plain

        plain = self.shared(("part", place), compute)
        return plain.flipped() if self.swapped else plain

    def equal(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` gives the two words equal values."""
        codes = self.lexicon.codes(name, compute)
        return codes[self.left] == codes[self.right]

    def both(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[U] whether `compute` says yes of both words."""
        yes = self.lexicon.attribute(name, lambda words: np.array(compute(words), dtype=bool))
        return yes[self.left] & yes[self.right]


@dataclass(frozen=True)
class Signal:
    """A figure for two words: `compute(pairs)` gives [U] of them. Signals of one name and key are the same.

    What families compute with neighbours' figures is as quick as these are short.
    """

    name: Hashable
    key: WordKey
    compute: Callable[[WordPairs], np.ndarray] = field(compare=False, repr=False)
    precision: type[np.floating] = field(default=np.float32, compare=False)

    @property
    def from_the_other_side(self) -> Signal:
        flipped = (self.name, "flipped")
        return Signal(flipped, self.key, lambda pairs: self.compute(pairs.flipped()), self.precision)


class Memory:
    """Lexicons and what is known of pairs of their words, one of each a key; safe to share between threads."""

    def __init__(self, bits: int = SLOT_BITS) -> None:
        self._bits = bits
        self._lock = RLock()
        self._known: dict[WordKey, tuple[Lexicon, _Known]] = {}

    def __reduce__(self):  # what another process remembers is its own affair
        return Memory, (self._bits,)

    def of(self, key: WordKey) -> tuple[Lexicon, _Known]:
        with self._lock:
            lexicon, known = self._known.get(key, (None, None))
            if lexicon is None or known is None:
                self._known[key] = Lexicon(key.word), _Known(self._bits)
            elif len(lexicon) > MOST_WORDS:
                fresh = lexicon.without_rare()
                if len(fresh) > MOST_WORDS // 4 * 3:  # so many that they would soon be too many again
                    fresh = lexicon.emptied()
                if lexicon.serials.max() > MOST_SERIALS:  # after days
                    fresh, known = Lexicon(key.word), _Known(self._bits)
                self._known[key] = fresh, known
            return self._known[key]


class Meeting:
    """The words of a grid under one key: `source` [Ts] and `target` [Tt] are their numbers in the lexicon.

    `cells` are the two tokens of each cell.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        known: _Known | None,
        source: np.ndarray,
        target: np.ndarray,
        cells: tuple[np.ndarray, np.ndarray],
    ) -> None:
        self.lexicon, self._known, self._cells = lexicon, known, cells
        self.source, self.target = source, target
        self._figures: dict[Signal, np.ndarray] = {}

    def slice(self, source: slice, target: slice, cells: slice) -> Meeting:
        """The same of some of the pairs."""
        return _Slice(self, source, target, cells)

    def turn(self, order: np.ndarray) -> Meeting:
        """The same seen from the other side, whose cells come in this order."""
        return _Turned(self, order)

    @cached_property
    def code(self) -> np.ndarray:
        """[C] the two words of each cell as one number."""
        return (self.source << 24)[self._cells[0]] | self.target[self._cells[1]]

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.code, return_inverse=True)

    @cached_property
    def cell(self) -> np.ndarray:
        """[C] which of `pairs` meets in each cell."""
        return self._distinct[1]

    @cached_property
    def pairs(self) -> WordPairs:
        """The distinct pairs of words that meet, for families that need more of them than figures."""
        return _pairs(self.lexicon, self._distinct[0])

    @cached_property
    def _some(self) -> list[WordPairs]:
        """The distinct pairs, as many at a time as fit in the cache with all that is worked out about them."""
        return list(_some_at_once(self.lexicon, self._distinct[0]))

    def figure(self, signal: Signal) -> np.ndarray:
        """[C]"""
        if signal not in self._figures:
            if self._known is None:
                self._figures[signal] = np.asarray(signal.compute(self.pairs), dtype=signal.precision)[self.cell]
            else:
                with self.lexicon.lock:
                    self._recall(self._known, signal)
        return self._figures[signal]

    def _recall(self, known: _Known, signal: Signal) -> None:
        """All signals that were ever asked for at once, for who asks for one will ask for the others."""
        first = signal not in known.signals  # then others will be asked of the same pairs
        signals = known.with_signal(signal)
        figures, found = known.look_up(self.code, serials := self.lexicon.serials)
        unknown = np.flatnonzero(~found)
        if len(unknown):
            new, cell = self._distinct if first else np.unique(self.code[unknown], return_inverse=True)
            some = self._some if first else _some_at_once(self.lexicon, new)  # one lives on for other signals
            computed, done = np.empty((len(signals), len(new))), 0
            for pairs in some:
                own = slice(done, done := done + len(pairs))
                for values, one in zip(computed, signals, strict=True):
                    values[own] = one.compute(pairs)
                known.keep(new[own], serials, computed[:, own])
            for each, values in zip(figures, computed, strict=True):
                each[unknown] = values[cell]
        self._figures |= dict(zip(signals, figures, strict=True))


class _Slice(Meeting):
    def __init__(self, origin: Meeting, source: slice, target: slice, cells: slice) -> None:
        nothing = np.zeros(0, dtype=np.int64)
        super().__init__(origin.lexicon, None, origin.source[source], origin.target[target], (nothing, nothing))
        self._origin, self._at = origin, cells

    @cached_property
    def code(self) -> np.ndarray:
        return self._origin.code[self._at]

    def figure(self, signal: Signal) -> np.ndarray:
        return self._origin.figure(signal)[self._at]


class _Turned(Meeting):
    def __init__(self, origin: Meeting, order: np.ndarray) -> None:
        super().__init__(origin.lexicon, None, origin.target, origin.source, (np.zeros(0), np.zeros(0)))
        self._origin, self._order = origin, order

    @cached_property
    def cell(self) -> np.ndarray:
        return self._origin.cell[self._order]

    @cached_property
    def pairs(self) -> WordPairs:
        return self._origin.pairs.flipped()


def _some_at_once(lexicon: Lexicon, code: np.ndarray) -> Iterator[WordPairs]:
    """A few at a time: what is worked out about some goes with them."""
    return (_pairs(lexicon, code[first : first + _AT_ONCE]) for first in range(0, len(code), _AT_ONCE))


def _pairs(lexicon: Lexicon, code: np.ndarray) -> WordPairs:
    return WordPairs(lexicon, code >> 24, code & 0xFFFFFF)


def _lasting(code: np.ndarray, serials: np.ndarray) -> np.ndarray:
    """Codes of pairs of words by their serials, which outlive a lexicon."""
    return serials[code >> 24] << 32 | serials[code & 0xFFFFFF]


class _Known:
    """Figures of pairs of words in a table that grows to a fixed size; slots.py says who then makes way. Pairs are
    told apart by the words' serials."""

    def __init__(self, bits: int) -> None:
        self._bits, self.signals = bits, list[Signal]()
        self._table = self._empty(min(bits, _FIRST_BITS))

    def _empty(self, bits: int) -> Slots:
        return Slots(bits, np.dtype([(str(k), signal.precision) for k, signal in enumerate(self.signals)]))

    def __len__(self) -> int:
        """Slots."""
        return len(self._table.code)

    def with_signal(self, signal: Signal) -> list[Signal]:
        """The signals of the columns, this one among them; a new one makes what was known incomplete."""
        if signal not in self.signals:
            self._table = NOTHING  # first: an interruption must not leave rows without the new column
            self.signals = [*self.signals, signal] if len(self.signals) < MOST_SIGNALS else [signal]
        if self._table is NOTHING:
            self._table = self._empty(min(self._bits, _FIRST_BITS))
        return self.signals

    def look_up(self, code: np.ndarray, serials: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """[C] figures of each signal, and [C] whether they are there; runs that stay in the cache."""
        figures = [np.empty(len(code), dtype=signal.precision) for signal in self.signals]
        found = np.empty(len(code), dtype=bool)
        for first in range(0, len(code), _RUN):
            run = slice(first, first + _RUN)
            rows, found[run] = self._table.look_up(_lasting(code[run], serials))
            for name, each in zip(rows.dtype.names or (), figures, strict=True):
                each[run] = rows[name]
        return figures, found

    def keep(self, code: np.ndarray, serials: np.ndarray, figures: np.ndarray) -> None:
        """Figures [signals, U] of distinct pairs."""
        rows: np.ndarray = np.empty(len(code), self._table.rows.dtype)
        for name, values in zip(rows.dtype.names or (), figures, strict=True):
            rows[name] = values
        self._table.keep(_lasting(code, serials), rows)
        bits = self._table.bits
        if bits < self._bits and self._table.taken > len(self) // 2:
            larger, there = self._empty(min(bits + 2, self._bits)), self._table.code >= 0
            larger.keep(self._table.code[there], self._table.rows[there])
            self._table = larger
