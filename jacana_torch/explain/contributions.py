"""Which features spoke in a cell, with what value and weight: a scorer and a grid in, reasons of single cells out.

Adding up the reasons of a cell gives its score, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..crf.linear import RawBlock, add_scores
from ..crf.scoring import Scorer
from ..features.api import NodeFamily
from ..features.featureset import blocks_of, checked
from ..features.grid import Grid
from . import Reasons
from .explanation import summed


class Contributions:
    """Blocks under weight numbers, over flat cells, and the names and weights of these numbers."""

    def __init__(self, blocks: Sequence[RawBlock], names: Sequence[str], weights: np.ndarray) -> None:
        self._blocks, self._names, self._weights = blocks, names, weights

    def of(self, cells: Sequence[int]) -> list[Reasons]:
        """The reasons of each cell, the strongest first; a feature that several blocks name is one reason."""
        size, asked = len(self._names), np.asarray(cells, dtype=np.int64)
        found = [_entries(block, asked) for block in self._blocks]
        code = np.concatenate([cell * size + column for cell, column, _ in found] or [np.zeros(0, np.int64)])
        code, _, value = summed(code, np.concatenate([v for *_, v in found] or [np.zeros(0)]))
        cell, column = code // size, code % size
        weight = self._weights[column]
        bounds = np.searchsorted(cell, np.arange(len(asked) + 1)).tolist()
        return [
            Reasons(self._names, column[a:b], value[a:b], weight[a:b])
            for a, b in zip(bounds, bounds[1:], strict=False)
        ]

    def scores(self, cells: int) -> np.ndarray:
        """[cells] the sum of the contributions in each."""
        total = np.zeros(cells)
        for block in self._blocks:
            add_scores(total, block, self._weights)
        return total


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
    """What a scorer's families say of a grid: reasons and scores of its NULLs and links, all in double precision.

    Aligning remembers pairs of words in single precision, so its scores differ in the seventh digit.
    """

    def __init__(self, scorer: Scorer, grid: Grid, families: Sequence[NodeFamily]) -> None:
        null: list[RawBlock] = []
        link: list[RawBlock] = []
        for family in families:
            said = blocks_of(family, grid)
            for known, part, cells in ((null, said.null, len(grid.source_pair)), (link, said.link, grid.n_cells)):
                known += [scorer.known(family.name, checked(family.name, block, cells)) for block in part]
        self.null_reasons = Contributions(null, scorer.names, scorer.weights)
        self.link_reasons = Contributions(link, scorer.names, scorer.weights)
        self.null = self.null_reasons.scores(len(grid.source_pair))
        self.link = self.link_reasons.scores(grid.n_cells)
