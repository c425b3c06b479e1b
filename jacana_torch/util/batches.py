"""Cut a stream into batches that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

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
