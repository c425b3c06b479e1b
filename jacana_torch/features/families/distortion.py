"""How far the alignment jumps from one source token to the next: the only edge family, and it never sees a word.

Between two links the features depend on the jump alone: a target of N tokens needs 2N - 1 distinct rows, not N².
Across NULLs (`gap`) a jump has the same features under names of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..api import Block

# The jump n - n' - 1 is 0 to the next word and -1 to the same one; the others fall into buckets by how many words
# are skipped (forward) or gone back.
BOUNDS = (1, 2, 4, 8, 16)
_BUCKETS = ("next", "same") + tuple(f"{way}<={b}" for way in ("forward", "back") for b in (*BOUNDS, "inf"))
_JUMP_NAMES = (*_BUCKETS, "distance", "distance_relative", "back_relative")
GAP_NAMES = tuple(f"gap_{name}" for name in _JUMP_NAMES)
EDGE_NAMES = _JUMP_NAMES + (
    "null_null", "to_null", "from_null", "from_null_first", "to_null_last",
)  # fmt: skip
START_NAMES = ("start_first", "start_distance", "start_null")
END_NAMES = ("end_last", "end_distance", "end_null")


def _bucket(jump: np.ndarray) -> np.ndarray:
    size = np.searchsorted(BOUNDS, np.abs(jump) - (jump < 0))
    forward, back = 2 + size, 2 + len(BOUNDS) + 1 + size
    return np.where(jump == 0, 0, np.where(jump == -1, 1, np.where(jump > 0, forward, back)))


def _jumps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """[2n - 1, jump features], and [n, n] which row a step from one position to another has."""
    steps = np.arange(-(n - 1), n)  # to - from
    jump = steps - 1
    table = np.zeros((len(steps), len(_JUMP_NAMES)))
    table[np.arange(len(steps)), _bucket(jump)] = 1.0
    table[:, -3] = np.minimum(np.abs(jump), 20) / 20
    table[:, -2] = np.minimum(np.abs(jump) / max(n, 1), 1.0)
    table[:, -1] = np.minimum(np.maximum(-jump, 0) / max(n, 1), 1.0)
    states = np.arange(n)
    return table, states[None, :] - states[:, None] + n - 1


@dataclass(frozen=True)
class Distortion:
    name: str = "distortion"

    def edge(self, n_target: int) -> Block:
        n, column = n_target, {name: i for i, name in enumerate(EDGE_NAMES)}
        jumps, rows = _jumps(n)
        table = np.zeros((len(jumps) + 5, len(EDGE_NAMES)))
        table[: len(jumps), : len(_JUMP_NAMES)] = jumps
        null_null, to_null, from_null, from_null_first, to_null_last = range(len(jumps), len(jumps) + 5)
        table[null_null, column["null_null"]] = 1.0
        table[[to_null, to_null_last], column["to_null"]] = 1.0
        table[to_null_last, column["to_null_last"]] = 1.0
        table[[from_null, from_null_first], column["from_null"]] = 1.0
        table[from_null_first, column["from_null_first"]] = 1.0
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
