"""Geometry of many sentence pairs stored flattened: where pairs, tokens and cells begin, and how they correspond.

The tokens of one side follow one another, pair by pair. A pair of M source and N target tokens has M * N cells in
row-major order: by source position m, then by target position n. NULL has no cells here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


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
        """[C] cells in the order of their target tokens: `values[by_column]` are those of the flipped pairs."""
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
