"""Cells laid out so that a neighbour is a fixed step away: what a family computes of neighbours is slices.

Every pair is a block of rows of one width; zeros (or what a family calls outside) stand between pairs and beside
rows, as far as anyone looks beyond an edge. Grids of pairs of like width waste least. In: lengths. Out: `Canvas`,
which takes values of cells [C] to fields, looks at their neighbours, and reduces rows and columns. A canvas can be
turned: seen from the other side, rows are columns, and every place keeps its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

_REACH = 6  # how far along a diagonal one may look from any place, in steps


@dataclass(frozen=True)
class Canvas:
    """`size` places: `n_rows` rows of `pitch` each. A field has a guard on both ends, so looking needs no check.

    `row_pair` [n_rows] the pair of each row, its margin's too;  `first_row` [P];  `inside` [size] where cells are.
    Rows and columns have figures by `line`: rows in order, or columns in order, `pitch` a pair.
    """

    n_source: np.ndarray
    n_target: np.ndarray
    margin: int
    pitch: int
    first_row: np.ndarray
    row_pair: np.ndarray
    row_position: np.ndarray
    inside: np.ndarray
    turned: bool = False

    @staticmethod
    def of(n_source: np.ndarray, n_target: np.ndarray, margin: int) -> Canvas:
        pitch = int(n_target.max(initial=0)) + margin
        height = n_source + margin
        first_row = np.cumsum(height) - height
        row_pair = np.repeat(np.arange(len(height)), height)
        row_position = np.arange(len(row_pair)) - first_row[row_pair]
        inside = (row_position < n_source[row_pair])[:, None] & (np.arange(pitch) < n_target[:, None])[row_pair]
        return Canvas(n_source, n_target, margin, pitch, first_row, row_pair, row_position, inside.ravel())

    @property
    def turn(self) -> Canvas:
        """The canvas seen from the other side: what was a row is a column."""
        return replace(self, turned=not self.turned)

    @property
    def n_rows(self) -> int:
        return len(self.row_pair)

    @property
    def size(self) -> int:
        return self.n_rows * self.pitch

    @property
    def _guard(self) -> int:
        return max(_REACH, self.margin) * (self.pitch + 1)

    @cached_property
    def distance(self) -> np.ndarray:
        """[size] how far from each other two words stand in their sentences, as shares of these."""
        row = self.row_position / np.maximum(self.n_source, 1)[self.row_pair]
        column = np.arange(self.pitch) / np.maximum(self.n_target, 1)[:, None]
        return np.abs(row[:, None] - column[self.row_pair]).ravel()

    # Places

    def place(self, pair: np.ndarray, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The place of a cell, in this canvas' own terms: m is a row of it as it is turned."""
        if self.turned:
            m, n = n, m
        return (self.first_row[pair] + m) * self.pitch + n

    def line(self, pair: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Which of the lines of `row_max` and its like belongs to a row."""
        return pair * self.pitch + position if self.turned else self.first_row[pair] + position

    # Fields

    def field(self, values: np.ndarray, place: np.ndarray | None = None) -> np.ndarray:
        """A field of values on all places [size], or of cells at their places; 0 elsewhere."""
        out = np.zeros(self.size + 2 * self._guard, dtype=values.dtype)
        inner = out[self._guard : self._guard + self.size]
        if place is None:
            inner[:] = values
        else:
            inner[place] = values
        return out

    def near(self, field: np.ndarray, dm: int, dn: int) -> np.ndarray:
        """[size] the field's values dm rows and dn columns away, a view."""
        if self.turned:
            dm, dn = dn, dm
        start = self._guard + dm * self.pitch + dn
        return field[start : start + self.size]

    # Rows and columns. `lines` are those of rows: [n_rows], or where turned [P * pitch].

    def row_max(self, values: np.ndarray) -> np.ndarray:
        """[lines] the largest value of each row, margins included."""
        return self._max(values, self.turned)

    def column_max(self, values: np.ndarray) -> np.ndarray:
        return self._max(values, not self.turned)

    def row_count(self, true: np.ndarray) -> np.ndarray:
        """[lines] how many are true in each row."""
        return self._count(true, self.turned)

    def column_count(self, true: np.ndarray) -> np.ndarray:
        return self._count(true, not self.turned)

    def along_rows(self, lines: np.ndarray) -> np.ndarray:
        """[size] each row's figure in all its places."""
        return self._along(lines, self.turned)

    def along_columns(self, lines: np.ndarray) -> np.ndarray:
        return self._along(lines, not self.turned)

    def no_positions(self) -> tuple[np.ndarray, np.ndarray]:
        """-1 for each row, and for each column: what `meet` takes, to be filled."""
        rows, columns = np.full(self.n_rows, -1), np.full(len(self.n_source) * self.pitch, -1)
        return (columns, rows) if self.turned else (rows, columns)

    def meet(self, values: np.ndarray, row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[size] twice, for each row and column: the value where the row `row` [lines] of the same pair meets the
        column `column`, and whether there are such; both are positions in the sentence, -1 for none."""
        place, there = self.meeting(row, column)
        return values[place], there

    def meeting(self, row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `meet`, but the places; one in the margin where there are none."""
        if self.turned:
            row, column = column, row
        column = column.reshape(-1, self.pitch)
        there = (row >= 0)[:, None] & (column >= 0)[self.row_pair]
        row = np.where(row < 0, self.n_source[self.row_pair], row) + self.first_row[self.row_pair]  # the margin
        column = np.where(column < 0, self.pitch - 1, column)
        return ((row * self.pitch)[:, None] + column[self.row_pair]).ravel(), there.ravel()

    def best_other(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[size] twice: the best value among the other places of each place's row, and of its column."""
        one, other = self._other_in_line(values, False), self._other_in_line(values, True)
        return (other, one) if self.turned else (one, other)

    def _square(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(self.n_rows, self.pitch)

    def _max(self, values: np.ndarray, down: bool) -> np.ndarray:
        square = self._square(values)
        return (
            np.maximum.reduceat(square, self.first_row, axis=0).ravel() if down else _upright(square).max(axis=0)
        )

    def _count(self, true: np.ndarray, down: bool) -> np.ndarray:
        square = self._square(true)
        if down:
            return np.add.reduceat(square, self.first_row, axis=0, dtype=np.int64).ravel()
        return _upright(square).sum(axis=0)

    def _along(self, lines: np.ndarray, down: bool) -> np.ndarray:
        if down:
            return lines.reshape(-1, self.pitch)[self.row_pair].ravel()
        return np.repeat(lines, self.pitch)

    def _other_in_line(self, values: np.ndarray, down: bool) -> np.ndarray:
        """The maximum of each line, but for the place that holds it (the first of equals) the next best."""
        best = self._max(values, down)
        top = self._first(values == self._along(best, down), down)
        rest = values.copy()
        rest[top] = -np.inf
        out = self._along(best, down)
        out[top] = self._along(self._max(rest, down), down)[top] if down else self._max(rest, down)
        return out

    def _first(self, true: np.ndarray, down: bool) -> np.ndarray:
        """The first place of each line where `true` holds; there is one in each."""
        if not down:
            return np.arange(self.n_rows) * self.pitch + self._square(true).argmax(axis=1)
        row = np.where(self._square(true), np.arange(self.n_rows)[:, None], self.n_rows)
        first = np.minimum.reduceat(row, self.first_row, axis=0)
        return (first * self.pitch + np.arange(self.pitch)).ravel()


def _upright(square: np.ndarray) -> np.ndarray:
    """Rows as columns: numpy reduces short rows one by one, ten times slower than all of them side by side."""
    return np.ascontiguousarray(square.T)


def table_of(columns: Mapping[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray]:
    """Named columns as names and a table. They are shares, margins and yes or no, and these tables are the largest
    there are: half the precision, and one column after the other in memory, for that is how they come."""
    table = np.empty((len(columns), len(next(iter(columns.values())))), dtype=np.float32)
    for row, values in zip(table, columns.values(), strict=True):
        row[:] = values
    return tuple(columns), table.T
