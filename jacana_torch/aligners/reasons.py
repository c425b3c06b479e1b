"""Which features spoke in a cell, with what value and weight: a scorer and a grid in, reasons of single cells out.

Adding up the reasons of a cell gives its score as the aligner computes it, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..crf.linear import RawBlock
from ..explain import Reasons
from ..features.base import Block, NodeBlocks, NodeFamily
from ..features.featureset import word_blocks
from ..features.grid import Grid
from .scoring import Scorer


class Contributions:
    """Blocks under weight numbers, over flat cells, and the names and weights of these numbers."""

    def __init__(self, blocks: Sequence[RawBlock], names: Sequence[str], weights: np.ndarray) -> None:
        self._blocks, self._names, self._weights = blocks, names, weights

    def of(self, cells: Sequence[int]) -> list[Reasons]:
        """The reasons of each cell, the strongest first; a feature that several blocks name is one reason."""
        size, asked = len(self._names), np.asarray(cells, dtype=np.int64)
        found = [_entries(block, asked) for block in self._blocks]
        code = np.concatenate([cell * size + column for cell, column, _ in found] or [np.zeros(0, np.int64)])
        code, where = np.unique(code, return_inverse=True)
        value = np.bincount(where, np.concatenate([v for *_, v in found] or [np.zeros(0)]), len(code))
        cell, column = code // size, code % size
        weight = self._weights[column]
        bounds = np.searchsorted(cell, np.arange(len(asked) + 1)).tolist()
        return [
            Reasons(self._names, column[a:b], value[a:b], weight[a:b])
            for a, b in zip(bounds, bounds[1:], strict=False)
        ]


def _entries(block: RawBlock, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a block holds that is not zero: which of the cells, which weight, which value."""
    columns, table, index = block
    rows = cells if index is None else index[cells]
    if table is None:
        here = np.flatnonzero(rows >= 0)
        return here, columns[rows[here]], np.ones(len(here))
    if not len(columns) or not len(table):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    values = np.where(rows[:, None] < 0, 0.0, table[rows])
    here, column = np.nonzero(values)
    return here, columns[column], values[here, column]


class Spoken:
    """What a scorer's families say of a grid. `null` [Ts] and `link` [C] are the scores."""

    def __init__(self, scorer: Scorer, grid: Grid, families: Sequence[NodeFamily]) -> None:
        self._scorer, self._grid, self._families = scorer, grid, families
        self._said: list[NodeBlocks] = []
        self.null, self.link = scorer.nodes(grid, self._said)

    @cached_property
    def null_reasons(self) -> Contributions:
        return self._contributions([blocks.null for blocks in self._said])

    @cached_property
    def link_reasons(self) -> Contributions:
        words = [word_blocks(family, self._grid) for family in self._families]
        return self._contributions([said.link + more for said, more in zip(self._said, words, strict=True)])

    def _contributions(self, parts: Sequence[Sequence[Block]]) -> Contributions:
        known = [
            self._scorer.known(family.name, block)
            for family, part in zip(self._families, parts, strict=True)
            for block in part
        ]
        return Contributions(known, self._scorer.names, self._scorer.weights)
