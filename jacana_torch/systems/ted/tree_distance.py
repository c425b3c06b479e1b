"""Zhang & Shasha's tree edit distance of many pairs at once, and the mapping of nodes behind it.

Trees are read in postorder. Their key subtrees ("ranges" here, since nodes of a subtree are consecutive) have a
table for each range of the other tree: the distance between what precedes each of their nodes. Tables that wait
for no other one are filled together, a row (a target node) at a time, all their columns side by side in one array.

Deletions run from left to right in a row, so a row's cheapest deletions are its running minimum. Each table is
lowered below all tables before it, so that their minima stay out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...util.geometry import positions, run_of, starts


@dataclass(frozen=True)
class Ordered:
    """Nodes of many trees in postorder, sentence by sentence. A sentence may have any number of roots.

    Per sentence [S]: `first` node, `size` (number of nodes), `ranges` (number of ranges). Per node [T]: `token`;
    `low`, the first node of its subtree, counted within the sentence; `range`, the range with its path.
    Per range [R], by sentence, the whole sentence first: `owner`, the sentence; `begin`, its first node within the
    sentence; `width`, its number of nodes; `level`, how deeply other ranges are nested in it.
    """

    first: np.ndarray
    size: np.ndarray
    token: np.ndarray
    low: np.ndarray
    range: np.ndarray
    owner: np.ndarray
    begin: np.ndarray
    width: np.ndarray
    level: np.ndarray
    ranges: np.ndarray

    @property
    def entries(self) -> np.ndarray:
        """[S] the rows (or columns) of all the tables of a sentence."""
        return np.bincount(self.owner, self.width + 1, minlength=len(self.size)).astype(np.int64)


def ordered(head: np.ndarray, size: np.ndarray) -> Ordered:
    """Arrange the trees of sentences of `size` [S] tokens with flat heads [T], -1 for a root, without cycles.

    Children are visited from the right: English branches to the right, and the last visited child needs no table.
    """
    sentence, layers = run_of(size), _layers(head)
    weight = np.ones(len(head), dtype=np.int64)  # nodes of each subtree
    for nodes in layers[:0:-1]:
        np.add.at(weight, head[nodes], weight[nodes])
    before = _before_among_siblings(head, sentence, weight)
    low, nested = before.copy(), before > 0
    height, top = np.zeros(len(head), dtype=np.int64), np.zeros(len(size), dtype=np.int64)
    for nodes in layers[1:]:
        low[nodes] += low[head[nodes]]
    for nodes in layers[:0:-1]:
        np.maximum.at(height, head[nodes], height[nodes] + nested[nodes])
    roots = np.flatnonzero(head < 0)
    np.maximum.at(top, sentence[roots], height[roots] + nested[roots])
    keys = np.flatnonzero(nested)  # tokens with a range of their own
    number = np.full(len(head), -1, dtype=np.int64)
    number[keys] = np.arange(len(keys)) + sentence[keys] + 1
    whole = np.arange(len(size)) + np.searchsorted(sentence[keys], np.arange(len(size)))
    of = np.where(nested, number, whole[sentence])
    for nodes in layers[1:]:
        inner = nodes[~nested[nodes]]
        of[inner] = of[head[inner]]
    ranges = np.bincount(sentence[keys], minlength=len(size)) + 1
    begin, width, level = np.zeros((3, len(keys) + len(size)), dtype=np.int64)
    begin[number[keys]], width[number[keys]], level[number[keys]] = low[keys], weight[keys], height[keys]
    begin[whole], width[whole], level[whole] = 0, size, top
    first = starts(size)
    token, lowest, range_of = by_place = np.empty((3, len(head)), dtype=np.int64)
    by_place[:, first[sentence] + low + weight - 1] = np.arange(len(head)), low, of
    return Ordered(first, size, token, lowest, range_of, run_of(ranges), begin, width, level, ranges)


def _layers(head: np.ndarray) -> list[np.ndarray]:
    """Group tokens by their distance from a root."""
    rest = np.flatnonzero(head >= 0)
    deep = np.zeros(len(head), dtype=bool)
    layers = [np.flatnonzero(head < 0)]
    deep[layers[0]] = True
    while len(rest) and len(layers[-1]):
        below = deep[head[rest]]
        layers.append(rest[below])
        rest = rest[~below]
        deep[layers[-1]] = True
    return layers


def in_cycles(head: np.ndarray) -> np.ndarray:
    """Return the tokens that have no root above them."""
    return np.setdiff1d(np.arange(len(head)), np.concatenate(_layers(head)))


def _before_among_siblings(head: np.ndarray, sentence: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[T] the nodes of the subtrees of a token's right siblings, which are visited before it."""
    parent = np.where(head < 0, len(head) + sentence, head)
    order = np.lexsort((-np.arange(len(head)), parent))
    total = starts(weight[order])
    new = np.append(True, np.diff(parent[order]) != 0)[: len(order)]
    out = np.empty_like(weight)
    out[order] = total - total[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return out


@dataclass
class _Tables:
    """The tables of all ranges of source and target, and where their entries are.

    Tables are sorted by level, then by decreasing height, so that those with an r-th row come first in their
    level. Entry (r, c) of table t is `filled[row[rows_of[t] + r] + offset[t] + c]`.
    """

    source: Ordered
    target: Ordered
    left: np.ndarray  # [K] range of the source
    right: np.ndarray  # [K] range of the target
    place: np.ndarray  # the number of each table, by pair, source range and target range
    start: np.ndarray  # [P] the first table of each pair in this order
    bounds: np.ndarray  # where levels begin
    offset: np.ndarray = field(init=False)
    rows_of: np.ndarray = field(init=False)
    row: np.ndarray = field(init=False)
    filled: np.ndarray = field(init=False)

    def at(self, table: np.ndarray, r: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the indices of entries in `filled`."""
        index: np.ndarray = self.row[self.rows_of[table] + r] + self.offset[table] + c
        return index

    def find(self, pair: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the tables of pairs of ranges."""
        inner_left = left - starts(self.source.ranges)[pair]
        inner_right = right - starts(self.target.ranges)[pair]
        tables: np.ndarray = self.place[self.start[pair] + inner_left * self.target.ranges[pair] + inner_right]
        return tables


def mapping(
    source: Ordered, target: Ordered, put: np.ndarray, delete: int, insert: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mapped nodes of the cheapest edit of every pair. No sentence is empty.

    `put` [cells]: the integer cost of mapping two nodes, by pair, target node, source node.
    """
    first_cell = starts(source.size * target.size)
    tables = _arranged(source, target)
    distance = np.append(put, 0)  # costs of mapping, which distances of subtrees replace as they become known
    dearest = max(delete, insert, int(np.abs(put).max(initial=0)))
    for k in range(len(tables.bounds) - 1):
        _fill(tables, k, distance, first_cell, delete, insert, dearest)
    return _trace(tables, put, distance, first_cell, delete, insert)


def _arranged(source: Ordered, target: Ordered) -> _Tables:
    """Sort the tables, and lay out their entries: by level, by row, the tables that have the row side by side."""
    count = source.ranges * target.ranges
    pair = run_of(count)
    left, right = np.divmod(positions(count), target.ranges[pair])
    left += starts(source.ranges)[pair]
    right += starts(target.ranges)[pair]
    level = source.level[left]  # the source is enough: a range nested in the target's begins some rows later
    order = np.lexsort((-target.width[right], level))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bounds = np.searchsorted(level[order], np.arange(level.max(initial=-1) + 2))
    tables = _Tables(source, target, left[order], right[order], place, starts(count), bounds)
    columns = source.width[tables.left] + 1
    height = target.width[tables.right]
    tables.offset, tables.rows_of = np.empty_like(columns), np.empty_like(columns)
    rows, known, used = [], 0, 0
    for k in range(len(bounds) - 1):
        part = slice(bounds[k], bounds[k + 1])
        ends = np.cumsum(columns[part])
        tables.offset[part], tables.rows_of[part] = ends - columns[part], known
        having = np.searchsorted(-height[part], -np.arange(height[part][0] + 1), side="right")  # an r-th row
        wide = ends[having - 1]
        rows.append(used + starts(wide))
        known, used = known + len(wide), used + int(wide.sum())
    tables.row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    tables.filled = np.empty(used, dtype=np.int64)
    return tables


def _fill(
    tables: _Tables,
    k: int,
    distance: np.ndarray,
    first_cell: np.ndarray,
    delete: int,
    insert: int,
    dearest: int,
) -> None:
    """Fill the tables of level k, after those of the levels below."""
    level = slice(tables.bounds[k], tables.bounds[k + 1])
    source, target, filled = tables.source, tables.target, tables.filled
    left, right = tables.left[level], tables.right[level]
    columns, height = source.width[left] + 1, target.width[right]
    offset, row = tables.offset[level], tables.row[tables.rows_of[level.start] :]
    pair = source.owner[left]
    table, column = run_of(columns), positions(columns)
    node = (source.first[pair] + source.begin[left] - 1)[table] + column  # of the column; column 0 has none
    before = np.where(column, source.low[node] - source.begin[left][table], 0)  # column before the node's subtree
    outer = (before == 0) & (column > 0)
    before += offset[table]
    width = source.size[pair]
    cell = (first_cell[pair] + (target.begin[right] - 1) * width + source.begin[left] - 1)[table] + column
    width = width[table]
    apart = 2 * int(columns.max() + height.max() + 1) * (dearest + 1)  # exceeds any difference within a table
    lowered = column * delete + table * apart
    filled[row[0] : row[0] + len(table)] = column * delete
    above = target.first[pair] + target.begin[right] - 1
    for r in range(1, int(height[0]) + 1):
        having = int(np.searchsorted(-height, -r, side="right"))
        wide = int(offset[having - 1] + columns[having - 1])
        low = target.low[above[:having] + r] - target.begin[right[:having]]
        cell[:wide] += width[:wide]
        here = cell[:wide]
        trees = outer[:wide] & (low == 0)[table[:wide]]  # both sides are whole subtrees
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
    """Trace the tables back from the end of both sentences, all pairs a step at a time."""
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
