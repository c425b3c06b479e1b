"""Zhang & Shasha's tree edit distance for many pairs of trees at once, and the mapping that it is the cost of.

In: the two sides' `Ordered` trees, the cost of putting one node for another [cells], of deleting and of inserting
one, all whole numbers. Out: for each pair the nodes that are put for each other.

Every two ranges of a pair have a table: the distance between what stands before each of their nodes. Tables that
wait for no other one are filled together, a row (a target node) at a time, all their columns side by side in one
array. A table is deleted from left to right, so a row's cheapest deletions are its running minimum, and that the
minimum of one table stays out of the next one is seen to by lowering each below all before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .trees import Ordered


@dataclass
class _Tables:
    """All tables: which ranges they are of, and where their entries are.

    Tables are sorted by level, then by falling height: those with an r-th row are the first of their level.
    Entry (r, c) of table t is `filled[row[rows_of[t] + r] + offset[t] + c]`.
    """

    source: Ordered
    target: Ordered
    left: np.ndarray  # [K] range of the source
    right: np.ndarray  # [K] range of the target
    place: np.ndarray  # [tables in order of pair, source range, target range] where it went
    start: np.ndarray  # [P] first table of each pair in that order
    bounds: np.ndarray  # where levels begin
    offset: np.ndarray = field(init=False)
    rows_of: np.ndarray = field(init=False)
    row: np.ndarray = field(init=False)
    filled: np.ndarray = field(init=False)

    def at(self, table: np.ndarray, r: np.ndarray, c: np.ndarray) -> np.ndarray:
        return self.row[self.rows_of[table] + r] + self.offset[table] + c

    def find(self, pair: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The table of two ranges."""
        first_left = np.cumsum(self.source.ranges) - self.source.ranges
        first_right = np.cumsum(self.target.ranges) - self.target.ranges
        inside = (left - first_left[pair]) * self.target.ranges[pair] + right - first_right[pair]
        return self.place[self.start[pair] + inside]


