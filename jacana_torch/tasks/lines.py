"""The lines of a file, read as those of corpora are: errors name theirs, and packed files are unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ..corpora import Source


def lines_of(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line."""
    with closing(Source(path)) as source:
        for numbered in source.lines():
            if numbered is not None:
                yield numbered[0], source.decode(*numbered)
