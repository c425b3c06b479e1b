"""The padded grid: cells stored so that a neighbour is a fixed step away, and neighbours are slices.

Each pair is a block of rows of one width, `pitch`; empty places stand between pairs and beside rows, as far as
families look beyond an edge. Grids of pairs of similar width waste least.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from ..util.geometry import Geometry, Ints, positions, run_of, starts

ROW, COLUMN = 0, 1
_REACH = 6  # steps that a family may look along a diagonal from any place


class PaddedGrid:
    """The places of a grid's cells: `n_rows` rows of `pitch` places, `size` in all.

    `place` [C] is the place of each cell; `inside` [size] holds where there is one; `distance` [size] is that of
    the relative positions of two words in their sentences, 0 to 1. A *field* has the values of
    all places, and `near` reads those of their neighbours from it. *Lines* are the rows, or the columns, of all
    pairs, padding included: `line` [Ts] and `column_line` [Tt] are those of the tokens. Flipping exchanges rows
    and columns, and every place keeps its number.
    """

    def __init__(self, geometry: Geometry, margin: int) -> None:
        self.n_source, self.n_target, self.margin = geometry.n_source, geometry.n_target, margin
        height = self.n_source + margin
        self.pitch = int(self.n_target.max(initial=0)) + margin
        self.first_row, self.row_pair, self.row_position = starts(height), run_of(height), positions(height)
        self.n_rows = len(self.row_pair)
        self.size = self.n_rows * self.pitch
        self._down = COLUMN  # the axis whose lines run down the stored rows
        used_rows = self.row_position < self.n_source[self.row_pair]
        used = used_rows[:, None] & (np.arange(self.pitch) < self.n_target[:, None])[self.row_pair]
        self.inside = used.ravel()
        self.place: Ints = np.flatnonzero(self.inside)
        self.line: Ints = np.flatnonzero(used_rows)
        row = self.row_position / np.maximum(self.n_source, 1)[self.row_pair]
        column = np.arange(self.pitch) / np.maximum(self.n_target, 1)[:, None]
        self.distance = np.abs(row[:, None] - column[self.row_pair]).ravel()
        self.column_line: Ints = geometry.target_pair * self.pitch + geometry.target_position
        self._guard = max(_REACH, margin) * (self.pitch + 1)  # places before and after a field

    def flipped(self, by_column: Ints) -> PaddedGrid:
        """The same places for the flipped grid, whose cells have the order `by_column`."""
        other = copy(self)
        other._down, other.place = 1 - self._down, self.place[by_column]
        other.line, other.column_line = self.column_line, self.line
        return other

    # Fields

    def field(self, values: np.ndarray, place: Ints | None = None) -> np.ndarray:
        """A field of the values of all places [size], or of some places; 0 elsewhere."""
        field: np.ndarray = np.zeros(self.size + 2 * self._guard, dtype=values.dtype)
        inner = field[self._guard : self._guard + self.size]
        inner[slice(None) if place is None else place] = values
        return field

    def near(self, field: np.ndarray, dm: int, dn: int) -> np.ndarray:
        """[size] the values of a field dm rows and dn columns away from each place, a view."""
        down, right = (dn, dm) if self._down == ROW else (dm, dn)
        start = self._guard + down * self.pitch + right
        return field[start : start + self.size]

    # Rows and columns

    def max(self, values: np.ndarray, axis: int) -> np.ndarray:
        """[lines] the largest value of each row or column, padding included."""
        square = values.reshape(self.n_rows, self.pitch)
        if axis == self._down:
            columns: np.ndarray = np.maximum.reduceat(square, self.first_row, axis=0)
            return columns.ravel()
        # numpy reduces many short rows one by one, ten times slower than side by side
        rows: np.ndarray = np.ascontiguousarray(square.T).max(axis=0)
        return rows

    def count(self, true: np.ndarray, axis: int) -> np.ndarray:
        """[lines] how many values of each row or column are true."""
        square = true.reshape(self.n_rows, self.pitch)
        if axis == self._down:
            return np.add.reduceat(square, self.first_row, axis=0, dtype=np.int64).ravel()
        rows: np.ndarray = np.ascontiguousarray(square.T).sum(axis=0)
        return rows

    def along(self, lines: np.ndarray, axis: int) -> np.ndarray:
        """[size] the value of each row or column in all of its places."""
        if axis == self._down:
            return lines.reshape(-1, self.pitch)[self.row_pair].ravel()
        return np.repeat(lines, self.pitch)

    def lines(self, values: np.ndarray, axis: int, empty: float = -1) -> np.ndarray:
        """[..., lines] values [..., T] of source tokens (axis ROW) or target tokens; `empty` in the padding."""
        n_lines = len(self.n_source) * self.pitch if axis == self._down else self.n_rows
        out = np.full((*values.shape[:-1], n_lines), empty, dtype=values.dtype)
        out[..., self.column_line if axis == COLUMN else self.line] = values
        return out

    def crossing(self, row: Ints, column: Ints) -> tuple[Ints, np.ndarray]:
        """[size] twice: for the place (r, c), the place (row[r], column[c]), and whether there is one.

        Both [lines] are positions in the sentences of the same pair, and -1 for none.
        """
        if self._down == ROW:
            row, column = column, row
        column = column.reshape(-1, self.pitch)
        found = (row >= 0)[:, None] & (column >= 0)[self.row_pair]
        row = np.where(row < 0, self.n_source[self.row_pair], row) + self.first_row[self.row_pair]  # the padding
        column = np.where(column < 0, self.pitch - 1, column)
        return ((row * self.pitch)[:, None] + column[self.row_pair]).ravel(), found.ravel()

    def best_other(self, values: np.ndarray, axis: int) -> np.ndarray:
        """[size] the largest value among the other places of each place's row or column."""
        best = self.max(values, axis)
        out = self.along(best, axis)
        holds = (values == out).reshape(self.n_rows, self.pitch)
        if axis == self._down:  # the first place of each line that holds its largest value
            row = np.where(holds, np.arange(self.n_rows)[:, None], self.n_rows)
            first = np.minimum.reduceat(row, self.first_row, axis=0)
            top = (first * self.pitch + np.arange(self.pitch)).ravel()
        else:
            top = np.arange(self.n_rows) * self.pitch + holds.argmax(axis=1)
        rest = values.copy()
        rest[top] = -np.inf
        out[top] = self.max(rest, axis)
        return out


def table_of(columns: Mapping[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray]:
    """Named columns as names and a table.

    The tables are the largest arrays there are, and hold shares, margins and truth values: single precision is
    enough. Columns are contiguous, as they are computed one by one.
    """
    table = np.empty((len(columns), len(next(iter(columns.values())))), dtype=np.float32)
    for row, values in zip(table, columns.values(), strict=True):
        row[:] = values
    return tuple(columns), table.T
