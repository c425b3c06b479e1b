"""Find the format of a file: by its name, or by its first lines.

A format is a module of this package without a leading underscore; its name is the name of the format, and its
constant FORMAT is a `Format`. A module of your own is named in full, as in `--to my_package.my_format`, if
JACANA_TRUST lists its package.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ConfigError, CorpusError
from ..types import Alignment, Example
from ..util.build import trusted
from ._files import BOM, Source, quote
from ._lines import Links

_PACKAGE = __package__ or "jacana_torch.corpora"
_HEAD_LINES = 50

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
    `suffixes`          endings of file names
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
    found = (module.name for module in pkgutil.iter_modules(sys.modules[_PACKAGE].__path__))
    names = sorted(name for name in found if not name.startswith("_"))
    return tuple(name for name in names if fits is None or fits(format_named(name)))


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
    module = name if "." in name else f"{_PACKAGE}.{name}"
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
    lowered = name.lower().removesuffix(".gz")
    return [each for each in formats() if lowered.endswith(format_named(each).suffixes)]


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
