"""Corpora: files of sentence pairs, aligned or not, in many formats.

    for example in read("gold.jsonl"): ...
    write(examples, "gold.talp")

A format is a module of this package without a leading underscore; its name is the name of the format, and its
constant FORMAT is a `Format`. A module of your own is named in full, as in `--to my_package.my_format`, if
JACANA_TRUST lists its package. Without a name, the format is guessed from the name of the file or its first lines.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from ..errors import ConfigError, CorpusError, did_you_mean, quote
from ..types import Alignment, Example, Link
from ..util.build import trusted
from ._files import (
    CannotHold,
    Readable,
    Source,
    TextSource,
    Writable,
    each_written,
    name_of,
    per_line,
    write_chunks,
)  # fmt: skip

__all__ = [
    "CannotHold", "Format", "OnBad", "SkipBad", "Source", "Writable", "align_to", "by_suffix", "can_align",
    "can_read", "can_write", "convert", "each_written", "format_for_writing", "format_named", "formats", "guess",
    "per_line", "read", "read_live", "write", "write_chunks",
]  # fmt: skip

if TYPE_CHECKING:
    from ._tables import Added, Columns

log = logging.getLogger(__name__)

TSV = "tsv"  # the ending of many files without a header: their lines say what they are
_MOST_NAMED = 8  # keys that a message names

OnBad = Callable[[CorpusError], Example | None]
Read = Callable[[Source], Iterator[Example | CorpusError | None]]
Write = Callable[[Iterable[Example]], Iterator[str | bytes | CannotHold]]
WriteTable = Callable[[Iterable[Example], "Added | None"], Iterator[str | bytes | CannotHold]]


# Sure and possible links of a line that has no text.
Links = tuple[list[Link], list[Link]]
# Links of sentences by number, and the line where each begins; and errors of lines whose sentence is unknown.
Numbered = dict[int, "tuple[int, Callable[[int, int], Alignment]]"]


@dataclass(frozen=True)
class Format:
    """How files of a format are recognised, read and written.

    `sniff`             tells whether the first lines (blank ones left out) look like the format
    `read`              yields Examples, and a CorpusError in place of a bad one; raises one if it cannot go on.
                        None: files have no text
    `write`             yields pieces of text, and a CannotHold in place of an example that cannot be written;
                        raises one if it cannot go on. None: files can only be read
    `write_links`       as `write`, without the text
    `read_links`        yields the links of files without text, one item per line
    `read_numbered`     the same for lines that name their sentence
    `suffixes`          endings of file names besides the name of the format
    `holds_links`       whether alignments can be written, and
    `holds_confidence`  whether the confidence of their links can
    `header`            whether the first line may name the columns (`per_line` leaves it out)
    `left_out`          names the keys of an example's `extra` that cannot be written. None: none can
    `read_columns`      as `read`, with these columns (or keys) for the two sides. None: records have no names
    `write_table`       as `write`, with columns besides the links (`_tables.Added`). None: it is no table
    `binary`            whether files are bytes and no text
    `cut`               where a large file may be cut: at its lines, at records of several lines, at rows, nowhere
    """

    sniff: Callable[[Sequence[str]], bool]
    read: Read | None = None
    write: Write | None = None
    write_links: Write | None = None
    read_links: Callable[[Source], Iterator[Links | CorpusError | None]] | None = None
    read_numbered: Callable[[Source], tuple[Numbered, list[CorpusError]]] | None = None
    suffixes: tuple[str, ...] = ()
    holds_links: bool = True
    holds_confidence: bool = False
    header: bool = False
    left_out: Callable[[Example], Iterable[str]] | None = None
    read_columns: Callable[[Source, Columns], Iterator[Example | CorpusError | None]] | None = None
    write_table: WriteTable | None = None
    binary: bool = False
    cut: Literal["lines", "records", "rows"] | None = None


def formats(fits: Callable[[Format], bool] | None = None) -> tuple[str, ...]:
    """List the formats of this package, or those that fit; a module that is put there is a format."""
    names = []
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_") and (fits is None or fits(format_named(module.name))):
            names.append(module.name)
    return tuple(sorted(names))


def can_read(format: Format) -> bool:
    """Whether files of the format hold text."""
    return format.read is not None


def can_write(format: Format) -> bool:
    """Whether files of the format can be written."""
    return format.write is not None


def can_align(format: Format) -> bool:
    """Whether the format can hold what an aligner finds."""
    return format.write is not None and format.holds_links


def format_named(name: str) -> Format:
    """Return the format of that name; its module is imported."""
    module = name if "." in name else f"{__name__}.{name}"
    if not (module.replace(".", "_").isidentifier() and trusted(module)):
        advice = f"; if you trust this module, set JACANA_TRUST={name.split('.')[0]}" if "." in name else ""
        raise _unknown(name, advice)
    try:
        made = vars(importlib.import_module(module)).get("FORMAT")
    except ModuleNotFoundError as error:
        if module.startswith(str(error.name)):
            raise _unknown(name) from None
        raise ConfigError(f"the format {name} cannot be imported ({error})") from error
    if not isinstance(made, Format):
        raise _unknown(name, f"; {module} has no Format called FORMAT" if "." in name else "")
    return made


def _unknown(name: str, advice: str = "") -> ConfigError:
    return ConfigError(f"there is no corpus format {quote(name)}{did_you_mean(name, formats())}{advice}")


def by_suffix(name: str) -> list[str]:
    """Return the formats that the ending of a file name may stand for."""
    lowered, names = name.lower().removesuffix(".gz"), formats()
    _, dot, ending = lowered.rpartition(".")
    if dot and ending in names:  # without importing the others
        return [ending]
    return [each for each in names if lowered.endswith(format_named(each).suffixes)]


def guess(name: str | None, head: bytes, header: bool | None = None, columns: Columns | None = None) -> str:
    """Return the format that the ending of the name says, else the first lines; a CorpusError if neither does.

    `header` says whether the first line names columns (None: its words decide), `columns` those of the two sides.
    """
    named = by_suffix(name or "")
    if columns is not None:
        from ._guess import guess_with_columns

        return guess_with_columns(named, head, columns)
    if len(named) == 1 and named != [TSV]:
        return named[0]
    from ._guess import guess_by_lines

    return guess_by_lines(name, [] if named == [TSV] else named, head, header)


def format_for_writing(name: str) -> str:
    """Return the format that the name of a file to write stands for."""
    named = by_suffix(name)
    if len(named) == 1:
        return named[0]
    wrong = f"the name could stand for {' or '.join(named)}" if named else "the name does not say the format"
    raise CorpusError(f"{wrong}: say which with --to (one of {', '.join(formats(can_write))})", name)


class SkipBad:
    """An `on_bad` that counts bad items and keeps the first errors for a report.

    `instead` is an Example that replaces each bad item, so that as many come out as went in.
    """

    def __init__(self, keep: int = 5, instead: Example | None = None) -> None:
        self.keep, self.instead = keep, instead
        self.count = 0
        self.first: list[CorpusError] = []

    def __call__(self, error: CorpusError) -> Example | None:
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(error)
        return self.instead

    def report(self) -> str:
        """List what was skipped, one line per error; "" if nothing was."""
        if not self.count:
            return ""
        lines = [f"skipped {self.count} bad {'item' if self.count == 1 else 'items'}:"]
        lines += [f"  {error}" for error in self.first]
        if self.count > len(self.first):
            lines.append(f"  and {self.count - len(self.first)} more")
        return "\n".join(lines)


def read(
    source: Readable,
    format: str | None = None,
    *,
    on_bad: OnBad | None = None,
    text: TextSource | None = None,
    header: bool | None = None,
    columns: Columns | None = None,
) -> Iterator[Example]:
    """Yield the examples of a path, of "-" (standard input) or of a stream, compressed by gzip or not.

    A bad item raises its CorpusError. `on_bad`, if given, gets the error instead, and what it returns, unless that
    is None, replaces the item. `text` is for files of links alone (pharaoh, talp, naacl): a corpus file with the
    pairs, or a tuple of two files with one sentence per line. `header` says whether the first line names columns
    instead of holding a pair; by default, its words decide. `columns` names the source and the target of a table
    (csv, tsv, parquet), or their keys in jsonl; the others are kept in `Example.extra`.
    """
    opened = Source(source, header)
    items = _items(opened, format, text, columns)
    return cast(Iterator[Example], _deliver(items, opened, on_bad))  # only read_live asks for pauses


def read_live(
    source: Source, format: str | None = None, *, on_bad: OnBad | None = None, columns: Columns | None = None
) -> Iterator[Example | None]:
    """Read as `read` does, and yield None when nothing has come for a moment: a writer may wait for an answer."""
    source.pauses = True
    return _deliver(_items(source, format, columns=columns), source, on_bad)


def _items(
    source: Source, name: str | None, text: TextSource | None = None, columns: Columns | None = None
) -> Iterator[Example | CorpusError | None]:
    try:
        name = name if name is not None else guess(source.name, source.head, source.header, columns)
        format = format_named(name)
        if columns is not None:
            if format.read_columns is None or text is not None:
                able = ", ".join(formats(lambda one: one.read_columns is not None))
                raise ConfigError(f"files of {name} have no columns to name: those of {able} have")
            return format.read_columns(source, columns)
        if source.header and (not (format.header or format.write_table) or text is not None):
            able = ", ".join(formats(lambda one: one.header))
            raise ConfigError(f"files of {name} do not name their columns: only those of {able} have a header")
        if text is not None:
            from ._beside import read_beside

            return read_beside(source, name, text)
        if format.read is None:
            raise CorpusError(
                f"{name} holds links without the sentences: evaluate it against a file that has them, or read it "
                "together with one (text=)",
                source.name,
            )
        return format.read(source)
    except BaseException:
        source.close()
        raise


def _deliver(
    items: Iterable[Example | CorpusError | None], source: Source, on_bad: OnBad | None
) -> Iterator[Example | None]:
    try:
        for item in items:
            if not isinstance(item, CorpusError):
                yield item
            elif on_bad is None:
                raise item
            elif (instead := on_bad(item)) is not None:
                from ._tables import BadRow

                yield item.replaced_by(instead) if isinstance(item, BadRow) else instead
    finally:
        source.close()


def align_to(gold: Sequence[Example], predicted: Readable, format: str | None = None) -> list[Alignment]:
    """Return the predictions of a file for the pairs of `gold`, in their order.

    Links without text (pharaoh, talp, naacl) get the sizes of gold's sentences. A file with text is matched by ids
    if it has the same ids as gold in another order, else by order; lengths must agree, or it is a CorpusError.
    """
    found = []
    for record in records_of(gold, predicted, format):
        assert record.gold is not None
        found.append(record.gold)
    return found


def records_of(gold: Sequence[Example], predicted: Readable, format: str | None = None) -> list[Example]:
    """As `align_to`, but with the records that hold these links, and their other keys."""
    from ._beside import records_of

    return records_of(gold, predicted, format)


def write(
    examples: Iterable[Example],
    target: Writable,
    format: str | None = None,
    *,
    links_only: bool = False,
    on_bad: OnBad | None = None,
    added: Added | None = None,
) -> int:
    """Write the examples and return how many: to a path all or nothing, to standard output if `target` is "-".

    `links_only` leaves out the text if the format can (pharaoh, talp), as aligners print their links. An example
    that the format cannot hold is a CorpusError. `on_bad`, if given, gets the error instead, and what it returns,
    unless that is None, is written in place of the example. Keys of records that the format cannot hold are left
    out, and logged once. `added` says which columns a table gets besides the links.
    """
    name = name_of(target)
    format = format if format is not None else format_for_writing(name)
    found = format_named(format)
    writer = found.write_links if links_only and found.write_links is not None else found.write
    if writer is None:
        raise CorpusError(f"{format} can be read, but not written: choose another format with --to", name)
    if found.write_table is not None and added is not None:
        writer = _with(found.write_table, added)
    alone = writer is found.write_links
    writing = _Writing(examples, name, on_bad, None if alone else found.left_out)
    write_chunks(writing.pieces(writer, header=found.header and not alone), target)
    if writing.lost:
        writing.report(format)
    return writing.count


def _with(write_table: WriteTable, added: Added) -> Write:
    return lambda examples: write_table(examples, added)


@dataclass(repr=False, eq=False)
class _Writing:
    """Examples on their way through a writer: which of them is bad, what takes its place, and what is left out."""

    examples: Iterable[Example]
    file: str
    on_bad: OnBad | None
    left_out: Callable[[Example], Iterable[str]] | None
    current: Example | None = None
    position: int = 0  # of the current example, from 1
    instead: Example | None = None
    lost: dict[str, int] = field(default_factory=dict)  # how many examples had each key
    count: int = 0  # of examples that are written

    def _given(self) -> Iterator[Example]:
        for example in self.examples:
            self.current = example
            self.position += 1
            self.count += 1
            if example.extra:
                for key in example.extra if self.left_out is None else self.left_out(example):
                    self.lost[key] = self.lost.get(key, 0) + 1
            yield example
            if self.instead is not None:
                self.count += 1
                yield self.instead
                self.instead = None

    def pieces(self, writer: Write, header: bool) -> Iterator[str | bytes]:
        """Yield the text; `header` tells whether a reader of it may take the first line for names of columns."""
        first = header
        try:
            for piece in writer(self._given()):
                if isinstance(piece, CannotHold):
                    self._bad(piece)
                    continue
                if first and isinstance(piece, str):
                    from ._header import NAMED, opens_with_names

                    first = False
                    if opens_with_names(piece):
                        yield NAMED
                yield piece
        except CannotHold as error:
            raise self._error(error) from None

    def _bad(self, reason: CannotHold) -> None:
        if self.on_bad is None or self.instead is not None:  # what replaces an example must be writable
            raise self._error(reason)
        self.count -= 1
        self.instead = self.on_bad(self._error(reason))

    def _error(self, reason: CannotHold) -> CorpusError:
        pair_id = self.current.pair.id if self.current is not None else None
        which = f"pair {self.position}" + (f" ({quote(pair_id)})" if pair_id is not None else "")
        return CorpusError(f"{which}: {reason}", self.file)

    def report(self, format: str) -> None:
        """Log which keys were left out."""
        named = ", ".join(quote(key) for key in list(self.lost)[:_MOST_NAMED])
        more = f" and {len(self.lost) - _MOST_NAMED} more" if len(self.lost) > _MOST_NAMED else ""
        able = " or ".join(formats(lambda one: one.left_out is not None))
        log.warning(
            "left out %s%s of %d pairs: %s cannot hold these keys of the input (%s can)",
            named, more, max(self.lost.values()), format, able,
        )  # fmt: skip


def convert(
    source: Readable,
    target: Writable,
    from_: str | None = None,
    to: str | None = None,
    *,
    on_bad: OnBad | None = None,
    text: TextSource | None = None,
    links_only: bool = False,
    header: bool | None = None,
) -> int:
    """Read one file and write another; return how many pairs. `on_bad` gets what cannot be read or written."""
    # Known before anything is read, so that a wrong name costs nothing.
    to = to if to is not None else format_for_writing(name_of(target))
    examples = read(source, from_, on_bad=on_bad, text=text, header=header)
    return write(examples, target, to, links_only=links_only, on_bad=on_bad)
