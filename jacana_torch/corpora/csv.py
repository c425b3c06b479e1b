"""The format csv: a table with a header and commas, quoted as in RFC 4180.

A quoted field may hold commas, quotes and line ends. A row with too few or too many fields is a bad record.
Blank lines are ignored. Links and tokens are written with spaces between them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..errors import ConfigError, CorpusError, quote
from ..types import Example
from . import CannotHold, Format, Source
from ._files import BOM, each_written
from ._header import name_columns
from ._tables import Added, BadRow, Columns, Layout, Row, Table, example_of, joined, links_of, table_of

_LONGEST = 1 << 24  # characters of a field; an unclosed quote takes no more


class _Lines:
    """The lines of a source for csv.reader, which takes as many as a record has."""

    def __init__(self, source: Source) -> None:
        self._source, self._numbered = source, source.lines()
        self._next: str | None = None
        self.number = 0  # of the line that was taken last
        self.wrong: CorpusError | None = None  # the first line of the record that is not UTF-8

    def peek(self) -> bool | None:
        """Whether there is another line; None if nothing has come for a moment."""
        if self._next is None:
            numbered = next(self._numbered, ())
            if numbered is None:
                return None
            if not numbered:
                return False
            self.number, raw = numbered
            self._next = self._decoded(raw)
        return True

    def _decoded(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = (
                f"byte {raw[error.start]:#04x} in column {error.start + 1} is not UTF-8: convert the file to UTF-8"
            )
            self.wrong = self.wrong or CorpusError(wrong, self._source.name, self.number)
            text = raw.decode("utf-8", "replace")
        return (text.removeprefix(BOM) if self.number == 1 else text) + "\n"

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while (there := self.peek()) is not True:
            if there is False:
                raise StopIteration
        assert self._next is not None
        line, self._next = self._next, None
        return line


def records(source: Source, delimiter: str) -> Iterator[tuple[int, list[str], str | None] | None]:
    """Yield the line where a record begins, its fields, and what is wrong with it; None for a pause."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
    lines = _Lines(source)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while (there := lines.peek()) is not False:
        if there is None:
            yield None
            continue
        begun, lines.wrong = (
            lines.number,
            lines.wrong if lines.wrong and lines.wrong.line == lines.number else None,
        )
        try:
            fields, wrong = next(reader), None
        except StopIteration:
            return
        except csv.Error as error:
            fields, wrong = [], f"the quotes are not as in RFC 4180 ({_cause(error)})"
        source.line = begun
        if lines.wrong is not None and lines.wrong.line is not None and lines.wrong.line <= lines.number:
            wrong = wrong or lines.wrong.reason
        if fields or wrong:
            yield begun, fields, wrong


def _cause(error: Exception) -> str:
    return str(error).replace("\t", "a tab")


def read(
    source: Source, columns: Columns | None = None, *, delimiter: str
) -> Iterator[Example | CorpusError | None]:
    """Read a table; the first record is its header."""
    if source.header is False:
        raise ConfigError("--no-header: a table needs its header, which names the columns")
    table: Table | None = None
    for record in records(source, delimiter):
        if record is None:
            yield None
            continue
        line, fields, wrong = record
        if table is None:
            if wrong is not None:
                raise CorpusError(wrong, source.name, line)
            table = table_of(fields, columns, source.name)
            source.record = Row(table, [""] * len(table.names))
            continue
        width = len(table.names)
        row = Row(table, [*fields, *[""] * (width - len(fields))][:width])
        if wrong is None and len(fields) != width:
            wrong = f"the row has {len(fields)} fields, and the header {width}"
        yield example_of(row, source.name, line) if wrong is None else BadRow(wrong, source.name, line, row)
    if table is None and columns is not None:
        raise CorpusError("there is no header: the file is empty", source.name)


def write(
    examples: Iterable[Example], added: Added | None = None, *, delimiter: str
) -> Iterator[str | CannotHold]:
    """Write a table with a header."""
    added = added or Added()
    layout: Layout | None = None
    headed = False

    def line(example: Example, number: int) -> str:
        nonlocal layout, headed
        if layout is None:
            row = example.extra if isinstance(example.extra, Row) else None
            layout = Layout(added, row, example)
        text = delimiter.join(quoted(field, delimiter) for field in _fields(example, layout)) + "\n"
        header = delimiter.join(quoted(name, delimiter) for name in layout.names) + "\n"
        (header + text).encode("utf-8")
        text, headed = (text if headed else header + text), True
        return text

    yield from each_written(examples, line)
    if not headed and (row := added.empty()) is not None:
        yield delimiter.join(quoted(name, delimiter) for name in Layout(added, row).names) + "\n"


def _fields(example: Example, layout: Layout) -> Iterator[str]:
    try:
        row = layout.row_of(example)
    except ValueError as error:
        raise CannotHold(str(error)) from None
    if row is not None:
        yield from (_field(row.plain(name)) for name in layout.kept)
    else:
        texts = layout.texts(example)
        yield from (texts.get(name, "") for name in layout.kept)
        yield from (_field((example.extra or {}).get(key)) for key in layout.others)
    pair = example.pair
    if layout.tokens:
        yield from (joined(side.tokens) for side in (pair.source, pair.target))
    if layout.links:
        links, probabilities = links_of(example)
        yield links
        if layout.probabilities:
            yield " ".join(f"{p:.9g}" for p in probabilities or ())


def _field(value: Any) -> str:
    """A value as text: of strings itself, nothing of None, JSON of all else."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotHold(f"a table cannot hold {quote(value)}: {error}") from None


def quoted(field: str, delimiter: str) -> str:
    """A field as RFC 4180 writes it: in quotes only if it has to be."""
    if delimiter in field or '"' in field or "\n" in field or "\r" in field:
        return '"' + field.replace('"', '""') + '"'
    return field


def _sniff(lines: Sequence[str]) -> bool:
    """Whether the first line names the two sides."""
    return bool(lines) and "," in lines[0] and name_columns(lines[0].split(",")) is not None


def format_of(delimiter: str, sniff: Any) -> Format:
    """The format with this character between fields."""
    return Format(
        sniff=sniff,
        read=partial(read, delimiter=delimiter),
        write=partial(write, delimiter=delimiter),
        read_columns=partial(read, delimiter=delimiter),
        write_table=partial(write, delimiter=delimiter),
        holds_confidence=True,
        left_out=lambda example: (),
        cut="records",
    )


FORMAT = format_of(",", _sniff)
