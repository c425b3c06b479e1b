"""Corpora: files of sentence pairs, aligned or not, in many formats.

    for example in read("gold.jsonl"): ...
    write(examples, "gold.talp")

`format` is the name of a module of this package; without it, it is guessed. See `Format` to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from ..errors import CorpusError
from ..types import Alignment, Example
from ._files import Readable, Source, TextSource, Writable, name_of, quote, write_chunks
from ._formats import Format, can_align, can_read, can_write, format_for_writing, format_named, formats, guess
from ._lines import CannotHold, per_line

__all__ = [
    "CannotHold", "Format", "SkipBad", "Source", "align_to", "can_align", "can_read", "can_write", "convert",
    "format_for_writing", "format_named", "formats", "guess", "per_line", "read", "read_live", "write",
    "write_chunks",
]  # fmt: skip

OnBad = Callable[[CorpusError], Example | None]


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
    source: Readable, format: str | None = None, *, on_bad: OnBad | None = None, text: TextSource | None = None
) -> Iterator[Example]:
    """Yield the examples of a path, of "-" (standard input) or of a stream, compressed by gzip or not.

    A bad item raises its CorpusError. `on_bad`, if given, gets the error instead, and what it returns, unless that
    is None, replaces the item. `text` is for files of links alone (pharaoh, talp, naacl): a corpus file with the
    pairs, or a tuple of two files with one sentence per line.
    """
    opened = Source(source)
    items = _items(opened, format, text)
    return cast(Iterator[Example], _deliver(items, opened, on_bad))  # only read_live asks for pauses


def read_live(
    source: Source, format: str | None = None, *, on_bad: OnBad | None = None
) -> Iterator[Example | None]:
    """Read as `read` does, and yield None when nothing has come for a moment: a writer may wait for an answer."""
    source.pauses = True
    return _deliver(_items(source, format), source, on_bad)


def _items(
    source: Source, name: str | None, text: TextSource | None = None
) -> Iterator[Example | CorpusError | None]:
    try:
        name = name if name is not None else guess(source.name, source.head)
        format = format_named(name)
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
                yield instead
    finally:
        source.close()


def align_to(gold: Sequence[Example], predicted: Readable, format: str | None = None) -> list[Alignment]:
    """Return the predictions of a file for the pairs of `gold`, in their order.

    Links without text (pharaoh, talp, naacl) get the sizes of gold's sentences. A file with text is matched by ids
    if it has the same ids as gold in another order, else by order; lengths must agree, or it is a CorpusError.
    """
    from ._beside import align_to

    return align_to(gold, predicted, format)


def write(
    examples: Iterable[Example], target: Writable, format: str | None = None, *, links_only: bool = False
) -> int:
    """Write the examples and return how many: to a path all or nothing, to standard output if `target` is "-".

    `links_only` leaves out the text if the format can (pharaoh, talp), as aligners print their links. An example
    that the format cannot hold is a CorpusError.
    """
    name = name_of(target)
    format = format if format is not None else format_for_writing(name)
    found = format_named(format)
    writer = found.write_links if links_only and found.write_links is not None else found.write
    if writer is None:
        raise CorpusError(f"{format} can be read, but not written: choose another format with --to", name)
    count, current = 0, None

    def counted() -> Iterator[Example]:
        nonlocal count, current
        for current in examples:
            count += 1
            yield current

    try:
        write_chunks(writer(counted()), target)
    except CannotHold as error:
        pair_id = current.pair.id if current is not None else None
        which = f"pair {count}" + (f" ({quote(pair_id)})" if pair_id is not None else "")
        raise CorpusError(f"{which}: {error}", name) from None
    return count


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
    """Read one file and write another; return the number of pairs."""
    # Known before anything is read, so that a wrong name costs nothing.
    to = to if to is not None else format_for_writing(name_of(target))
    return write(read(source, from_, on_bad=on_bad, text=text), target, to, links_only=links_only)
