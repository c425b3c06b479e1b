"""Where the cells of many sentence pairs are, once these are flattened: lengths in, coordinates out.

Cells are ordered by pair, then source position m, then target position n; NULL is not among them (a NULL cell
belongs to a source token, and source tokens are ordered by pair, then m).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

MARGIN = 3  # zeros around a pair on a canvas: as far as most families look beyond an edge
PART_PLACES = 40_000
WIDEST = 1.5  # times the narrowest


class Coordinates:
    """Coordinates of all cells of pairs of the given lengths, made when they are asked for.

    `n_source`, `n_target`  [P] lengths;  `source_start`, `target_start`  [P] first flat token of each pair;
    `cell_start`  [P] first cell of each pair.
    Per cell [C]: `pair`, `m`, `n`, and flat token numbers `source_token`, `target_token`.
    Per token: `source_pair`, `source_position` [Ts] and `target_pair`, `target_position` [Tt].
    """

    def __init__(self, n_source: np.ndarray, n_target: np.ndarray) -> None:
        self.n_source, self.n_target = n_source, n_target
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

    def shift(self, dm: int, dn: int) -> np.ndarray:
        """[C] the cell dm rows and dn columns away, -1 where that is outside the pair."""
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

    # Pairs that follow one another

    def extent(self, pairs: slice) -> tuple[slice, slice]:
        """The source tokens and the cells of pairs that follow one another."""
        source, _, cells = self._extent(pairs)
        return source, cells

    def _extent(self, pairs: slice) -> tuple[slice, slice, slice]:
        """The source tokens, target tokens and cells of pairs that follow one another."""

        def between(start: np.ndarray, size: int) -> slice:
            bounds = np.append(start, size)
            return slice(int(bounds[pairs.start]), int(bounds[pairs.stop]))

        return (
            between(self.source_start, len(self.source_pair)),
            between(self.target_start, len(self.target_pair)),
            between(self.cell_start, self.n_cells),
        )

    def like_widths(self) -> Iterator[slice]:
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
    out = np.full((len(length), *values.shape[1:]), empty, dtype=values.dtype)
    some = length > 0
    if some.any():  # empty runs take no room, so the others' beginnings are what reduceat wants
        start = (np.cumsum(length) - length)[some]
        out[some] = np.maximum.reduceat(values, start, axis=0)
    return out
