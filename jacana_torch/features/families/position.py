"""The position family: where the two words are in their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL
from ...util.geometry import PaddedGrid
from ..api import Block, NodeBlocks
from ..grid import Grid, Named


@dataclass(frozen=True)
class Position:
    name: str = "position"
    requires: Annotated[tuple[str, ...], INTERNAL] = ()
    resources: Annotated[tuple[str, ...], INTERNAL] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        position, length = grid.source_position, grid.n_source[grid.source_pair]
        ratio = (grid.n_target / np.maximum(grid.n_source + grid.n_target, 1))[grid.source_pair]
        null = np.column_stack([position == 0, position == length - 1, ratio]).astype(np.float64)
        padded = grid.padded()
        names, table = grid.shared("position", partial(_table, padded))
        link = Block(names, table, padded.place)
        return NodeBlocks((link,), (Block(("null_first", "null_last", "null_ratio"), null),))


def _table(padded: PaddedGrid) -> Named:
    """Names and a table over the padded grid, which both alignment directions share."""
    relative = padded.distance
    row, column = padded.row_position[:, None], np.arange(padded.pitch)
    last_row = row == padded.n_source[padded.row_pair][:, None] - 1
    last_column = (column == padded.n_target[:, None] - 1)[padded.row_pair]
    columns = {
        "relative": relative,
        "absolute": np.minimum(np.abs(row - column), 30) / 30,
        "relative<0.05": relative < 0.05,
        "relative<0.15": relative < 0.15,
        "relative>0.5": relative > 0.5,
        "both_first": (row == 0) & (column == 0),
        "both_last": last_row & last_column,
        "one_last": last_row != last_column,
    }
    table = np.empty((len(columns), padded.size))
    for line, values in zip(table, columns.values(), strict=True):
        line[:] = values.ravel()
    return tuple(columns), table.T
