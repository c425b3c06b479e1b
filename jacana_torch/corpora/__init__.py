"""Corpora: files of sentence pairs, aligned or not, in many formats. In: files; out: Examples, and back.

    for example in read("gold.jsonl"): ...
    write(examples, "gold.talp")

A format is a module of this package (see `_formats`), and `format` is its name; left out, it is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from ..errors import CorpusError
from ..types import Example
from ._beside import TextSource, align_to, read_beside
from ._formats import format_for_writing, formats, guess, module_of
from ._links import CannotHold
from ._sink import Writable, name_of, write_chunks
from ._source import Readable, Source, quote

__all__ = ["SkipBad", "Source", "align_to", "convert", "formats", "guess", "read", "read_live", "write"]

OnBad = Callable[[CorpusError], Example | None]


class SkipBad:
    """An `on_bad` that goes on: counts what was bad and keeps the first few errors for a report.

    `instead` is an Example to put in each bad one's place, so that as many come out as went in.
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
        """What was skipped, a line an error; "" if nothing was."""
        if not self.count:
            return ""
        lines = [f"skipped {self.count} bad {'item' if self.count == 1 else 'items'}:"]
        lines += [f"  {error}" for error in self.first]
        if self.count > len(self.first):
            lines.append(f"  and {self.count - len(self.first)} more")
        return "\n".join(lines)


def read(
    source: Readable, format: str | None = None, *, on_bad: OnBad | None = None, text: TextSource | None = None
) -> Iterator[Example]:
    """The examples of a path, "-" (standard input) or stream, one by one; gzip is seen through.

    A bad item raises its CorpusError. With `on_bad` it is handed to that instead, and what comes back, unless it
    is None, takes the item's place. `text` is for files of links alone (pharaoh, talp, naacl): a corpus file with
    the pairs, or a tuple of two files with a sentence a line.
    """
    opened = Source(source)
    format = _format_of(opened, format)
    items = module_of(format).read(opened) if text is None else read_beside(opened, format, text)
    return cast(Iterator[Example], _deliver(items, opened, on_bad))  # there are no pauses but where asked for


def read_live(
    source: Source, format: str | None = None, *, on_bad: OnBad | None = None
) -> Iterator[Example | None]:
    """As read, with None wherever nothing more has come for a moment: someone may be waiting for an answer."""
    format = _format_of(source, format)
    source.pauses = True
    return _deliver(module_of(format).read(source), source, on_bad)


def _format_of(source: Source, format: str | None) -> str:
    try:
        format = format if format is not None else guess(source.name, source.head)
        module_of(format)
    except BaseException:
        source.close()
        raise
    return format


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
                yield instead
    finally:
        source.close()


def write(
    examples: Iterable[Example], target: Writable, format: str | None = None, *, links_only: bool = False
) -> int:
    """Writes the examples and returns how many. A path gets all or is left as it was; "-" is standard output.

    `links_only` leaves out the text where the format can (pharaoh, talp), as aligners print their links. An
    example that the format cannot hold is a CorpusError.
    """
    name = name_of(target)
    module = module_of(format if format is not None else format_for_writing(name))
    writer = module.write_links if links_only and hasattr(module, "write_links") else module.write
    counted = _Counted(examples)
    write_chunks(_told(writer(counted), counted, name), target)
    return counted.count


class _Counted:
    """Examples on their way into a writer, so that an error can say which one it was."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples, self.count = examples, 0
        self.current: Example | None = None

    def __iter__(self) -> Iterator[Example]:
        for example in self._examples:
            self.current = example
            self.count += 1
            yield example


def _told(chunks: Iterable[str], counted: _Counted, name: str) -> Iterator[str]:
    try:
        yield from chunks
    except CannotHold as error:
        pair_id = counted.current.pair.id if counted.current is not None else None
        which = f"pair {counted.count}" + (f" ({quote(pair_id)})" if pair_id is not None else "")
        raise CorpusError(f"{which}: {error}", name) from None


def convert(
    source: Readable,
    target: Writable,
    from_: str | None = None,
    to: str | None = None,
    *,
    on_bad: OnBad | None = None,
    text: TextSource | None = None,
    links_only: bool = False,
) -> int:
    """Reads one file and writes another; returns the number of pairs."""
    # Known before anything is read, so that a wrong name costs nothing.
    to = to if to is not None else format_for_writing(name_of(target))
    return write(read(source, from_, on_bad=on_bad, text=text), target, to, links_only=links_only)