def mapping(
    source: Ordered, target: Ordered, put: np.ndarray, delete: int, insert: int
) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest mapping of each pair; no sentence is empty. `put` [cells]: by pair, target node, source."""
    cells = source.size * target.size
    first_cell = np.cumsum(cells) - cells
    tables = _arranged(source, target)
    distance = np.append(put, 0)  # of subtrees, where they are known; costs of putting before
    dearest = max(delete, insert, int(np.abs(put).max(initial=0)))
    for k in range(len(tables.bounds) - 1):
        _fill(tables, k, distance, first_cell, delete, insert, dearest)
    return _trace(tables, put, distance, first_cell, delete, insert)


def _arranged(source: Ordered, target: Ordered) -> _Tables:
    count = source.ranges * target.ranges
    start = np.cumsum(count) - count
    pair = np.repeat(np.arange(len(count)), count)
    inside = np.arange(len(pair)) - start[pair]
    left, right = np.divmod(inside, target.ranges[pair])
    left += (np.cumsum(source.ranges) - source.ranges)[pair]
    right += (np.cumsum(target.ranges) - target.ranges)[pair]
    level = source.level[left]  # a range nested in the target's begins later: its table is rows ahead anyway
    order = np.lexsort((-target.width[right], level))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bounds = np.searchsorted(level[order], np.arange(level.max(initial=-1) + 2))
    tables = _Tables(source, target, left[order], right[order], place, start, bounds)
    _lay_out(tables)
    return tables


def _lay_out(tables: _Tables) -> None:
    """Where entries are: level by level, row by row, the tables that have the row side by side."""
    columns = tables.source.width[tables.left] + 1
    height = tables.target.width[tables.right]
    tables.offset, tables.rows_of = np.empty_like(columns), np.empty_like(columns)
    rows, known, used = [], 0, 0
    for k in range(len(tables.bounds) - 1):
        level = slice(tables.bounds[k], tables.bounds[k + 1])
        ends = np.cumsum(columns[level])
        tables.offset[level], tables.rows_of[level] = ends - columns[level], known
        # tables are by falling height: how many have more than r rows
        having = np.searchsorted(-height[level], -np.arange(height[level][0] + 1), side="right")
        wide = ends[having - 1]
        rows.append(used + np.cumsum(wide) - wide)
        known, used = known + len(wide), used + int(wide.sum())
    tables.row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    tables.filled = np.empty(used, dtype=np.int64)


def _fill(
    tables: _Tables,
    k: int,
    distance: np.ndarray,
    first_cell: np.ndarray,
    delete: int,
    insert: int,
    dearest: int,
) -> None:
    """The tables of a level, when those below it are full."""
    level = slice(tables.bounds[k], tables.bounds[k + 1])
    source, target, filled = tables.source, tables.target, tables.filled
    left, right = tables.left[level], tables.right[level]
    columns, height = source.width[left] + 1, target.width[right]
    offset, row = tables.offset[level], tables.row[tables.rows_of[level.start] :]
    pair = source.owner[left]
    table = np.repeat(np.arange(len(left)), columns)
    column = np.arange(len(table)) - offset[table]
    node = (source.first[pair] + source.begin[left] - 1)[table] + column  # of the column; none of column 0
    before = np.where(
        column, source.low[node] - source.begin[left][table], 0
    )  # column that ends before its subtree
    outer = (before == 0) & (column > 0)
    before += offset[table]
    width = source.size[pair]
    cell = (first_cell[pair] + (target.begin[right] - 1) * width + source.begin[left] - 1)[table] + column
    width = width[table]
    apart = 2 * int(columns.max() + height.max() + 1) * (dearest + 1)  # more than any two entries of a table are
    lowered = column * delete + table * apart
    filled[row[0] : row[0] + len(table)] = column * delete
    above = target.first[pair] + target.begin[right] - 1
    for r in range(1, int(height[0]) + 1):
        having = int(np.searchsorted(-height, -r, side="right"))
        wide = int(offset[having - 1] + columns[having - 1])
        low = target.low[above[:having] + r] - target.begin[right[:having]]
        cell[:wide] += width[:wide]
        here = cell[:wide]
        trees = outer[:wide] & (low == 0)[table[:wide]]
        back = row[low][table[:wide]] + before[:wide]
        both = np.flatnonzero(trees)
        back[both] = row[r - 1] + both - 1
        best = filled[back] + distance[here]
        np.minimum(best, filled[row[r - 1] : row[r - 1] + wide] + insert, out=best)
        best[offset[:having]] = r * insert
        best -= lowered[:wide]
        np.minimum.accumulate(best, out=best)
        best += lowered[:wide]
        filled[row[r] : row[r] + wide] = best
        distance[here[both]] = best[both]


def _trace(
    tables: _Tables, put: np.ndarray, distance: np.ndarray, first_cell: np.ndarray, delete: int, insert: int
) -> tuple[np.ndarray, np.ndarray]:
    """Back through the tables from the end of each pair's whole sentences, all pairs a step at a time."""
    source, target, filled = tables.source, tables.target, tables.filled
    pair = np.arange(len(source.size))
    table, r, c = tables.place[tables.start[pair]], target.size[pair], source.size[pair]
    found: list[tuple[np.ndarray, np.ndarray]] = []
    while len(table):
        left, right = tables.left[table], tables.right[table]
        pair = source.owner[left]
        x, y = source.begin[left] + c - 1, target.begin[right] + r - 1  # nodes, within their sentences
        node, other = source.first[pair] + x, target.first[pair] + y
        before, below = source.low[node] - source.begin[left], target.low[other] - target.begin[right]
        cell = first_cell[pair] + y * source.size[pair] + x
        value = filled[tables.at(table, r, c)]
        trees = (before == 0) & (below == 0)
        cost = np.where(trees, put[cell], distance[cell])
        back = tables.at(table, np.where(trees, r - 1, below), np.where(trees, c - 1, before))
        mapped = value == filled[back] + cost
        linked, jump = mapped & trees, mapped & ~trees
        found.append((node[linked], other[linked]))
        inner = tables.find(pair[jump], source.range[node[jump]], target.range[other[jump]])
        inner_r = y[jump] - target.begin[tables.right[inner]] + 1
        inner_c = x[jump] - source.begin[tables.left[inner]] + 1
        inserted = ~mapped & (value == filled[tables.at(table, r - 1, c)] + insert)
        r = np.where(jump, below, r - (linked | inserted))
        c = np.where(jump, before, c - (linked | ~(mapped | inserted)))
        table, r, c = np.append(table, inner), np.append(r, inner_r), np.append(c, inner_c)
        more = (r > 0) & (c > 0)
        table, r, c = table[more], r[more], c[more]
    nodes = [np.concatenate(side) for side in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 2
    return nodes[0], nodes[1]
