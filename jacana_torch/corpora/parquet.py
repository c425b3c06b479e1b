"""The format parquet: tables of typed columns, by pyarrow (the extra `parquet`).

A side is a text or a list of tokens. Other columns keep their types and values. Links are text as in csv;
probabilities and tokens are lists. Rows are read and written in pieces: memory does not grow with the file.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import ConfigError, CorpusError, quote
from ..types import Example
from . import CannotHold, Format, Source
from ._tables import ID, LINKS, PROBABILITIES, Added, Columns, Layout, Row, Table, example_of, links_of, table_of

_READ, _WRITTEN = 1024, 16_384  # rows of a piece
_BUFFER = 1 << 18  # bytes
_HUGGING_FACE = b"huggingface"  # lists all columns, and so would be wrong of a file with more


def arrow(what: str = "pyarrow") -> Any:
    """Import pyarrow, which takes a while and is an extra."""
    try:
        return importlib.import_module(what)
    except ImportError as error:
        raise ConfigError(f"Parquet needs pyarrow ({error}): pip install 'jacana-torch[parquet]'") from None


class ArrowRow(Row):
    """A row of a batch, whose values are made only if they are asked for."""

    def __init__(self, table: Table, batch: Any, number: int, read: dict[str, list[Any]]) -> None:
        super().__init__(table, ())
        self.batch, self.number, self._read = batch, number, read

    def value(self, name: str) -> Any:
        if name in self._read:
            return self._read[name][self.number]
        return _value(self.batch.column(name)[self.number])

    def plain(self, name: str) -> Any:
        value = self.value(name)
        try:
            return json.loads(json.dumps(value, default=str))
        except (TypeError, ValueError, RecursionError):
            return str(value)


def read(source: Source, columns: Columns | None = None) -> Iterator[Example | CorpusError | None]:
    """Read a file, which is copied to disk first if it comes by a pipe."""
    if source.header is not None:
        raise ConfigError("--header, --no-header: Parquet always names its columns")
    parquet = arrow("pyarrow.parquet")
    with source.seekable() as stream:
        yield from _items(source, parquet, stream, columns)


def _items(source: Source, parquet: Any, stream: Any, columns: Columns | None) -> Iterator[Example | CorpusError]:
    pa = arrow()
    number = 0
    try:
        file = parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
        schema = file.schema_arrow
        table = table_of(schema.names, columns, source.name)
        for name in (table.source, table.target):
            if not _is_text(schema.field(name).type, pa):
                raise CorpusError(
                    f"the column {quote(name)} holds {schema.field(name).type}, not text", source.name
                )
        source.record = ArrowRow(table, schema.empty_table(), 0, {})
        wanted = [table.source, table.target, *((ID,) if ID in schema.names else ())]
        wanted += [name for name in table.aligned if name in schema.names] if table.gold else []
        begin, end = source.rows or (0, file.metadata.num_rows)
        number = begin
        for batch in _batches(file, begin, end):
            values = {name: _values(batch.column(name)) for name in dict.fromkeys(wanted)}
            for place in range(batch.num_rows):
                number += 1
                source.line, source.share = number, (number - begin) / max(1, end - begin)
                yield example_of(ArrowRow(table, batch, place, values), source.name, number)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = str(error).split("\n")[0][:200]
        raise CorpusError(
            f"cannot be read as Parquet ({what})", source.name, number + 1 if number else None
        ) from None


def _values(column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, KeyError):
        return [_value(one) for one in column]


def _value(scalar: Any) -> Any:
    """The value of a scalar, also if Python has none for it.

    Bytes that are not UTF-8, which nothing keeps out of a text, become lone surrogates: errors of their row.
    Dates beyond Python's years, and of unknown time zones, are numbers with their type.
    """
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, KeyError):
        pa = arrow()
        if isinstance(scalar, pa.StringScalar):
            return scalar.as_buffer().to_pybytes().decode("utf-8", "surrogateescape")
        if isinstance(scalar, pa.StructScalar):
            return {name: _value(scalar[name]) for name in scalar}
        if isinstance(scalar, pa.ListScalar):  # also the large ones and those of one length
            return [_value(one) for one in scalar.values]
        value = scalar.value
        return _value(value) if isinstance(value, pa.Scalar) else f"{value} {scalar.type}"


def _batches(file: Any, begin: int, end: int) -> Iterator[Any]:
    """Yield the rows from `begin` to `end` in pieces; other row groups are not read."""
    groups: list[int] = []
    first = position = 0
    for number in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if position + rows > begin and position < end:
            first = position if not groups else first
            groups.append(number)
        position += rows
    if not groups:
        return
    for batch in file.iter_batches(_READ, row_groups=groups):
        skipped, stop = max(0, begin - first), min(end - first, batch.num_rows)
        if skipped < stop:
            yield batch.slice(skipped, stop - skipped)
        first += batch.num_rows
        if first >= end:
            return


def count_rows(file: str) -> int:
    """The number of rows of a file."""
    parquet, pa = arrow("pyarrow.parquet"), arrow()
    try:
        return int(parquet.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read as Parquet ({str(error).splitlines()[0][:200]})", file) from None


def _is_text(kind: Any, pa: Any) -> bool:
    """Whether values of this type are texts, or lists of them."""
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")


# Writing


class _Sink(io.RawIOBase):
    """Collects what the writer writes, until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class _Writer:
    """Rows on their way into a file."""

    def __init__(self, layout: Layout, examples: Sequence[Example], row: Row | None) -> None:
        self._pa, parquet = arrow(), arrow("pyarrow.parquet")
        self._layout = layout
        self._schema = self._made(examples, row)
        self._sink = _Sink()
        self._file = parquet.ParquetWriter(self._pa.PythonFile(self._sink, "w"), self._schema, compression="zstd")

    def _made(self, examples: Sequence[Example], row: Row | None) -> Any:
        pa, layout = self._pa, self._layout
        if isinstance(row, ArrowRow):
            schema = row.batch.schema
            fields = [schema.field(name) for name in layout.kept]
            metadata = {key: value for key, value in (schema.metadata or {}).items() if key != _HUGGING_FACE}
        else:
            fields, metadata = [pa.field(name, pa.string()) for name in layout.kept], {}
        for key in layout.others:
            fields.append(pa.field(key, _type_of([(example.extra or {}).get(key) for example in examples], pa)))
        if layout.tokens:
            fields += [pa.field(name, pa.list_(pa.string())) for name in layout.table.tokens]
        if layout.links:
            fields.append(pa.field(LINKS, pa.string()))
            if layout.probabilities:
                fields.append(pa.field(PROBABILITIES, pa.list_(pa.float64())))
        return pa.schema(fields, metadata=metadata or None)

    def add(self, examples: Sequence[Example]) -> bytes:
        """Write a row group; return the bytes that are ready."""
        pa, layout, columns = self._pa, self._layout, []
        kept = self._kept(examples)
        columns += [kept.column(name) for name in layout.kept]
        for key in layout.others:
            kind = self._schema.field(key).type
            values = [(example.extra or {}).get(key) for example in examples]
            try:
                columns.append(pa.array(_as_text(values) if kind == pa.string() else values, kind))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise CannotHold(f"the column {quote(key)} is of the type {kind}, and then: {error}") from None
        if layout.tokens:
            for side in ("source", "target"):
                tokens = [getattr(example.pair, side).tokens for example in examples]
                columns.append(pa.array(map(list, tokens), pa.list_(pa.string())))
        if layout.links:
            found = [links_of(example) for example in examples]
            columns.append(pa.array([links for links, _ in found], pa.string()))
            if layout.probabilities:
                columns.append(pa.array([given for _, given in found], pa.list_(pa.float64())))
        self._file.write_table(pa.Table.from_arrays([*columns], schema=self._schema))
        return self._sink.take()

    def _kept(self, examples: Sequence[Example]) -> Any:
        """The columns that pass through: slices of the batches that were read, where rows follow each other."""
        pa, layout = self._pa, self._layout
        schema = pa.schema([self._schema.field(name) for name in layout.kept])
        pieces: list[Any] = []
        begin = 0
        while begin < len(examples):
            row, end = layout.row_of(examples[begin]), begin + 1
            if isinstance(row, ArrowRow):
                while end < len(examples) and _follows(examples[end], row, end - begin):
                    end += 1
                piece = pa.Table.from_batches([row.batch.slice(row.number, end - begin)])
                pieces.append(piece.select(list(layout.kept)).cast(schema))
            else:
                while end < len(examples) and not isinstance(examples[end].extra, ArrowRow):
                    end += 1
                pieces.append(self._of_texts(examples[begin:end], schema))
            begin = end
        return pa.concat_tables(pieces)

    def _of_texts(self, examples: Sequence[Example], schema: Any) -> Any:
        records = []
        for example in examples:
            row = self._layout.row_of(example)
            if row is not None:
                records.append({name: row.plain(name) for name in self._layout.kept})
            else:
                texts = self._layout.texts(example)
                records.append({name: texts.get(name) for name in self._layout.kept})
        fits = [field if self._pa.types.is_string(field.type) else None for field in schema]
        for record in records:
            for name, field in zip(self._layout.kept, fits, strict=True):
                record[name] = record[name] if field is not None else None
        return self._pa.Table.from_pylist(records, schema=schema)

    def close(self) -> bytes:
        self._file.close()
        return self._sink.take()


