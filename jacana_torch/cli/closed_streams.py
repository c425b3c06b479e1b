"""Standard streams that were closed before the program started, as daemons and `>&-` leave them.

Python has None for such a stream, and the first file that is opened takes its number: what a library writes to
stderr would go into that file. Here the numbers lead to the null device. Reading stdin or writing to stdout is an
error that says what to do; messages to stderr are lost.
"""

from __future__ import annotations

import errno
import io
import os
import sys

ADVICE = {"standard input": "name a file to read", "standard output": "redirect it to a file or a pipe"}


def reopen() -> None:
    """Give the process all three streams."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest free number
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(_Closed("standard input"))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_Closed("standard output"), write_through=True)
    if sys.stderr is None:
        sys.stderr = sys.__stderr__ = io.TextIOWrapper(io.FileIO(2, "w", closefd=False))  # type: ignore[misc]


class _Closed(io.RawIOBase):
    """A stream that cannot be used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        raise self._error()

    def write(self, data: object, /) -> int:
        raise self._error()

    def _error(self) -> OSError:
        return OSError(errno.EBADF, f"{self._name} is closed: {ADVICE[self._name]}")
