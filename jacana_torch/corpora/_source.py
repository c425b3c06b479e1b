"""Corpora: opening what is read. In: a path, "-" or a stream, perhaps gzipped; out: numbered lines or chunks.

Everything is handled as bytes and split at \\n alone, because \\x85, \\u2028 and their kin may stand inside a
token, and decoded line by line, so that one line of bad UTF-8 costs that line and not the file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from ..errors import CorpusError

Readable = str | os.PathLike[str] | IO[bytes] | IO[str]

T = TypeVar("T")

Ready = Callable[[float | None], bool]

BOM = "\ufeff"
_BLOCK = 1 << 16
_PATIENCE = 0.02  # seconds: a busy machine's pipe is empty for less, and nobody notices that it is waited
_LONGEST_HEAD = 1 << 20
_GZIP = b"\x1f\x8b"


def quote(text: object, length: int = 60) -> str:
    """What the user wrote, for an error: control characters escaped, and cut where it is long."""
    shown = repr(str(text)[: length + 1])
    return shown if len(shown) <= length + 2 else shown[:length] + "…'"


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were taken to look at them, whole again.

    While it is `patient` it waits for more; otherwise it says, as streams that do not block do, that there is
    nothing, and `waits` is true until more has come.
    """

    def __init__(self, head: bytes, rest: Callable[[int], bytes], ready: Ready | None = None) -> None:
        self._head, self._rest, self._ready = head, rest, ready
        self.patient, self.waits = True, False

    def readable(self) -> bool:
        return True

    def wait(self) -> None:
        if self.waits and self._ready is not None:
            self._ready(None)
        self.waits = False

    def readinto(self, buffer: Any) -> int | None:
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        elif not (self.patient or self._ready is None or self._ready(_PATIENCE)):
            self.waits = True
            return None
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


def _readiness(stream: Any) -> Ready | None:
    """Whether there is something to read, or the end, within so many seconds; None where there is no asking."""
    try:
        number = stream.fileno()
        select.select([number], [], [], 0)
    except (AttributeError, OSError, ValueError):  # ValueError: select knows small numbers only
        return None
    return lambda seconds: bool(select.select([number], [], [], seconds)[0])


class Source:
    """An open corpus file: `name` for messages, `head` to guess its format from, `lines()` or `chunks()`.

    Where `pauses` is set, readers of a pair a line say None in between whenever nothing has come for a moment.
    `may_stall`: someone may be waiting for an answer before saying more, and pauses cannot be told.
    """

    def __init__(self, source: Readable) -> None:
        self._opened: IO[bytes] | None = None
        self.pauses = False
        with self._failures_told("<stream>" if hasattr(source, "read") else os.fspath(source)):
            stream = self._file = self._open(source)
            ready: Ready | None = None if self._is_regular() else _readiness(stream)
            self.may_stall = ready is None and not self._is_regular()
            head = self._look_at(read := _reader(stream), b"")
            if head.startswith(_GZIP):
                read = gzip.GzipFile(fileobj=io.BufferedReader(_Rejoined(head, read), _BLOCK)).read1
                head = self._look_at(read, b"")
                ready, self.may_stall = None, False  # nobody talks in gzip
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self.close()
            raise CorpusError("this is UTF-16: save it as UTF-8", self.name)
        self.head = head
        self._rejoined = _Rejoined(head, read, ready)
        self._stream = io.BufferedReader(self._rejoined, _BLOCK)

    def _is_regular(self) -> bool:
        try:
            return stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        except (AttributeError, OSError, ValueError):
            return False

    def fraction(self) -> float | None:
        """How much of the file has been read, where it is one whose size is known."""
        if not self._is_regular():
            return None
        number = self._file.fileno()
        return min(1.0, os.lseek(number, 0, os.SEEK_CUR) / max(1, os.fstat(number).st_size))

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

    def lines_and_pauses(self) -> Iterator[tuple[int, bytes] | None]:
        """As lines, with None where nothing has come for a moment; what comes is waited for only after that."""
        number, line = 1, b""
        self._rejoined.patient = False
        with self._failures_told(self.name):
            while True:
                line += self._stream.readline()
                if line.endswith(b"\n"):
                    yield number, line
                    number, line = number + 1, b""
                elif self._rejoined.waits:
                    yield None
                    self._rejoined.wait()
                else:
                    break
            if line:
                yield number, line

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
    for item in per_line_and_pauses(source, parse, skip_blank=skip_blank):
        if item is not None:
            yield item


def per_line_and_pauses(
    source: Source, parse: Callable[[str], T], *, skip_blank: bool = False
) -> Iterator[T | CorpusError | None]:
    """As per_line; and None for each pause of a source that has `pauses`."""
    for numbered in source.lines_and_pauses() if source.pauses else source.lines():
        if numbered is None:
            yield None
            continue
        number, raw = numbered
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
