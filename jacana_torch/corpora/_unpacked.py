"""Streams that are compressed by gzip, of which the beginning was read to recognise them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any


class _Prepended:
    """A stream with the bytes that were taken from its beginning put back; `read` waits for all it asks for."""

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self._head, self._read = head, read

    def read(self, size: int) -> bytes:
        while len(self._head) < size and (more := self._read(size - len(self._head))):
            self._head += more
        data, self._head = self._head[:size], self._head[size:]
        return data


def unpacked(head: bytes, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Return what reads the unpacked bytes of a stream, given its first bytes and what reads the others."""
    packed: Any = _Prepended(head, read)
    return gzip.GzipFile(fileobj=packed, mode="rb").read1
