"""Many sentence pairs at once, flattened: the coordinates that feature families compute in.

Cells are ordered by pair, then source position m, then target position n; NULL is not among them (a NULL cell
belongs to a source token, and source tokens are ordered by pair, then m).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from ..types import SentencePair
from .canvas import Canvas
from .lexicon import Lexicon
from .meeting import Meeting, Memory, Signal, WordKey

T = TypeVar("T")
Named = tuple[tuple[str, ...], np.ndarray]  # columns' names and a table
MARGIN = 3  # zeros around a pair on a canvas: as far as most families look beyond an edge
PART_PLACES = 40_000
WIDEST = 1.5  # times the narrowest


@dataclass(frozen=True)
class Words:
    """The distinct words of a grid under some key, and where each pair of them meets.

    `values`   the W distinct keys, in order of first appearance (source tokens, then target tokens).
    `source`   [Ts] word of each source token;  `target`  [Tt] word of each target token.
    `left`, `right`  [U] the words of each distinct (source word, target word) pair that meets in a cell.
    `cell`     [C] which of the U pairs meets in each cell.
    """

    values: list
    source: np.ndarray
    target: np.ndarray
    left: np.ndarray
    right: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True)
class Laid:
    """A grid on a canvas: `place` [C] of each cell, `line` [Ts] of each row, `column_line` [Tt] of each column."""

    canvas: Canvas
    place: np.ndarray
    line: np.ndarray
    column_line: np.ndarray

    @staticmethod
    def of(canvas: Canvas, grid: Grid) -> Laid:
        place = np.flatnonzero(canvas.inside)
        line = canvas.line(grid.source_pair, grid.source_position)
        return Laid(canvas, place, line, canvas.turn.line(grid.target_pair, grid.target_position))

    def turn(self, mirror: Grid) -> Laid:
        """For the other side's grid: the same places in its order."""
        return Laid(self.canvas.turn, self.place[mirror.by_column], self.column_line, self.line)


_OTHER_SIDE = {"row": "column", "column": "row", "source": "target", "target": "source"}


@lru_cache(maxsize=1024)
def _other_side(name: str) -> str:
    return re.sub("row|column|source|target", lambda found: _OTHER_SIDE[found[0]], name)


