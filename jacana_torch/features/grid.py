"""The grid: many sentence pairs at once, flattened, which is what feature families compute on.

A `Grid` has the coordinates of all cells (`util.geometry.Geometry`), the words of both sides and their distinct
pairs, and a memo for what several families need. `parts` cuts it into pieces that fit the CPU's cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from ..errors import PairError
from ..types import SentencePair
from ..util.geometry import Geometry, Ints, PaddedGrid
from .words import KnownPairs, Lexicon, Signal, WordKey, WordPairs

T = TypeVar("T")
Named = tuple[tuple[str, ...], "np.ndarray | ColumnTable"]  # names of columns, and a table of them
MARGIN = 3  # padding around each pair in a padded grid: as far as most families look beyond an edge
PART_PLACES = 40_000  # of a padded grid: what the computations on a part touch stays in the CPU's cache
WIDEST = 1.5  # width of the widest pair of a part, as a multiple of the first one's


@dataclass(frozen=True)
class WordTable:
    """The words of a grid under one key, and the distinct pairs of them that its cells hold.

    `source` [Ts] and `target` [Tt] are the word of each token, as numbers in the lexicon. `cells` are twice
    [C], the source and the target token of each cell; of a flipped grid, the other grid's table, and its cells in
    this grid's order.
    """

    lexicon: Lexicon
    source: Ints
    target: Ints
    cells: tuple[Ints | WordTable, Ints] = field(repr=False)  # not the grid: a cycle would keep its memory

    @cached_property
    def _pairs_and_cell(self) -> tuple[WordPairs, Ints]:
        rows, columns = self.cells
        if isinstance(rows, WordTable):
            return rows.pairs.flipped(), rows.cell[columns]
        size = max(len(self.lexicon.words), 1)
        code, cell = np.unique(self.source[rows] * size + self.target[columns], return_inverse=True)
        return WordPairs(self.lexicon, code // size, code % size), cell

    @property
    def pairs(self) -> WordPairs:
        """The U distinct pairs of a source and a target word that share a cell."""
        return self._pairs_and_cell[0]

    @property
    def cell(self) -> Ints:
        """[C] the word pair of each cell."""
        return self._pairs_and_cell[1]


class Grid(Geometry):
    """Sentence pairs, the coordinates of all their cells, and what families compute of them once.

    `mirror` makes the grid of the same pairs seen from the other side (use `flipped`), `whole` one of consecutive
    pairs of a larger grid (use `parts`). Signals of word pairs come from `known`, if that is set.
    """

    def __init__(
        self,
        pairs: Sequence[SentencePair],
        mirror: Grid | None = None,
        whole: tuple[Grid, slice] | None = None,
    ) -> None:
        self._mirror, self._whole = mirror, whole
        self.known: KnownPairs | None = None
        self.is_flipped = mirror is not None
        self._memo: dict[Hashable, Any] = {}
        self._shared: dict[Hashable, Any] = {}
        if mirror is not None:
            super().__init__(mirror.n_target, mirror.n_source)
            self._shared = mirror._shared
        else:
            self.pairs = list(pairs)
            sources, targets = map(attrgetter("source"), pairs), map(attrgetter("target"), pairs)
            sizes = list(map(len, sources)), list(map(len, targets))
            super().__init__(*np.array(sizes, dtype=np.int64).reshape(2, -1))

    @cached_property
    def pairs(self) -> list[SentencePair]:
        return [pair.flip() for pair in self._mirror.pairs] if self._mirror is not None else []

    def source_layer(self, name: str) -> list[Any]:
        """The values of a layer for all source tokens. Raises MissingLayer, which names the annotator to use."""
        return [value for pair in self.pairs for value in pair.source.layer(name)]

    def target_layer(self, name: str) -> list[Any]:
        """As `source_layer`, for all target tokens."""
        return [value for pair in self.pairs for value in pair.target.layer(name)]

    @cached_property
    def source_tokens(self) -> list[str]:
        return [token for pair in self.pairs for token in pair.source.tokens]

    @cached_property
    def target_tokens(self) -> list[str]:
        return [token for pair in self.pairs for token in pair.target.tokens]

    # Both directions

    def flipped(self) -> Grid:
        """The grid of the pairs seen from the other side; the two share what `shared` computes."""
        return self._mirror or Grid([], mirror=self)

    def memo(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of `compute()`, computed by the first family that asks for the key."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value

    def shared(self, key: Hashable, compute: Callable[[], T]) -> T:
        """As `memo`, for a value that is the same from either side, and is computed once for both grids."""
        if key not in self._shared:
            self._shared[key] = compute()
        value: T = self._shared[key]
        return value

    def shared_columns(self, key: Hashable, compute: Callable[[], Named]) -> Named:
        """Columns over the padded grid that are the same from either side once "row" and "column", "source" and
        "target" have changed places in their names."""
        if key not in self._shared:
            self._shared[key] = self.is_flipped, compute()
        flipped, (names, table) = self._shared[key]
        return (names if flipped == self.is_flipped else tuple(map(_other_side, names))), table

    def forget(self, everything: bool = False) -> None:
        """Forget what families computed for this side alone, but for what most of them read; or `everything`.

        Most read numbers of words, the layout and similarities. What is asked for again is computed again.
        """
        if everything:
            self._memo = {}
            self._shared.clear()
            return
        kept = {}
        for key, value in self._memo.items():
            often = isinstance(key, WordKey) or key == ("padded", MARGIN)
            if isinstance(key, Signal):
                often = not self.is_flipped and value.dtype.itemsize < 8
            if often:
                kept[key] = value
        self._memo = kept

    def forget_shared(self) -> None:
        """Forget what families computed for both sides."""
        self._shared.clear()

    # Words

    def words(self, key: WordKey) -> WordTable:
        """The words of all tokens under a key, and the distinct pairs of them."""
        if key not in self._memo:
            if self._mirror is not None:
                seen = self._mirror.words(key)
                words = WordTable(seen.lexicon, seen.target, seen.source, (seen, self._mirror.by_column))
            elif self._whole is not None:
                whole, pairs = self._whole
                seen, (source, target, _) = whole.words(key), whole.spans(pairs)
                cells = self.source_token, self.target_token
                words = WordTable(seen.lexicon, seen.source[source], seen.target[target], cells)
            else:
                sides = map(attrgetter("source"), self.pairs), map(attrgetter("target"), self.pairs)
                columns: dict[object, tuple[list[Any], Ints]] = self.memo("columns of words", dict)
                distinct, number = key.words(list(chain.from_iterable(sides)), columns)
                lexicon = Lexicon(distinct) if self.known is None else self.known.lexicon(key, distinct, number)
                cells = self.source_token, self.target_token
                words = WordTable(lexicon, number[: self.n_tokens], number[self.n_tokens :], cells)
            self._memo[key] = words
        found: WordTable = self._memo[key]
        return found

    def per_cell(self, signal: Signal, directed: bool = False) -> np.ndarray:
        """[C] the signal of the two words of each cell; the same from either side unless `directed`."""
        if directed and self.is_flipped:
            signal = replace(signal, flipped=not signal.flipped)
        if signal not in self._memo:
            if self._mirror is not None:
                values = self._mirror.per_cell(signal)[self._mirror.by_column]
            elif self._whole is not None:
                whole, pairs = self._whole
                values = whole.per_cell(signal)[whole.spans(pairs)[2]]
            elif self.known is not None:
                tokens = self.source_token, self.target_token
                known = self.known.per_cell(signal, self.words(signal.key), *tokens)
                for one, of_cells in known.items():
                    self._memo[one] = of_cells
                values = known[signal]
            else:
                words = self.words(signal.key)
                values = signal.of(words.pairs)[words.cell]
            self._memo[signal] = values
        found: np.ndarray = self._memo[signal]
        return found

    def per_token(
        self, key: Hashable, compute: Callable[[Grid], tuple[np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """[..., Ts] and [..., Tt] values of the source and the target tokens, the same from either side.

        They are computed of the whole grid at once: tokens in them have to be positions in their sentences.
        """
        if self._mirror is not None:
            target, source = self._mirror.per_token(key, compute)
            return source, target
        if self._whole is None:
            return self.memo(key, partial(compute, self))
        whole, pairs = self._whole
        (source, target), (sources, targets, _) = whole.per_token(key, compute), whole.spans(pairs)
        return source[..., sources], target[..., targets]

    # Layouts

    def padded(self, margin: int = MARGIN) -> PaddedGrid:
        """The cells with at least `margin` empty places around each pair, so that neighbours are slices."""
        key = "padded", margin
        if key not in self._memo:
            mirror = self._mirror
            padded = (
                PaddedGrid(self, margin) if mirror is None else mirror.padded(margin).flipped(mirror.by_column)
            )
            self._memo[key] = padded
        found: PaddedGrid = self._memo[key]
        return found

    def parts(self) -> Iterator[tuple[slice, Grid]]:
        """Grids of consecutive pairs that fit the CPU's cache, and which pairs each has.

        The more the pairs are in order of target length, the fewer there are. Each call makes new ones.
        """
        if self._mirror is not None:
            for pairs, part in self._mirror.parts():
                yield pairs, part.flipped()
            return
        width = self.n_target + MARGIN
        places = np.cumsum((self.n_source + MARGIN) * width)
        if len(places) < 2:
            yield slice(0, len(places)), self
            return
        first, used = 0, 0
        while first < len(width):
            fits = int(np.searchsorted(places, used + PART_PLACES, side="right"))
            other = (width[first:fits] > WIDEST * width[first]) | (width[first:fits] * WIDEST < width[first])
            last = max(first + int(np.append(other, True).argmax()), first + 1)
            yield slice(first, last), Grid(self.pairs[first:last], whole=(self, slice(first, last)))
            first, used = last, int(places[last - 1])


_SWAPPED = {"row": "column", "column": "row", "source": "target", "target": "source"}


@lru_cache(maxsize=1024)
def _other_side(name: str) -> str:
    parts = re.split("(row|column|source|target)", name)
    return "".join(map(_SWAPPED.get, parts, parts))


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A table [R, K] whose columns are arrays of their own: of truth values, or of single precision.

    `truth` and `shares` say which columns are of either sort. A byte of `octets` has the truth values of a row in
    eight columns of `truth`: their product with weights is one look at the sums of all choices of eight weights.
    NumPy takes it for the whole table, in single precision.
    """

    columns: tuple[np.ndarray, ...]
    truth: list[int]
    shares: list[int]
    octets: list[np.ndarray]
    shape: tuple[int, int]

    def __matmul__(self, weights: np.ndarray) -> np.ndarray:
        product = np.zeros(self.shape[0], weights.dtype)
        for number, octet in enumerate(self.octets):
            own = weights[self.truth[8 * number : 8 * number + 8]]
            product += (_CHOICES[:, 8 - len(own) :] @ own).take(octet)
        for k in self.shares:
            product += self.columns[k] * weights[k]
        return product

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        table = np.empty(self.shape[::-1], dtype=dtype or np.float32)
        for row, values in zip(table, self.columns, strict=True):
            row[:] = values
        return np.asarray(table.T)

    def __getitem__(self, key: Any) -> np.ndarray:
        chosen: np.ndarray = np.asarray(self)[key]
        return chosen


