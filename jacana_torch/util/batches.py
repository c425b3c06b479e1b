"""Cut a stream, or pairs of sentences, into batches that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def by_size(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield batches, in order, of at most `most` in total size, or of one larger item."""
    batch: list[T] = []
    total = 0
    for item in items:
        added = size(item)
        if batch and total + added > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += added
    if batch:
        yield batch


# Source lengths within this ratio may share a batch, whose steps are as many as those of its longest pair.
_RATIO = 2.5
# What starting the operations of a step takes, in transitions computed meanwhile; measured on a CPU.
_START = 30_000


def like_sizes(n_source: np.ndarray, n_target: np.ndarray, max_cells: int) -> list[np.ndarray]:
    """Cut pairs into batches of similar size, so that padding stays small: arrays of their numbers.

    A padded batch has at most `max_cells` cells, NULL's among them; a larger pair comes alone. The batches depend
    on the lengths alone, and pairs of equal size keep their order.
    """
    rows, states = np.asarray(n_source, dtype=np.int64), np.asarray(n_target, dtype=np.int64) + 1
    if rows.shape != states.shape:
        raise ValueError(f"{len(rows)} source lengths and {len(states)} target lengths")
    kind = np.floor(np.log(np.maximum(rows, 1)) / np.log(_RATIO))
    order = np.lexsort((rows, states, kind))  # stable: equal sizes keep their order
    out: list[np.ndarray] = []
    begin = high = wide = real = 0
    for place, (m, s) in enumerate(zip(rows[order].tolist(), states[order].tolist(), strict=True)):
        count, highest, widest = place - begin, max(high, m), max(wide, s)
        work = (count + 1) * highest * widest**2
        wasteful = work - real - m * s**2 > _START * highest  # padding takes longer than another batch would
        if count and ((count + 1) * highest * widest > max_cells or wasteful):
            out.append(order[begin:place])
            begin, highest, widest, real = place, m, s, 0
        high, wide, real = highest, widest, real + m * s**2
    if begin < len(order):
        out.append(order[begin:])
    return out