class Grid:
    """Coordinates of all cells of `pairs`.

    `n_source`, `n_target`  [P] lengths;  `source_start`, `target_start`  [P] first flat token of each pair;
    `cell_start`  [P] first cell of each pair.
    Per cell [C]: `pair`, `m`, `n`, and flat token numbers `source_token`, `target_token`.
    Per token: `source_pair`, `source_position` [Ts] and `target_pair`, `target_position` [Tt].
    """

    def __init__(self, pairs: Sequence[SentencePair]) -> None:
        self.pairs = list(pairs)
        self.n_source = np.array([len(p.source) for p in self.pairs], dtype=np.int64)
        self.n_target = np.array([len(p.target) for p in self.pairs], dtype=np.int64)
        self._memory: Memory | None = None
        self._mirror: Grid | None = None
        self._within: tuple[Grid, slice] | None = None
        self._memo: dict[object, object] = {}
        self._shared: dict[object, object] = {}
        self._place()

    def _place(self) -> None:
        self.source_start = np.cumsum(self.n_source) - self.n_source
        self.target_start = np.cumsum(self.n_target) - self.n_target
        number = np.arange(len(self.n_source))
        self.source_pair = np.repeat(number, self.n_source)
        self.target_pair = np.repeat(number, self.n_target)
        self.source_position = np.arange(len(self.source_pair)) - self.source_start[self.source_pair]
        self.target_position = np.arange(len(self.target_pair)) - self.target_start[self.target_pair]
        cells = self.n_source * self.n_target
        self.cell_start = np.cumsum(cells) - cells
        self.n_cells = int(cells.sum())

    # Coordinates of cells are made when they are asked for.

    @cached_property
    def source_token(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.source_pair)), self._row_length)

    @cached_property
    def n(self) -> np.ndarray:
        width = self._row_length  # a row is a run of cells whose target tokens follow one another
        return np.arange(self.n_cells) - np.repeat(np.cumsum(width) - width, width)

    @cached_property
    def pair(self) -> np.ndarray:
        return self.source_pair[self.source_token]

    @cached_property
    def m(self) -> np.ndarray:
        return self.source_position[self.source_token]

    @cached_property
    def target_token(self) -> np.ndarray:
        return self.target_start[self.source_pair][self.source_token] + self.n

    def source_layer(self, name: str) -> list:
        """A layer's values for all source tokens, flat. Missing layers are an error that names the annotator."""
        return [value for p in self.pairs for value in p.source.layer(name)]

    def target_layer(self, name: str) -> list:
        return [value for p in self.pairs for value in p.target.layer(name)]

    @cached_property
    def source_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.source.tokens]

    @cached_property
    def target_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.target.tokens]

    def shift(self, dm: int, dn: int) -> np.ndarray:
        """[C] the cell dm rows and dn columns away, -1 where that is outside the pair."""
        return self.memo(("shift", dm, dn), lambda: self._shift(dm, dn))

    def _shift(self, dm: int, dn: int) -> np.ndarray:
        room = self._room
        inside = (self.m >= -dm) & (self.n >= -dn) & (room[0] > dm) & (room[1] > dn)
        step = dm * self._width + dn
        return np.where(inside, self._number + step, -1)

    @cached_property
    def _width(self) -> np.ndarray:
        """[C] target tokens of each cell's pair: the step from a row to the next."""
        return self.n_target[self.pair]

    @cached_property
    def _room(self) -> tuple[np.ndarray, np.ndarray]:
        """[C] rows from each cell to the end of its pair, and columns."""
        return self.n_source[self.pair] - self.m, self._width - self.n

    @cached_property
    def _number(self) -> np.ndarray:
        return np.arange(self.n_cells)

    def cell_at(self, pair: np.ndarray, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The flat cell of (pair, m, n); -1 where m or n is negative (no such token, e.g. a root's head)."""
        return np.where((m >= 0) & (n >= 0), self.cell_start[pair] + m * self.n_target[pair] + n, -1)

    def flipped(self) -> Grid:
        """The grid of the pairs seen from the other side. What `shared` computes is computed once for the two."""
        if self._mirror is not None:
            return self._mirror
        other = Grid.__new__(Grid)
        other.n_source, other.n_target = self.n_target, self.n_source
        other._memory, other._within = None, None
        other._mirror, other._memo, other._shared = self, {}, self._shared
        other._place()
        return other

    @cached_property
    def pairs(self) -> list[SentencePair]:
        """Set by who makes a grid of pairs; a flipped one seldom needs them."""
        return [pair.flip() for pair in self._mirror.pairs] if self._mirror is not None else []

    @property
    def is_flipped(self) -> bool:
        return self._mirror is not None

    def words(self, key: str | Callable[[str], object] = "token", *layers: str) -> Words:
        """Distinct words: by token, by `key(token)`, or by (token, layer values...)."""
        return self.memo(("words", key, layers), lambda: self._distinct(key, layers))

    def meeting(self, key: WordKey) -> Meeting:
        """The words under a key, numbered for as long as the grid's memory lasts, and what two of them are."""
        return self.memo(("meeting", key), lambda: self._meeting(key))

    def _meeting(self, key: WordKey) -> Meeting:
        if self._mirror is not None:
            return self._mirror.meeting(key).turn(self._mirror.by_column)
        if self._within is not None:
            whole, pairs = self._within
            return whole.meeting(key).slice(*whole._extent(pairs))
        lexicon, known = (Lexicon(key.word), None) if self._memory is None else self._memory.of(key)
        sides = (self.source_tokens, self.source_layer), (self.target_tokens, self.target_layer)
        with lexicon.lock:
            source, target = (lexicon.numbers(key.met(tokens, layer)) for tokens, layer in sides)
        return Meeting(lexicon, known, source, target, (self.source_token, self.target_token))

    def figure(self, signal: Signal, directed: bool = False) -> np.ndarray:
        """[C] a figure of the two words of each cell; the same from either side unless `directed`."""
        if self._mirror is None:
            return self.meeting(signal.key).figure(signal)
        seen = signal.from_the_other_side if directed else signal
        return self.memo(seen, lambda: self._mirror.figure(seen)[self._mirror.by_column])

    def remember(self, memory: Memory) -> Grid:
        """What two words are to each other is asked of a memory from now on."""
        if self._mirror is not None:
            self._mirror.remember(memory)
        self._memory = self._memory or memory
        return self

    def parts(self) -> Iterator[tuple[slice, Grid]]:
        """Grids that stay in a processor's cache, each of pairs that follow one another, and which these are.

        They are the fewer the more the pairs are in order of their targets' lengths, and made anew at each call.
        """
        if not len(self.n_source):
            yield slice(0, 0), self
        elif self._mirror is not None:
            yield from ((pairs, part.flipped()) for pairs, part in self._mirror.parts())
        else:
            yield from ((pairs, self._part(pairs)) for pairs in self._like_widths())

    def _part(self, pairs: slice) -> Grid:
        part = Grid(self.pairs[pairs])
        part._within = self, pairs
        return part

    def _like_widths(self) -> Iterator[slice]:
        width = self.n_target + MARGIN
        places = np.cumsum((self.n_source + MARGIN) * width)
        first = 0
        while first < len(width):
            most = places[first - 1] if first else 0
            wide = (width[first:] > WIDEST * width[first]) | (width[first:] * WIDEST < width[first])
            last = min(np.searchsorted(places, most + PART_PLACES), first + int(np.append(wide, True).argmax()))
            last = max(int(last), first + 1)
            yield slice(first, last)
            first = last

    def _extent(self, pairs: slice) -> tuple[slice, slice, slice]:
        """The source tokens, target tokens and cells of pairs that follow one another."""
        starts, sizes = (
            (self.source_start, self.target_start, self.cell_start),
            (len(self.source_pair), len(self.target_pair), self.n_cells),
        )
        bounds = (np.append(start, size) for start, size in zip(starts, sizes, strict=True))
        return tuple(slice(int(at[pairs.start]), int(at[pairs.stop])) for at in bounds)

    def extent(self, pairs: slice) -> tuple[slice, slice]:
        """The source tokens and the cells of pairs that follow one another."""
        source, _, cells = self._extent(pairs)
        return source, cells

    def laid_out(self, margin: int = MARGIN) -> Laid:
        """The cells on a canvas with at least this margin."""
        if self._mirror is not None:
            return self.memo(("laid out", margin), lambda: self._mirror.laid_out(margin).turn(self._mirror))
        return self.memo(
            ("laid out", margin), lambda: Laid.of(Canvas.of(self.n_source, self.n_target, margin), self)
        )

    def memo(self, key: object, compute: Callable[[], T]) -> T:
        """What several families need of this grid is computed by the first and kept for the others."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]  # type: ignore[return-value]

    def shared(self, key: object, compute: Callable[[], T]) -> T:
        """As `memo`, for what is the same seen from either side: of words, or of pairs of words in any order."""
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]  # type: ignore[return-value]

    def _distinct(self, key: str | Callable[[str], object], layers: tuple[str, ...]) -> Words:
        if self._mirror is not None:  # words and their pairs keep their numbers, so that `shared` fits both
            w = self._mirror.words(key, *layers)
            return Words(w.values, w.target, w.source, w.right, w.left, w.cell[self._mirror.by_column])
        source: list = self.source_tokens
        target: list = self.target_tokens
        if callable(key):
            source, target = [key(t) for t in source], [key(t) for t in target]
        if layers:
            source = list(zip(source, *(self.source_layer(x) for x in layers), strict=True))
            target = list(zip(target, *(self.target_layer(x) for x in layers), strict=True))
        number: dict = {}
        source_ids = np.array([number.setdefault(w, len(number)) for w in source], dtype=np.int64)
        target_ids = np.array([number.setdefault(w, len(number)) for w in target], dtype=np.int64)
        size = max(len(number), 1)
        code = source_ids[self.source_token] * size + target_ids[self.target_token]
        distinct, cell = np.unique(code, return_inverse=True)
        return Words(list(number), source_ids, target_ids, distinct // size, distinct % size, cell)

    def from_either_side(self, key: object, compute: Callable[[], Named]) -> Named:
        """Named columns over the canvas that are the same from either side, but that rows and columns, source and
        target have changed places in their names."""
        flipped, (names, table) = self.shared(key, lambda: (self.is_flipped, compute()))
        return (names if flipped == self.is_flipped else tuple(map(_other_side, names))), table

    # Reductions over a row (a source token's cells) or a column (a target token's cells) of each pair.

    def row_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Ts, ...] the maximum over each source token's cells."""
        return _run_max(values, self._row_length, empty)

    def column_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Tt, ...] the maximum over each target token's cells."""
        return _run_max(values[self.by_column], self._column_length, empty)

    @cached_property
    def _row_length(self) -> np.ndarray:
        return self.n_target[self.source_pair]

    @cached_property
    def _column_length(self) -> np.ndarray:
        return self.n_source[self.target_pair]

    @cached_property
    def by_column(self) -> np.ndarray:
        """[C] cells in the order of their target tokens: that of the flipped grid."""
        within, height = self._number - self.cell_start[self.pair], self.n_source[self.pair]
        return self.cell_start[self.pair] + within % height * self._width + within // height


def _run_max(values: np.ndarray, length: np.ndarray, empty: float) -> np.ndarray:
    """The maximum of each of the runs of `length` that `values` is made of; `empty` where a run is."""
    out = np.full((len(length), *values.shape[1:]), empty, dtype=np.float64)
    some = length > 0
    if some.any():  # empty runs take no room, so the others' beginnings are what reduceat wants
        start = (np.cumsum(length) - length)[some]
        out[some] = np.maximum.reduceat(np.asarray(values, dtype=np.float64), start, axis=0)
    return out
