"""Columns of a trained chain that hardly matter: features and weights in, which columns do matter out.

What a column does to the score of a cell is its weight times its value there. The most it does anywhere is what
counts: a rare column that decides the few cells it speaks of is kept, however small its part in all the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError
from ..features.api import Block, Grouped
from ..features.featureset import FeatureBatch

if TYPE_CHECKING:
    from ..optimize.minimise import Closure


def mattering(batch: FeatureBatch, names: Sequence[str], weights: np.ndarray, least: float) -> np.ndarray:
    """[K] whether a column changes the score of any cell by `least` or more; an error where none does."""
    largest = dict.fromkeys(names, 0.0)
    for block in batch.blocks:
        for name, value in zip(block.names, _largest(block).tolist(), strict=True):
            largest[name] = max(largest[name], value)
    kept = np.abs(weights) * np.array([largest[name] for name in names]) >= least
    if not kept.any():
        raise ConfigError(f"prune={least}: none of {len(kept)} columns changes a score by that much")
    return kept


class Among:
    """A function of all weights as one of those `kept` [K], where the others are 0."""

    def __init__(self, function: Closure, kept: np.ndarray) -> None:
        self.kept, self._function = kept, function

    def whole(self, weights: np.ndarray) -> np.ndarray:
        out = np.zeros(len(self.kept))
        out[self.kept] = weights
        return out

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = self._function(self.whole(weights))
        return loss, gradient[self.kept]


def _largest(block: Block) -> np.ndarray:
    """[K] the largest value of each column, without its sign."""
    if block.table is None:
        return np.ones(len(block.names))
    if isinstance(block.table, Grouped):  # written out it would be mostly zeros
        return np.tile(np.abs(block.table.values).max(0, initial=0.0), block.table.count)
    return np.abs(block.table).max(0, initial=0.0)
