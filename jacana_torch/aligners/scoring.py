"""Scores of a grid under a model's weights, where nothing is trained: features live as long as they are scored.

A grid and a layout in, the flat score vectors of the lattices out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

import numpy as np

from ..crf.layout import Layout
from ..crf.linear import RawBlock, add_scores
from ..features.base import Block
from ..features.featureset import FeatureSet
from ..features.grid import Grid

LONGEST_KEPT = 128  # target tokens; edge scores of longer ones are many and seldom needed twice


class Scorer:
    """Scores of grids under one set of weights; edge scores of lengths seen before are kept."""

    def __init__(self, features: FeatureSet, names: Sequence[str], weights: np.ndarray) -> None:
        self._features, self._names, self._weights = features, names, weights.copy()
        self._number = {name: i for i, name in enumerate(names)}
        self._tables: dict[int, dict[str, np.ndarray]] = {}

    def has(self, names: Sequence[str], weights: np.ndarray) -> bool:
        """Whether these are still its weights; they change in place where a model is being trained."""
        return names is self._names and np.array_equal(weights, self._weights)

    def flat(self, grid: Grid, layout: Layout) -> list[np.ndarray]:
        """The flat score vectors that a layout takes."""
        nodes = np.zeros(layout.n_tokens + layout.n_cells + 1)
        null, link = nodes[: layout.n_tokens], nodes[layout.n_tokens : -1]
        for blocks in self._features.node_blocks(grid):
            for block in blocks.null:
                self._add(null, block)
            for block in blocks.link:
                self._add(link, block)
        tables = [self._edge_scores(n) for n in layout.distinct.tolist()]
        edges = [np.concatenate([*(t[space] for t in tables), np.zeros(1)]) for space in ("edge", "start", "end")]
        return [nodes, *edges]

    def _add(self, total: np.ndarray, block: Block) -> None:
        add_scores(total, known_columns(block, self._number), self._weights)

    def _edge_scores(self, n: int) -> dict[str, np.ndarray]:
        if n not in self._tables:
            scores = {"edge": np.zeros((n + 1) ** 2), "start": np.zeros(n + 1), "end": np.zeros(n + 1)}
            for space, blocks in self._features.edge_blocks(n).items():
                for block in blocks:
                    self._add(scores[space], block)
            if n > LONGEST_KEPT:
                return scores
            self._tables[n] = scores
        return self._tables[n]


def known_columns(block: Block, number: Mapping[str, int]) -> RawBlock:
    """Column names turned into weight numbers; columns that the model never met have no say."""
    columns = np.fromiter(map(number.get, block.names, repeat(-1)), dtype=np.int64, count=len(block.names))
    keep = columns >= 0
    if keep.all():
        return columns, block.table, block.index
    if block.table is not None:
        return columns[keep], block.table[:, keep], block.index
    renumber = np.where(keep, np.cumsum(keep) - 1, -1)  # one-hot: rows are columns, so they go together
    index = np.arange(len(keep)) if block.index is None else block.index
    return columns[keep], None, np.where(index < 0, -1, renumber[index])
