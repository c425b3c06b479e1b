"""Ragged pairs cut into batches of alike size, so that padding stays small.

In come the lengths of both sides of many pairs; out go index arrays that together name every pair once.
"""

from __future__ import annotations

import numpy as np

# Source lengths within this ratio may share a batch, whose steps number as the longest's.
_BAND = 2.5
# What starting the operations of a step takes, in transitions computed meanwhile; from timing on a CPU.
_START = 30_000
# What starting one more matrix of a batched product costs, in rows; from timing 14 to 112 states on a CPU.
_ROWS_PER_GROUP = 6


def buckets(n_source: np.ndarray, n_target: np.ndarray, max_cells: int = 2_000_000) -> list[np.ndarray]:
    """Index arrays, each for one batch of at most `max_cells` padded cells (a larger pair comes alone).

    A cell is one state at one position: n_source * (n_target + 1) of a pair. The result depends on the lengths
    alone, and pairs of equal size keep their order.
    """
    rows = np.asarray(n_source, dtype=np.int64).reshape(-1)
    states = np.asarray(n_target, dtype=np.int64).reshape(-1) + 1
    if rows.shape != states.shape:
        raise ValueError(f"{len(rows)} source lengths and {len(states)} target lengths")
    band = np.floor(np.log(np.maximum(rows, 1)) / np.log(_BAND))
    order = np.lexsort((rows, states, band))  # stable: equal sizes keep their order
    out: list[np.ndarray] = []
    begin = high = wide = real = 0
    for place, (m, s) in enumerate(zip(rows[order].tolist(), states[order].tolist(), strict=True)):
        count, highest, widest = place - begin, max(high, m), max(wide, s)
        work = (count + 1) * highest * widest**2
        wasteful = work - real - m * s**2 > _START * highest  # padding costs more than another batch would
        if count and ((count + 1) * highest * widest > max_cells or wasteful):
            out.append(order[begin:place])
            begin, highest, widest, real = place, m, s, 0
        high, wide, real = highest, widest, real + m * s**2
    if begin < len(order):
        out.append(order[begin:])
    return out


def best_width(counts: np.ndarray) -> int:
    """Rows per group: the one that wastes least."""
    most = int(counts.max())
    widths = np.unique(np.append(2 ** np.arange(most.bit_length()), most))
    groups = (-(-counts[:, None] // widths)).sum(0)
    return int(widths[np.argmin(groups * (widths + _ROWS_PER_GROUP))])
