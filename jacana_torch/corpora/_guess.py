"""Guess the format of a file from its first lines."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CorpusError, quote
from . import format_named, formats
from ._files import BOM
from ._header import body

_HEAD_LINES = 50


def head_lines(head: bytes) -> list[str]:
    """Return the whole lines among a file's first bytes that are not blank; a cut off line only if it is alone."""
    lines = [each.removesuffix("\r") for each in head.decode("utf-8", "replace").removeprefix(BOM).split("\n")]
    cut_off = bool(lines[-1])
    filled = [line for line in lines if line.strip(f" \t{BOM}")]
    return (filled[:-1] if cut_off and len(filled) > 1 else filled)[:_HEAD_LINES]


def guess_by_lines(name: str | None, named: Sequence[str], head: bytes, header: bool | None) -> str:
    """Return the format of the first lines, one of `named` if any; a CorpusError if none or several fit."""
    lines = body(head_lines(head), header)
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


def guess_with_columns(named: Sequence[str], head: bytes, columns: tuple[str, str]) -> str:
    """Return the format of a file whose columns, or keys, have these names."""
    able = [each for each in named if format_named(each).read_columns is not None]
    if len(able) == 1 or (named and not able):
        return (able or named)[0]
    lines = head_lines(head)
    for name in ("jsonl", "parquet"):
        if format_named(name).sniff(lines):
            return name
    first = lines[0].split("\t") if lines else []
    return "tsv" if all(name in first for name in columns) else "csv"
