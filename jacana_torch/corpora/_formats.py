"""Corpora: which formats there are and which one a file is in. In: a name, first bytes; out: the format's module.

A format is a module of this package without a leading underscore, and its name is the format's. It has

    SUFFIXES                  file name endings that say it, perhaps none
    sniff(lines)              whether the first lines (blank ones left out) look like it
    read(source)              yields Examples, in a bad one's place the CorpusError; raises if it cannot go on
    write(examples)           yields pieces of text; raises CannotHold for an example it has no way to write
    read_links(source)        optional: yields Links for lines that have no text, an item a line
    read_numbered(source)     optional: the same where lines name their sentence
    write_links(examples)     optional: as write, leaving out the text
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError, CorpusError
from ._source import BOM, quote

_PACKAGE = __package__ or "jacana_torch.corpora"
_HEAD_LINES = 50


def formats() -> tuple[str, ...]:
    """The names of all formats, found anew each time: a module that is put there is a format."""
    path = sys.modules[_PACKAGE].__path__
    return tuple(sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")))


def module_of(format: str) -> Any:
    if format not in formats():
        raise ConfigError(f"there is no corpus format {quote(format)}; there are {', '.join(formats())}")
    return importlib.import_module(f"{_PACKAGE}.{format}")


def _named(name: str | None) -> list[str]:
    lowered = (name or "").lower().removesuffix(".gz")
    return [each for each in formats() if lowered.endswith(tuple(module_of(each).SUFFIXES))]


def head_lines(head: bytes) -> list[str]:
    """The whole lines of a file's first bytes that are not blank; a cut off last one only if there is no other."""
    lines = [each.removesuffix("\r") for each in head.decode("utf-8", "replace").removeprefix(BOM).split("\n")]
    cut_off = bool(lines[-1])
    filled = [line for line in lines if line.strip(f" \t{BOM}")]
    return (filled[:-1] if cut_off and len(filled) > 1 else filled)[:_HEAD_LINES]


def guess(name: str | None, head: bytes) -> str:
    """The format, by the name's ending if that says it, else by the first lines; CorpusError if neither does."""
    named = _named(name)
    if len(named) == 1:
        return named[0]
    lines = head_lines(head)
    if not lines and not named:
        return "text"  # nothing but blank lines: whatever it is, there are as many empty pairs in it
    fitting = [each for each in named or formats() if module_of(each).sniff(lines)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        wrong = f"this could be {' or '.join(fitting)}"
    else:
        wrong = "cannot tell the format" + _why(lines)
    raise CorpusError(f"{wrong}: say which with --from (one of {', '.join(formats())})", name or "<stream>")


def _why(lines: Sequence[str]) -> str:
    """Where what the first line promises is broken, if it promises anything."""
    if not lines:
        return ""
    known = [each for each in formats() if module_of(each).sniff(lines[:1])]
    for k in range(1, len(lines) if known else 0):
        if not any(module_of(each).sniff(lines[: k + 1]) for each in known):
            return f": the first lines could be {' or '.join(known)}, but not {quote(lines[k])}"
    return f" from the first line, {quote(lines[0])}"


def format_for_writing(name: str) -> str:
    """The format that the name of a file to be written stands for."""
    named = _named(name)
    if len(named) == 1:
        return named[0]
    wrong = f"the name could stand for {' or '.join(named)}" if named else "the name does not say the format"
    raise CorpusError(f"{wrong}: say which with --to (one of {', '.join(formats())})", name)
