"""Corpora: opening what is read. In: a path, "-" or a stream, perhaps gzipped; out: numbered lines or chunks.

Everything is handled as bytes and split at \\n alone, because \\x85, \\u2028 and their kin may stand inside a
token, and decoded line by line, so that one line of bad UTF-8 costs that line and not the file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from ..errors import CorpusError

Readable = str | os.PathLike[str] | IO[bytes] | IO[str]

T = TypeVar("T")

BOM = "\ufeff"
_BLOCK = 1 << 16
_LONGEST_HEAD = 1 << 20
_GZIP = b"\x1f\x8b"


def quote(text: object, length: int = 60) -> str:
    """What the user wrote, for an error: control characters escaped, and cut where it is long."""
    shown = repr(str(text)[: length + 1])
    return shown if len(shown) <= length + 2 else shown[:length] + "…'"


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were taken to look at them, whole again."""

    def __init__(self, head: bytes, rest: Callable[[int], bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            data = self._rest(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _reader(stream: Any) -> Callable[[int], bytes]:
    """`read(n)` that gives bytes, and of a pipe what is there without waiting for all n."""
    if isinstance(stream.read(0), str):
        # A character of text is at most 4 bytes; the quarter keeps the answer within what was asked for.
        return lambda size: stream.read(max(1, size // 4)).encode("utf-8", "surrogatepass")
    return getattr(stream, "read1", None) or stream.read


class Source:
    """An open corpus file: `name` for messages, `head` to guess its format from, `lines()` or `chunks()`."""

    def __init__(self, source: Readable) -> None:
        self._opened: IO[bytes] | None = None
        with self._failures_told("<stream>" if hasattr(source, "read") else os.fspath(source)):
            stream = self._open(source)
            head = self._look_at(read := _reader(stream), b"")
            if head.startswith(_GZIP):
                read = gzip.GzipFile(fileobj=io.BufferedReader(_Rejoined(head, read), _BLOCK)).read1
                head = self._look_at(read, b"")
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self.close()
            raise CorpusError("this is UTF-16: save it as UTF-8", self.name)
        self.head = head
        self._stream = io.BufferedReader(_Rejoined(head, read), _BLOCK)

    def _open(self, source: Readable) -> Any:
        if hasattr(source, "read"):
            name = getattr(source, "name", None)
            self.name = name if isinstance(name, str) else "<stream>"
            return source
        if source == "-":
            self.name = "<stdin>"
            return getattr(sys.stdin, "buffer", sys.stdin)
        self.name = os.fspath(source)
        self._opened = open(self.name, "rb")
        return self._opened

    @staticmethod
    def _look_at(read: Callable[[int], bytes], head: bytes) -> bytes:
        """At least the first line that is not blank, unless it is endless."""
        while b"\n" not in head.lstrip() and len(head) < _LONGEST_HEAD and (more := read(_BLOCK)):
            head += more
        return head

    @contextmanager
    def _failures_told(self, name: str) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.close()
            raise CorpusError(
                f"the gzip data is damaged or cut short ({error}): copy the file again", name
            ) from None
        except OSError as error:
            self.close()
            raise CorpusError(f"cannot be read: {error.strerror or error}", name) from None
        except ValueError as error:  # a name with NUL in it, a closed stream, a text stream that fails to decode
            self.close()
            raise CorpusError(f"cannot be read: {error}", name) from None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines as bytes; `decode` makes text of one, so that a bad one can be passed over."""
        with self._failures_told(self.name):
            yield from enumerate(self._stream, start=1)

    def decode(self, number: int, raw: bytes) -> str:
        """The line without its end (\\n or \\r\\n), and without the file's byte-order mark."""
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte {raw[error.start]:#04x} in column {error.start + 1} is not UTF-8"
            raise CorpusError(f"{wrong}: convert the file to UTF-8", self.name, number) from None
        return line.removeprefix(BOM) if number == 1 else line

    def chunks(self) -> Iterator[str]:
        """The file as pieces of text; bytes that are not UTF-8 come as lone surrogates for readers to report."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        size, first = _BLOCK, True
        while True:
            with self._failures_told(self.name):
                data = self._stream.read(size)
            text = decoder.decode(data, final=not data)
            yield text.removeprefix(BOM) if first else text
            if not data:
                return
            first = first and not text


def per_line(source: Source, parse: Callable[[str], T], *, skip_blank: bool = False) -> Iterator[T | CorpusError]:
    """`parse` of every line; its ValueError becomes, in the item's place, a CorpusError that knows the line."""
    for number, raw in source.lines():
        try:
            line = source.decode(number, raw)
            if skip_blank and not line.strip():
                continue
            item: T | CorpusError = parse(line)
        except CorpusError as error:
            item = error
        except ValueError as error:
            item = CorpusError(str(error), source.name, number)
        yield item
