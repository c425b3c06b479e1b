"""Geometry of many sentence pairs stored flattened: where pairs, tokens and cells begin, and how they correspond.

The tokens of one side follow one another, pair by pair. A pair of M source and N target tokens has M * N cells in
row-major order: by source position m, then by target position n. NULL has no cells here.

A `PaddedGrid` stores the cells so that a neighbour is a fixed step away, and neighbours are slices. Each pair is a
block of rows of one width, `pitch`; empty places stand between pairs and beside rows, as far as families look
beyond an edge. Pairs of similar width waste least.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ROW, COLUMN = 0, 1
_REACH = 6  # steps that a family may look along a diagonal from any place


def starts(lengths: Ints) -> Ints:
    """[K] where each of K consecutive runs of these lengths begins."""
    return np.cumsum(lengths) - lengths


def run_of(lengths: Ints) -> Ints:
    """[sum(lengths)] the run that each element belongs to: lengths 2, 0, 1 give 0, 0, 2."""
    return np.repeat(np.arange(len(lengths)), lengths)


def positions(lengths: Ints) -> Ints:
    """[sum(lengths)] the position of each element in its run: lengths 2, 0, 1 give 0, 1, 0."""
    return np.arange(int(lengths.sum())) - np.repeat(starts(lengths), lengths)


def run_max(values: np.ndarray, lengths: Ints, empty: float = 0.0) -> np.ndarray:
    """[K, ...] the maximum of each run of `values` [sum(lengths), ...]; `empty` for a run of no elements."""
    out = np.full((len(lengths), *values.shape[1:]), empty, dtype=values.dtype)
    some = lengths > 0
    if some.any():  # reduceat has no notion of empty runs, which take no room
        out[some] = np.maximum.reduceat(values, starts(lengths)[some], axis=0)
    return out


def nearest(marked: np.ndarray, run: np.ndarray, step: int) -> np.ndarray:
    """[T] the nearest marked element before (step -1) or after (step 1) each in its run; -1 without one.

    `marked` [T] bool; `run` [T] the number of each element's run, ascending.
    """
    if step > 0:
        found = nearest(marked[::-1], run[::-1], -1)[::-1]
        return np.where(found < 0, -1, len(marked) - 1 - found)
    last = np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))
    found = np.append(-1, last)[:-1]
    return np.where((found >= 0) & (run[found] == run), found, -1)


class Geometry:
    """Coordinates of all tokens and cells of P pairs of the given lengths.

    Per pair [P]: `n_source`, `n_target`, the first tokens `source_start` and `target_start`, the first cell
    `cell_start`. Per token [Ts] or [Tt]: `source_pair`, `source_position`, `target_pair`, `target_position`.
    Per cell [C]: `source_token`, `n` and, computed on first use, `target_token`, `pair`, `m`. `n_tokens` is Ts,
    the number of source tokens, and `n_cells` is C.
    """

    def __init__(self, n_source: Ints, n_target: Ints) -> None:
        self.n_source, self.n_target = n_source, n_target
        self.source_start, self.target_start = starts(n_source), starts(n_target)
        self.cell_start = starts(n_source * n_target)
        self.source_pair, self.target_pair = run_of(n_source), run_of(n_target)
        self.source_position, self.target_position = positions(n_source), positions(n_target)
        width = n_target[self.source_pair]  # of the row of each source token
        self.source_token, self.n = run_of(width), positions(width)
        self.n_tokens, self.n_cells = len(self.source_pair), len(self.n)

    def spans(self, pairs: slice) -> tuple[slice, slice, slice]:
        """The source tokens, the target tokens and the cells of consecutive pairs `start:stop`."""
        first, last, cells = pairs.start, pairs.stop, self.n_source * self.n_target
        return (
            slice(int(self.n_source[:first].sum()), int(self.n_source[:last].sum())),
            slice(int(self.n_target[:first].sum()), int(self.n_target[:last].sum())),
            slice(int(cells[:first].sum()), int(cells[:last].sum())),
        )

    @cached_property
    def target_token(self) -> Ints:
        return self.target_start[self.source_pair][self.source_token] + self.n

    @cached_property
    def pair(self) -> Ints:
        return self.source_pair[self.source_token]

    @cached_property
    def m(self) -> Ints:
        return self.source_position[self.source_token]

    @cached_property
    def by_column(self) -> Ints:
        """[C] cells in the order of their target tokens: `values[by_column]` has the flipped pairs' order."""
        height = self.n_source[self.target_pair]
        first = self.cell_start[self.target_pair] + self.target_position
        return np.repeat(first, height) + positions(height) * np.repeat(self.n_target[self.target_pair], height)

    def cell_at(self, pair: Ints, m: Ints, n: Ints) -> Ints:
        """The cells at these positions of these pairs; -1 where a position is -1."""
        return np.where((m >= 0) & (n >= 0), self.cell_start[pair] + m * self.n_target[pair] + n, -1)

    def shift(self, dm: int, dn: int) -> Ints:
        """[C] the cell dm rows and dn columns away from each cell; -1 outside of its pair."""
        height, width = self.n_source[self.pair], self.n_target[self.pair]
        m, n = self.m + dm, self.n + dn
        inside = (m >= 0) & (m < height) & (n >= 0) & (n < width)
        return np.where(inside, np.arange(self.n_cells) + dm * width + dn, -1)

    def row_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Ts, ...] the maximum of `values` [C, ...] over the cells of each source token."""
        return run_max(values, self.n_target[self.source_pair], empty)

    def column_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Tt, ...] the maximum of `values` [C, ...] over the cells of each target token."""
        return run_max(values[self.by_column], self.n_source[self.target_pair], empty)


class PaddedGrid:
    """The places of a grid's cells: `n_rows` rows of `pitch` places, `size` in all.

    `place` [C] is the place of each cell; `inside` [size] holds where there is one, and `ceiling` [size] is
    infinite there and minus infinity elsewhere; `distance` [size] is that of the relative positions of two words
    in their sentences, 0 to 1. A *field* has the values of
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
        self.ceiling = np.where(self.inside, np.float32(np.inf), np.float32(-np.inf))
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
