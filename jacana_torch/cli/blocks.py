"""Blocks of large inputs: where a file can be cut, and how a block is read without the rest of it.

Files of one pair a line are cut at lines, CSV and TSV at records (which may have several lines), Parquet at rows.
Files of other formats are one block. A block of lines is a range of bytes, and of a table also the header: read
together they are a small file of the same format. Blocks of a compressed file are ranges of what it holds; what
comes before is unpacked again for each block, so such files are best cut beforehand or written as Parquet.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

from ..corpora import Source, format_named
from ..corpora.csv import records

if TYPE_CHECKING:
    from typing_extensions import Buffer

_COPIED = 1 << 20  # bytes at a time
Starts = Iterator[tuple[int, int]]  # the byte and the line where each record begins, and where the file ends


@dataclass(frozen=True)
class Block:
    """A part of an input: `begin` and `end` count bytes, or rows of Parquet; `size` is its number of records.

    `header` bytes and lines at the beginning of the file belong to each of its blocks, and `skipped` lines stand
    between them and the block.
    """

    number: int
    file: str
    format: str
    begin: int
    end: int
    size: int
    header: int = 0
    header_lines: int = 0
    skipped: int = 0

    def open(self, header: bool | None = None) -> Source:
        """Open the block; errors name the file and its lines."""
        if format_named(self.format).cut == "rows":
            source = Source(self.file, header)
            source.rows = self.begin, self.end
            return source
        return _BlockSource(self, header)


def cut(file: str, format: str, size: int, numbered: int = 0) -> Iterator[Block]:
    """Yield the blocks of a file, of `size` records each but for the last, numbered from `numbered`."""
    how = format_named(format).cut
    if how == "rows":
        from ..corpora.parquet import count_rows

        rows = count_rows(file)
        for begin in range(0, rows, size):
            end = min(begin + size, rows)
            yield Block(numbered + begin // size, file, format, begin, end, end - begin)
    elif how is None:
        yield Block(numbered, file, format, 0, _length(file), 0)
    else:
        starts = _lines(file) if how == "lines" else _records(file, "\t" if format == "tsv" else ",")
        yield from _grouped(file, format, size, numbered, starts)


def _grouped(file: str, format: str, size: int, numbered: int, starts: Starts) -> Iterator[Block]:
    """Yield blocks of a file whose records begin at these bytes and lines; the end of the file is the last one."""
    header, header_line = 0, 1
    begin, first, count = -1, 1, 0
    for position, line in starts:
        if begin < 0:  # the first record
            header, header_line, begin, first = position, line, position, line
        elif count == size:
            skipped = first - header_line
            yield Block(numbered, file, format, begin, position, count, header, header_line - 1, skipped)
            numbered, begin, first, count = numbered + 1, position, line, 0
        count += 1
    if count > 1:  # the last one is the end of the file
        yield Block(
            numbered, file, format, begin, position, count - 1, header, header_line - 1, first - header_line
        )


class _Counted(Source):
    """Notes the byte where each line begins."""

    position = 0

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.starts: dict[int, int] = {}

    def lines(self) -> Iterator[tuple[int, bytes] | None]:
        for numbered in super().lines():
            if numbered is not None:
                number, raw = numbered
                self.starts[number] = self.position
                self.position += len(raw) + 1
            yield numbered


def _lines(file: str) -> Starts:
    position, number = 0, 0
    source = Source(file)
    for numbered in source.lines():
        if numbered is not None:
            number, raw = numbered
            yield position, number
            position += len(raw) + 1
    source.close()
    yield position, number + 1


def _records(file: str, delimiter: str) -> Starts:
    source = _Counted(file)
    headed = False
    for record in records(source, delimiter):
        if record is not None:
            line, _, _ = record
            position = source.starts.pop(line)
            for earlier in [one for one in source.starts if one < line]:
                del source.starts[earlier]
            if headed:
                yield position, line
            headed = True
    source.close()
    yield source.position, max(source.starts, default=0) + 1


def _length(file: str) -> int:
    """The bytes that a file holds, unpacked."""
    with open(file, "rb") as stream:
        if stream.read(2) != b"\x1f\x8b":
            return os.path.getsize(file)
    total = 0
    with gzip.open(file) as packed:
        while more := packed.read(_COPIED):
            total += len(more)
    return total


class _Section(io.RawIOBase):
    """The header of a file and the bytes of a block."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.name = block.file
        self._file: Any = open(block.file, "rb")
        if self._file.read(2) == b"\x1f\x8b":
            self._file.seek(0)
            self._file = gzip.GzipFile(fileobj=self._file)
        self._file.seek(0)
        self._spans = [(0, block.header), (block.begin, block.end)]
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        while self._spans and len(view):
            begin, end = self._spans[0]
            self._at = max(self._at, begin)
            if self._at < end:
                self._file.seek(self._at)
                data = self._file.read(min(len(view), end - self._at))
                if data:
                    view[: len(data)] = data
                    self._at += len(data)
                    return len(data)
            self._spans.pop(0)
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()


class _BlockSource(Source):
    """A block whose lines have their numbers in the file."""

    def __init__(self, block: Block, header: bool | None) -> None:
        self._block, self._section = block, _Section(block)
        super().__init__(cast(IO[bytes], self._section), header)

    def lines(self) -> Iterator[tuple[int, bytes] | None]:
        for numbered in super().lines():
            if numbered is not None:
                number, raw = numbered
                self.line = number if number <= self._block.header_lines else number + self._block.skipped
                numbered = self.line, raw
            yield numbered

    def close(self) -> None:
        self._section.close()
        super().close()
