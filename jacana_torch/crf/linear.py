"""Linear scores of many cells, and their transpose: feature blocks and a weight vector in, one score a cell out.

A block is a table of distinct rows and an index into it, so a score is one small product and a gather, and the
gradient a scatter and one small product. Blocks that share an index are joined first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# (column numbers [K], table [R, K] or None for one-hot, index [C] or None): a features.Block, its names looked up
RawBlock = tuple[np.ndarray, "np.ndarray | None", "np.ndarray | None"]


_SLAB = 4096  # rows


@dataclass(frozen=True)
class _Part:
    """One table on the device; rows of `index` past the table (-1 turned into R) score nothing."""

    columns: Tensor  # [K]
    table: Tensor | None  # [R, K]
    index: Tensor | None  # [C] in 0..R, where R is the empty row
    n_rows: int


class LinearScores:
    """X·w and Xᵀ·g for the matrix X that blocks describe, without ever writing X down."""

    def __init__(
        self, blocks: Iterable[RawBlock], n_cells: int, n_weights: int, dtype: torch.dtype, device: str
    ) -> None:
        self.n_cells, self.n_weights = n_cells, n_weights
        self.parts = [_part(block, dtype, device) for block in _joined(blocks)]
        self.dtype, self.device = dtype, device

    def scores(self, weights: Tensor) -> Tensor:
        """[n_weights] -> [n_cells]"""
        total = torch.zeros(self.n_cells, dtype=self.dtype, device=self.device)
        for part in self.parts:
            chosen = weights[part.columns]  # [K]
            per_row = chosen if part.table is None else part.table @ chosen  # [R]
            if part.index is not None:
                per_row = torch.cat([per_row, per_row.new_zeros(1)])[part.index]  # [C]
            total += per_row
        return total

    def transpose(self, gradient: Tensor) -> Tensor:
        """[n_cells] -> [n_weights]"""
        total = torch.zeros(self.n_weights, dtype=self.dtype, device=self.device)
        for part in self.parts:
            per_row = gradient
            if part.index is not None:
                per_row = torch.bincount(part.index, weights=gradient, minlength=part.n_rows + 1)[: part.n_rows]
            per_column = per_row if part.table is None else part.table.T @ per_row  # [K]
            total.index_add_(0, part.columns, per_column)
        return total


def add_scores(total: np.ndarray, block: RawBlock, weights: np.ndarray) -> None:
    """Add one block's scores to `total` [C] in place: what aligning needs, where nothing is evaluated twice."""
    columns, table, index = block
    if not len(columns):
        return
    per_row = weights[columns] if table is None else _product(table, weights[columns])
    if index is None:
        total += per_row
    else:
        total += np.append(per_row, 0.0)[index]  # -1 takes the last


def _product(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """table @ weights in 64 bits, whatever the table has: in 32, a pair's scores would depend on its company."""
    if table.dtype == weights.dtype:
        return table @ weights
    out = np.empty(len(table), dtype=weights.dtype)
    for first in range(0, len(table), _SLAB):  # a copy of a part at a time stays in the cache
        out[first : first + _SLAB] = table[first : first + _SLAB].astype(weights.dtype) @ weights
    return out


def _part(block: RawBlock, dtype: torch.dtype, device: str) -> _Part:
    columns, table, index = block
    n_rows = len(columns) if table is None else len(table)
    if index is not None:
        index = np.where(index < 0, n_rows, index)
    return _Part(
        torch.as_tensor(columns, dtype=torch.long, device=device),
        None if table is None else torch.as_tensor(np.ascontiguousarray(table), dtype=dtype, device=device),
        None if index is None else torch.as_tensor(index, dtype=torch.long, device=device),
        n_rows,
    )


def _joined(blocks: Iterable[RawBlock]) -> list[RawBlock]:
    """Tables under the same index become one table; columns that the model does not know are gone already."""
    groups: dict[object, list[RawBlock]] = {}
    out: list[RawBlock] = []
    for block in blocks:
        columns, table, index = block
        if not len(columns):
            continue
        if table is None:
            out.append(block)
        else:
            groups.setdefault((None if index is None else id(index), len(table)), []).append(block)
    for group in groups.values():
        columns = np.concatenate([g[0] for g in group])
        tables = [g[1] for g in group if g[1] is not None]
        out.append((columns, np.hstack(tables) if len(tables) > 1 else tables[0], group[0][2]))
    return out


def compacted(block: RawBlock, most_values: int = 12) -> list[RawBlock]:
    """A per-cell table whose columns take few values is mostly repetition: keep its distinct rows and an index.

    Columns with many values stay as they are. Exact: no value is rounded.
    """
    columns, table, index = block
    if table is None or index is not None or len(table) < 10_000:
        return [block]
    code = np.zeros(len(table), dtype=np.uint64)
    few: list[int] = []
    for k in range(table.shape[1]):
        values = table[:, k]
        distinct = np.unique(values[:: max(len(values) // 4096, 1)])
        if len(distinct) > most_values:
            continue
        place = np.searchsorted(distinct, values)
        if (place >= len(distinct)).any() or not np.array_equal(distinct[place], values):
            distinct, place = np.unique(values, return_inverse=True)
            if len(distinct) > most_values:
                continue
        few.append(k)
        # mixing with an odd multiplier keeps rows apart; equality is checked below, so a collision costs nothing
        code = code * np.uint64(0x9E3779B97F4A7C15) + (place.astype(np.uint64) + np.uint64(1))
    if not few:
        return [block]
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    if len(first) > len(table) // 2 or not np.array_equal(table[first][inverse][:, few], table[:, few]):
        return [block]
    many = [k for k in range(table.shape[1]) if k not in set(few)]
    parts: list[RawBlock] = [(columns[few], table[first][:, few], inverse)]
    if many:
        parts.append((columns[many], table[:, many], None))
    return parts
