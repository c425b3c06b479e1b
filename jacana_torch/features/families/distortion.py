"""The distortion family: how far the alignment jumps from one source token to the next, whatever the words.

It is the only edge family. Between two links the features depend on the jump alone: a target of N tokens needs
2N - 1 distinct rows, not N * N. Across NULLs (`gap`) a jump has the same features under names of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL
from ..api import Block, prefixed

# The jump n - n' - 1 is 0 to the next word and -1 to the same one. Other jumps fall into classes by how many words
# they skip forward or go back.
BOUNDS = (1, 2, 4, 8, 16)
_JUMPS = (
    "next", "same", "forward<=1", "forward<=2", "forward<=4", "forward<=8", "forward<=16", "forward<=inf",
    "back<=1", "back<=2", "back<=4", "back<=8", "back<=16", "back<=inf", "distance", "distance_relative",
    "back_relative",
)  # fmt: skip
GAP_NAMES = prefixed("gap_", _JUMPS)
_NULL_NAMES = ("null_null", "to_null", "from_null", "from_null_first", "to_null_last")
EDGE_NAMES = _JUMPS + _NULL_NAMES
START_NAMES = ("start_first", "start_distance", "start_null")
END_NAMES = ("end_last", "end_distance", "end_null")


@dataclass(frozen=True)
class Distortion:
    name: str = "distortion"
    resources: Annotated[tuple[str, ...], INTERNAL] = ()

    def edge(self, n_target: int) -> Block:
        n = n_target
        jumps, rows = _jumps(n)
        table = np.zeros((len(jumps) + 5, len(EDGE_NAMES)))
        table[: len(jumps), : len(_JUMPS)] = jumps
        table[len(jumps) :, len(_JUMPS) :] = np.eye(5)
        null_null, to_null, from_null, from_null_first, to_null_last = range(len(jumps), len(jumps) + 5)
        table[to_null_last, len(_JUMPS) + 1] = table[from_null_first, len(_JUMPS) + 2] = 1.0
        index = np.empty((n + 1, n + 1), dtype=np.int64)
        index[0, 0] = null_null
        index[0, 1:] = from_null
        index[1:, 0] = to_null
        if n:
            index[0, 1], index[n, 0] = from_null_first, to_null_last
            index[1:, 1:] = rows
        return Block(EDGE_NAMES, table, index.ravel())

    def gap(self, n_target: int) -> Block:
        table, rows = _jumps(n_target)
        return Block(GAP_NAMES, table, rows.ravel())

    def start(self, n_target: int) -> Block:
        states = np.arange(n_target + 1)
        relative = np.maximum(states - 1, 0) / max(n_target, 1)
        return Block(START_NAMES, np.column_stack([states == 1, relative, states == 0]).astype(np.float64))

    def end(self, n_target: int) -> Block:
        states = np.arange(n_target + 1)
        relative = np.where(states > 0, n_target - states, 0) / max(n_target, 1)
        last = (states == n_target) & (states > 0)
        return Block(END_NAMES, np.column_stack([last, relative, states == 0]).astype(np.float64))


def _jumps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """[2n - 1, jump features], and [n, n] the row of a step from one position to another."""
    steps = np.arange(-(n - 1), n)  # to - from
    jump = steps - 1
    size = np.searchsorted(BOUNDS, np.abs(jump) - (jump < 0))
    further = np.where(jump > 0, 2, 3 + len(BOUNDS)) + size
    table = np.zeros((len(steps), len(_JUMPS)))
    table[np.arange(len(steps)), np.select([jump == 0, jump == -1], [0, 1], further)] = 1.0
    table[:, -3] = np.minimum(np.abs(jump), 20) / 20
    table[:, -2] = np.minimum(np.abs(jump) / max(n, 1), 1.0)
    table[:, -1] = np.minimum(np.maximum(-jump, 0) / max(n, 1), 1.0)
    states = np.arange(n)
    return table, states[None, :] - states[:, None] + n - 1
