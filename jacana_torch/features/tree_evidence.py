"""Where the trees of two sentences agree: for each cell, the like neighbours that its two words have.

In: which cells hold like words, and both sides' edges. Out: a sparse list "cell (s, t) has like neighbours k of s
and l of t", with the direction and relation of each, and counts of it. It is found from the like cells outwards,
so the cost is that of the like cells and their neighbours, not of all cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dependency_trees import Forest
from .grid import Grid


@dataclass(frozen=True)
class Neighbours:
    """Each token's edges, in both directions: those of token k are start[k] .. start[k] + degree[k].

    `token` the other end, `up` whether k is the other end's head, `label` the relation.
    """

    start: np.ndarray
    degree: np.ndarray
    token: np.ndarray
    up: np.ndarray
    label: np.ndarray

    @staticmethod
    def of(forest: Forest, plain: bool = False) -> Neighbours:
        edges = slice(0, forest.n_plain if plain else None)
        parent, child, label = forest.parent[edges], forest.child[edges], forest.label[edges]
        here, there = np.concatenate([parent, child]), np.concatenate([child, parent])
        order = np.argsort(here, kind="stable")
        degree = np.bincount(here, minlength=len(forest.head))
        up = np.repeat([True, False], len(parent))  # seen from the child, `here` is the head
        return Neighbours(
            np.cumsum(degree) - degree, degree, there[order], up[order], np.concatenate([label, label])[order]
        )


@dataclass(frozen=True)
class Evidence:
    """Rows: `cell` (s, t) has the like neighbours `source` of s and `target` of t, which meet in cell `via`.

    `source_up` and `target_up` say whether the neighbour is the head, the labels which relations these are.
    """

    cell: np.ndarray
    source: np.ndarray
    target: np.ndarray
    via: np.ndarray
    source_up: np.ndarray
    target_up: np.ndarray
    source_label: np.ndarray
    target_label: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Evidence:
        return Evidence(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def matched(self, n_cells: int) -> np.ndarray:
        """[C] how many neighbours can be matched at most one to one, seen from the side that has fewer."""
        return np.minimum(_distinct(self.cell, self.source, n_cells), _distinct(self.cell, self.target, n_cells))


def _distinct(cell: np.ndarray, token: np.ndarray, n_cells: int) -> np.ndarray:
    if not len(cell):
        return np.zeros(n_cells, dtype=np.int64)
    size = int(token.max()) + 1
    return np.bincount(np.unique(cell * size + token) // size, minlength=n_cells)


def gather(grid: Grid, alike: np.ndarray, source: Neighbours, target: Neighbours) -> Evidence:
    """Every pair of neighbours of every like cell (`alike` [L], cell numbers)."""
    k, l = grid.source_token[alike], grid.target_token[alike]  # noqa: E741 (the paper's letters)
    width = target.degree[l]
    counts = source.degree[k] * width
    row = np.repeat(np.arange(len(alike)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    a = source.start[k][row] + within // width[row]
    b = target.start[l][row] + within % width[row]
    pair = grid.pair[alike][row]
    s, t = source.token[a], target.token[b]
    cell = grid.cell_at(pair, s - grid.source_start[pair], t - grid.target_start[pair])
    return Evidence(
        cell, k[row], l[row], alike[row], source.up[a], target.up[b], source.label[a], target.label[b]
    )  # fmt: skip
