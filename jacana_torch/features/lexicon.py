"""Words that were met, each with a number, and what families worked out about each: once, not once a sentence.

In: words (strings, or tuples of a token and its layers). Out: their numbers, and arrays with one entry a number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import repeat
from threading import RLock

import numpy as np

Word = str | tuple
Compute = Callable[[list], Sequence | np.ndarray]


class Lexicon:
    """Numbers are given out in order of first appearance and never change.

    What is met is taken for the word that `normal` makes of it; it is made once.
    """

    def __init__(self, normal: Callable[[Word], Word] = lambda met: met) -> None:
        self._normal = normal
        self._number_of_met: dict = {}
        self.lock = RLock()
        self.words: list = []
        self._number: dict = {}
        self._columns: dict[Hashable, _Column] = {}
        self._codes: dict[Hashable, dict] = {}
        self._parts: dict[int, Lexicon] = {}

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, met: Iterable[Word]) -> np.ndarray:
        """The number of each word; those never met before get the next ones."""
        met = list(met)
        numbers = np.fromiter(map(self._number_of_met.get, met, repeat(-1)), np.int64, len(met))
        for k in np.flatnonzero(numbers < 0).tolist():
            numbers[k] = self._learnt(met[k])
        return numbers

    def _learnt(self, met: Word) -> int:
        word = self._normal(met)
        if word not in self._number:
            self.words.append(word)  # first: a word without a number does no harm if this is interrupted
            self._number[word] = len(self.words) - 1
        number = self._number_of_met[met] = self._number[word]
        return number

    def attribute(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[W, ...] `compute(words)` for all words met so far; it is called with the new ones only."""
        with self.lock:
            column = self._columns.setdefault(name, _Column())
            if column.filled < len(self.words):
                column.append(np.asarray(compute(self.words[column.filled :])))
            return column.values if column.filled else np.asarray(compute([]))

    def part(self, place: int) -> tuple[Lexicon, np.ndarray]:
        """Where words are tuples: a lexicon of what stands at one place of them, and [W] its numbers."""
        inner = self._parts.setdefault(place, Lexicon())
        return inner, self.attribute(("part", place), lambda words: inner.numbers(w[place] for w in words))

    def named(self, name: Hashable, compute: Compute) -> tuple[tuple[str, ...], np.ndarray]:
        """The distinct names that `compute` gives to words so far, and [W] which is each word's; -1 for None."""
        codes = self.attribute(("named", name), lambda words: self._named(name, compute(words)))
        return tuple(self._codes[name]), codes

    def _named(self, name: Hashable, values: Sequence | np.ndarray) -> np.ndarray:
        number = self._codes.setdefault(name, {})
        return np.array([-1 if v is None else number.setdefault(v, len(number)) for v in values], dtype=np.int64)

    def codes(self, name: Hashable, compute: Compute) -> np.ndarray:
        """[W] equal numbers for words of which `compute` gives equal values; "" and None equal nothing."""
        number = self._codes.setdefault(("codes", name), {})

        def coded(words: list) -> np.ndarray:
            values = compute(words)
            first = len(self.words) - len(words)
            return np.array(
                [
                    -1 - k if value is None or value == "" else number.setdefault(value, len(number))
                    for k, value in enumerate(values, start=first)
                ],
                dtype=np.int64,
            )

        return self.attribute(("codes", name), coded)


class _Column:
    """An array that grows at its end, in steps that double it."""

    def __init__(self) -> None:
        self.filled = 0
        self._room: np.ndarray | None = None

    @property
    def values(self) -> np.ndarray:
        return np.zeros(0) if self._room is None else self._room[: self.filled]

    def append(self, new: np.ndarray) -> None:
        total = self.filled + len(new)
        if self._room is None:
            self._room = new.copy()
        elif total > len(self._room):
            larger = np.empty((max(2 * len(self._room), total), *new.shape[1:]), dtype=self._room.dtype)
            larger[: self.filled] = self.values
            self._room = larger
        self._room[self.filled : total] = new
        self.filled = total
