"""Where the two words stand in their sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Block, NodeBlocks
from .grid import Grid


@dataclass(frozen=True)
class Position:
    name: str = "position"
    requires: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        n_source, n_target = grid.n_source[grid.pair], grid.n_target[grid.pair]
        relative = np.abs(grid.m / n_source - grid.n / n_target)
        absolute = np.minimum(np.abs(grid.m - grid.n), 30) / 30
        last_m, last_n = grid.m == n_source - 1, grid.n == n_target - 1
        columns = {
            "relative": relative,
            "absolute": absolute,
            "relative<0.05": relative < 0.05,
            "relative<0.15": relative < 0.15,
            "relative>0.5": relative > 0.5,
            "both_first": (grid.m == 0) & (grid.n == 0),
            "both_last": last_m & last_n,
            "one_last": last_m != last_n,
        }
        table = np.column_stack([np.asarray(v, dtype=np.float64) for v in columns.values()])
        position, length = grid.source_position, grid.n_source[grid.source_pair]
        ratio = (grid.n_target / np.maximum(grid.n_source + grid.n_target, 1))[grid.source_pair]
        null = np.column_stack([position == 0, position == length - 1, ratio]).astype(np.float64)
        link_block = Block(tuple(columns), table)
        return NodeBlocks((link_block,), (Block(("null_first", "null_last", "null_ratio"), null),))
