"""Corpora: files of sentence pairs, aligned or not, in many formats.

    for example in read("gold.jsonl"): ...
    write(examples, "gold.talp")

A format is a module of this package without a leading underscore; its name is the name of the format, and its
constant FORMAT is a `Format`. A module of your own is named in full, as in `--to my_package.my_format`, if
JACANA_TRUST lists its package. Without a name, the format is guessed from the name of the file or its first lines.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ..errors import ConfigError, CorpusError
from ..types import Alignment, Example
from ..util.build import trusted
from ._files import (
    BOM,
    CannotHold,
    Links,
    Readable,
    Source,
    TextSource,
    Writable,
    name_of,
    per_line,
    quote,
    write_chunks,
)  # fmt: skip

__all__ = [
    "CannotHold", "Format", "SkipBad", "Source", "align_to", "can_align", "can_read", "can_write", "convert",
    "format_for_writing", "format_named", "formats", "guess", "per_line", "read", "read_live", "write",
    "write_chunks",
]  # fmt: skip

_HEAD_LINES = 50

OnBad = Callable[[CorpusError], Example | None]
Read = Callable[[Source], Iterator[Example | CorpusError | None]]
Write = Callable[[Iterable[Example]], Iterator[str]]
# Links of sentences by number, and the line where each begins; and errors of lines whose sentence is unknown.
Numbered = dict[int, "tuple[int, Callable[[int, int], Alignment]]"]


@dataclass(frozen=True)
class Format:
    """How files of a format are recognised, read and written.

    `sniff`             tells whether the first lines (blank ones left out) look like the format
    `read`              yields Examples, and a CorpusError in place of a bad one; raises one if it cannot go on.
                        None: files have no text
    `write`             yields pieces of text; raises CannotHold for an example that cannot be written.
                        None: files can only be read
    `write_links`       as `write`, without the text
    `read_links`        yields the links of files without text, one item per line
    `read_numbered`     the same for lines that name their sentence
    `suffixes`          endings of file names besides the name of the format
    `holds_links`       whether alignments can be written, and
    `holds_confidence`  whether the confidence of their links can
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
    return ConfigError(f"there is no corpus format {quote(name)}; there are {', '.join(formats())}{advice}")


def _by_suffix(name: str) -> list[str]:
    lowered, names = name.lower().removesuffix(".gz"), formats()
    _, dot, ending = lowered.rpartition(".")
    if dot and ending in names:  # without importing the others
        return [ending]
    return [each for each in names if lowered.endswith(format_named(each).suffixes)]


def head_lines(head: bytes) -> list[str]:
    """Return the whole lines among a file's first bytes that are not blank; a cut off line only if it is alone."""
    lines = [each.removesuffix("\r") for each in head.decode("utf-8", "replace").removeprefix(BOM).split("\n")]
    cut_off = bool(lines[-1])
    filled = [line for line in lines if line.strip(f" \t{BOM}")]
    return (filled[:-1] if cut_off and len(filled) > 1 else filled)[:_HEAD_LINES]


def guess(name: str | None, head: bytes) -> str:
    """Return the format that the ending of the name says, else the first lines; a CorpusError if neither does."""
    named = _by_suffix(name or "")
    if len(named) == 1:
        return named[0]
    lines = head_lines(head)
    if not lines and not named:
        return "text"  # only blank lines: in any format, this is as many empty pairs
    fitting = [each for each in named or formats() if format_named(each).sniff(lines)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        wrong = f"this could be {' or '.join(fitting)}"
    else:
        wrong = "cannot tell the format" + _why(lines)
    raise CorpusError(f"{wrong}: say which with --from (one of {', '.join(formats())})", name or "<stream>")


def _why(lines: Sequence[str]) -> str:
    """Say where the lines stop being in the format of the first line, if that is in any."""
    if not lines:
        return ""
    known = [each for each in formats() if format_named(each).sniff(lines[:1])]
    for k in range(1, len(lines) if known else 0):
        if not any(format_named(each).sniff(lines[: k + 1]) for each in known):
            return f": the first lines could be {' or '.join(known)}, but not {quote(lines[k])}"
    return f" from the first line, {quote(lines[0])}"


def format_for_writing(name: str) -> str:
    """Return the format that the name of a file to write stands for."""
    named = _by_suffix(name)
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