def _follows(example: Example, row: ArrowRow, steps: int) -> bool:
    other = example.extra
    return isinstance(other, ArrowRow) and other.batch is row.batch and other.number == row.number + steps


def _type_of(values: Sequence[Any], pa: Any) -> Any:
    """The type of a column of plain values: text unless all of them are numbers, or truth values."""
    kinds = {type(value) for value in values if value is not None}
    for kind, made in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64())):
        if kinds and kinds <= kind:
            return made
    return pa.string()


def _as_text(values: Sequence[Any]) -> list[str | None]:
    texts: list[str | None] = []
    for value in values:
        plain = value is None or isinstance(value, str)
        texts.append(value if plain else json.dumps(value, ensure_ascii=False, default=str))
    return texts


def write(examples: Iterable[Example], added: Added | None = None) -> Iterator[bytes | CannotHold]:
    """Write a file; its first examples decide the columns."""
    added = added or Added()
    writer: _Writer | None = None
    layout: Layout | None = None
    held: list[Example] = []
    for example in examples:
        if layout is None:
            row = example.extra if isinstance(example.extra, Row) else None
            layout = Layout(added, row, example)
        if (wrong := _wrong(example, layout)) is not None:
            yield wrong
            continue
        held.append(example)
        if len(held) == _WRITTEN:
            writer = writer or _writer(layout, held)
            yield writer.add(held)
            held = []
    if layout is None:
        row = added.empty()
        layout = Layout(added, row)
        writer = _Writer(layout, (), row)
    writer = writer or _writer(layout, held)
    if held:
        yield writer.add(held)
    yield writer.close()


def _writer(layout: Layout, examples: Sequence[Example]) -> _Writer:
    row = examples[0].extra if examples and isinstance(examples[0].extra, Row) else None
    return _Writer(layout, examples, row)


def _wrong(example: Example, layout: Layout) -> CannotHold | None:
    """Why an example cannot be written; the whole row group would fail with it."""
    try:
        if layout.row_of(example) is None:
            "".join(layout.texts(example).values()).encode("utf-8")
        if layout.links:
            links_of(example)
        for side in (example.pair.source, example.pair.target) if layout.tokens else ():
            "".join(side.tokens).encode("utf-8")
        _as_text([(example.extra or {}).get(key) for key in layout.others])
    except UnicodeEncodeError:
        return CannotHold("this format cannot hold half a surrogate pair, which is no character")
    except CannotHold as error:
        return error
    except (ValueError, TypeError, RecursionError) as error:
        return CannotHold(str(error))
    return None


def _sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].startswith("PAR1")


FORMAT = Format(
    sniff=_sniff,
    read=read,
    write=write,
    read_columns=read,
    write_table=write,
    holds_confidence=True,
    left_out=lambda example: (),
    binary=True,
    cut="rows",
)