_CHOICES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)  # [256, 8] of eight


def table_of(columns: Mapping[str, np.ndarray]) -> Named:
    """Named columns as names and a table.

    The tables are the largest arrays there are, and hold shares, margins and truth values: single precision is
    enough, and a byte for a truth value.
    """
    size, kept, truth, shares, octets = len(next(iter(columns.values()))), list[np.ndarray](), list[int](), [], []
    for k, values in enumerate(columns.values()):
        if len(values) != size:
            raise ValueError(f"columns of {size} and of {len(values)} rows do not make a table")
        if values.dtype != bool:
            shares.append(k)
            kept.append(values.astype(np.float32, copy=False))
            continue
        if len(truth) % 8 == 0:
            octets.append(np.zeros(size, np.uint8))
        truth.append(k)
        kept.append(values)
        octets[-1] += octets[-1]  # the bits of earlier columns move up
        octets[-1] += values
    return tuple(columns), ColumnTable(tuple(kept), truth, shares, octets, (size, len(kept)))


LARGEST_PAIR = 16_000_000  # cells of one pair; the features of more would not fit into a laptop's memory
LONGEST_SIDE = 10_000  # tokens; the steps between any two of them have scores


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Yield grids of at most `most_cells` cells (a larger pair comes alone), and the places of their pairs.

    Pairs without words on a side are left out, and pairs with short targets come first. A pair beyond LARGEST_PAIR
    or LONGEST_SIDE is an error: it would take an hour.
    """
    n_source = list(map(len, map(attrgetter("source"), pairs)))
    n_target = list(map(len, map(attrgetter("target"), pairs)))
    for m, n in zip(n_source, n_target, strict=True):
        if m * n > LARGEST_PAIR or (m and n and max(m, n) > LONGEST_SIDE):
            raise PairError(
                f"a pair of {m} x {n} tokens is too large ({LARGEST_PAIR:,} cells and {LONGEST_SIDE:,} tokens a "
                "side are the limits): split it into sentences"
            )
    places: list[int] = []
    cells = 0
    for place in sorted(range(len(pairs)), key=n_target.__getitem__):
        m, n = n_source[place], n_target[place]
        if places and cells + m * n > most_cells:
            yield places, Grid(list(map(pairs.__getitem__, places)))
            places, cells = [], 0
        if m and n:
            places.append(place)
            cells += m * n
    if places:
        yield places, Grid(list(map(pairs.__getitem__, places)))
