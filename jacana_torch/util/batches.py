"""Things in order in, the same in portions that fit in memory out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """As many at a time as are `most` in size together, and one at the least; `size` may refuse an item."""
    portion: list[T] = []
    total = 0
    for item in items:
        added = size(item)
        if portion and total + added > most:
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += added
    if portion:
        yield portion
