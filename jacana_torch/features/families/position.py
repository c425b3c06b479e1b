"""The position family: where the two words are in their sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..api import Block, NodeBlocks
from ..grid import Grid, Named
from ..padded_grid import Canvas


@dataclass(frozen=True)
class Position:
    name: str = "position"
    requires: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        position, length = grid.source_position, grid.n_source[grid.source_pair]
        ratio = (grid.n_target / np.maximum(grid.n_source + grid.n_target, 1))[grid.source_pair]
        null = np.column_stack([position == 0, position == length - 1, ratio]).astype(np.float64)
        laid = grid.laid_out()
        names, table = grid.shared("position", partial(_table, laid.canvas))
        link = Block(names, table, laid.place)
        return NodeBlocks((link,), (Block(("null_first", "null_last", "null_ratio"), null),))


def _table(canvas: Canvas) -> Named:
    """Names and a table over the padded grid, which both alignment directions share."""
    relative = canvas.distance
    row, column = canvas.row_position[:, None], np.arange(canvas.pitch)
    last_row = row == canvas.n_source[canvas.row_pair][:, None] - 1
    last_column = (column == canvas.n_target[:, None] - 1)[canvas.row_pair]
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
    table = np.empty((len(columns), canvas.size))
    for line, values in zip(table, columns.values(), strict=True):
        line[:] = values.ravel()
    return tuple(columns), table.T
