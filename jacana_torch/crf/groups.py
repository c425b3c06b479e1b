"""Chains arranged so that those sharing a transition table are multiplied together.

In comes which table each chain uses; out goes a grid of G groups by c rows, one table a group, so that a step of
inference is one batched matrix product. A table with many chains takes several groups, one with few leaves rows
empty; c is chosen so that both kinds of waste are small, and memory stays O(rows x states).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .buckets import best_width


@dataclass(frozen=True)
class Groups:
    """`count` G groups of `width` c rows; group g uses table `table[g]`, chain b sits in row `row[b]` of G*c.

    `row` is None where the chains stay as they are: one table for all.
    """

    count: int
    width: int
    table: Tensor
    row: Tensor | None

    @property
    def rows(self) -> int:
        return self.count * self.width

    def scatter(self, values: Tensor, empty: float) -> Tensor:
        """[B] to [rows]."""
        if self.row is None:
            return values
        return values.new_full((self.rows,), empty).index_copy_(0, self.row, values)

    def gather(self, values: Tensor) -> Tensor:
        """[..., rows, S] to [..., B, S]."""
        return values if self.row is None else values.index_select(-2, self.row)

    def per_group(self, tables: Tensor) -> Tensor:
        """[U, ...] to [G, ...]."""
        return tables if self.row is None and len(tables) == 1 else tables[self.table]

    def per_table(self, sums: Tensor, n_tables: int) -> Tensor:
        """[G, ...] added up to [U, ...]."""
        if self.row is None and n_tables == 1:
            return sums
        return sums.new_zeros(n_tables, *sums.shape[1:]).index_add_(0, self.table, sums)


def group_rows(table: Tensor, n_tables: int) -> Groups:
    """Arrange chains by their table."""
    which = table.cpu().numpy()
    B = len(which)
    if B == 0 or n_tables == 1 or (which == which[0]).all():
        return Groups(1, B, table.new_tensor([int(which[0]) if B else 0]), None)
    counts = np.bincount(which, minlength=n_tables)
    width = best_width(counts)
    groups = -(-counts // width)  # [U] groups of each table
    first = np.cumsum(groups) - groups  # [U] first group of each table
    order = np.argsort(which, kind="stable")
    rank = np.empty(B, dtype=np.int64)  # of each chain among those of its table
    rank[order] = np.arange(B) - np.repeat(np.cumsum(counts) - counts, counts)
    row = (first[which] + rank // width) * width + rank % width
    kind = np.repeat(np.arange(n_tables), groups)
    tensors = (torch.from_numpy(x).to(table.device) for x in (kind, row))
    return Groups(len(kind), width, *tensors)
