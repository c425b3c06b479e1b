"""The inputs of `align`: names with wildcards, and several files that are read as one."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..corpora import Source, read_live
from ..errors import ConfigError

if TYPE_CHECKING:
    from ..corpora import OnBad
    from ..corpora._tables import Row
    from ..types import Example


def expanded(names: Sequence[str]) -> list[str]:
    """Return the files that names stand for, those of a wildcard in the order of their names.

    The shell does this as well, but not for a name in quotes, and it has a limit.
    """
    found: list[str] = []
    for name in names:
        if name == "-" or os.path.exists(name) or not glob.has_magic(name):
            found.append(name)
            continue
        files = sorted(file for file in glob.glob(name, recursive=True) if not os.path.isdir(file))
        if not files:
            raise ConfigError(f"no file fits {name!r}")
        found += files
    for name in found:
        if os.path.isdir(name):
            raise ConfigError(f"{name}: is a folder; name its files, as in '{name.rstrip(os.sep)}/*.parquet'")
        if len(found) > 1 and name == "-":
            raise ConfigError("- (standard input) cannot be one of several inputs")
        if len(found) > 1 and not os.path.exists(name):
            raise ConfigError(f"{name}: there is no such file")
    return found


class Inputs:
    """Several files, one after the other: in use like a `Source`."""

    may_stall = False

    def __init__(self, names: Sequence[str], header: bool | None) -> None:
        self._names, self._header = names, header
        self._sizes = [os.path.getsize(name) for name in names]
        self._number = 0
        self._current = Source(names[0], header)

    @property
    def name(self) -> str:
        return self._current.name

    @property
    def line(self) -> int | None:
        return self._current.line

    @property
    def record(self) -> Row | None:
        return self._current.record

    def fraction(self) -> float | None:
        """Return how much of all files has been read."""
        part = self._current.fraction()
        if part is None:
            return None
        before, own = sum(self._sizes[: self._number]), self._sizes[self._number]
        return (before + part * own) / max(1, sum(self._sizes))

    def read(
        self, from_: str | None, on_bad: OnBad | None, columns: tuple[str, str] | None
    ) -> Iterator[Example | None]:
        """Yield the examples of all files, as `read_live` does those of one."""
        for number, name in enumerate(self._names):
            if number:
                self._number, self._current = number, Source(name, self._header)
            yield from read_live(self._current, from_, on_bad=on_bad, columns=columns)
