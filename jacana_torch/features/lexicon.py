"""Words that were met, each with a number, and what families worked out about each: once, not once a sentence.

In: words (strings, or tuples of a token and its layers). Out: their numbers, and arrays with one entry a number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count, islice, repeat
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
        self._met_again = _Column()
        self._columns: dict[Hashable, _Column] = {}
        self._codes: dict[Hashable, dict] = {}
        self._parts: dict[int, Lexicon] = {}
        self._serials = count()

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, met: Iterable[Word]) -> np.ndarray:
        """The number of each word; those never met before get the next ones."""
        met = list(met)
        numbers = np.fromiter(map(self._number_of_met.get, met, repeat(-1)), np.int64, len(met))
        new = np.flatnonzero(numbers < 0)
        again = numbers[numbers >= 0]
        for k in new.tolist():
            numbers[k] = self._learnt(met[k])
        self._again()[again] = True
        return numbers

    def _again(self) -> np.ndarray:
        """[W] which words were met after they had their number."""
        self._met_again.append(np.zeros(len(self.words) - self._met_again.filled, bool))
        return self._met_again.values

    @property
    def serials(self) -> np.ndarray:
        """[W] numbers that words keep when others are forgotten, and that no other word ever gets."""
        return self.attribute("serial", lambda words: np.fromiter(islice(self._serials, len(words)), np.int64))

    def emptied(self) -> Lexicon:
        """One without words that goes on with the serials, under the same lock: the two may be in use together."""
        other = Lexicon(self._normal)
        other.lock, other._serials = self.lock, self._serials
        return other

    def without_rare(self) -> Lexicon:
        """As `emptied`, with the words that were met more than once and all that is known of them."""
        with self.lock:
            other, again = self.emptied(), self._again()
            for name, column in self._columns.items():
                self._carry(name, column.of(again), other)
            places = np.where(again, np.cumsum(again) - 1, -1).tolist()
            other.words = [self.words[k] for k in np.flatnonzero(again).tolist()]
            other._number = {word: k for k, word in enumerate(other.words)}
            other._number_of_met = {met: places[k] for met, k in self._number_of_met.items() if places[k] >= 0}
        return other

    def _learnt(self, met: Word) -> int:
        word = self._normal(met)
        if word not in self._number:
            self.words.append(word)  # first: a word without a number does no harm if this is interrupted
            self._number[word] = len(self.words) - 1
        number = self._number_of_met[met] = self._number[word]
        return number

    def _carry(self, name: Hashable, column: _Column, other: Lexicon) -> None:
        """A column of the words that `other` has, to it; what was numbered here has other numbers there."""
        kind, of = name if isinstance(name, tuple) and len(name) == 2 else ("", None)
        if kind == "part":  # made anew: the inner lexicon is another
            return
        if kind in ("named", "codes") and column.filled:
            key, values = (of if kind == "named" else name), column.values
            distinct = list(self._codes[key])
            used, place = np.unique(values[values >= 0], return_inverse=True)
            other._codes[key] = {distinct[k]: new for new, k in enumerate(used.tolist())}
            values[values >= 0] = place
            if kind == "codes":
                values[values < 0] = -1 - np.flatnonzero(values < 0)
        other._columns[name] = column

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
    """An array that grows at its end, by a quarter: there are many, and some have a hundred bytes a word."""

    def __init__(self) -> None:
        self.filled = 0
        self._room: np.ndarray | None = None

    @property
    def values(self) -> np.ndarray:
        return np.zeros(0) if self._room is None else self._room[: self.filled]

    def of(self, chosen: np.ndarray) -> _Column:
        """Of these words; those that it had not come to are last here too."""
        other = _Column()
        if self.filled:
            other.append(self.values[chosen[: self.filled]])
        return other

    def append(self, new: np.ndarray) -> None:
        total = self.filled + len(new)
        if self._room is None:
            self._room = new.copy()
        elif total > len(self._room):
            larger = np.empty((max(len(self._room) * 5 // 4, total), *new.shape[1:]), dtype=self._room.dtype)
            larger[: self.filled] = self.values
            self._room = larger
        self._room[self.filled : total] = new
        self.filled = total
