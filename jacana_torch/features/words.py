"""Words and pairs of words of one batch: what families compute once for each, however often it occurs.

Nothing here outlives its batch. When aligning, `known_pairs` remembers signals of word pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter
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
        columns = [[value for sentence in sentences for value in sentence.layer(name)] for name in self.layers]
        if self.form is not None:
            columns.insert(0, list(map(self.form, chain.from_iterable(map(attrgetter("tokens"), sentences)))))
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
