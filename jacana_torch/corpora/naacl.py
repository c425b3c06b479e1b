"""The format naacl of the shared tasks WPT 2003 and 2005: `sentence i j [S|P] [confidence]`, all counted from 1.

Files have no text. It comes from elsewhere: by `read(..., text=...)` from a file of pairs or from the task's two
files of sentences, or by `align_to` from the gold. A position 0 is NULL and links nothing. Lines come in any
order, so all links are held in memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from ..errors import CorpusError, quote
from ..types import Alignment, Example
from . import Format, Numbered
from ._files import Source, alignment_of, each_written, per_line, split_tokens

_POSITION = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHOWN = 40  # digits of a number in a message

Row = tuple[int, int, int, bool, float | None]  # line, i, j, possible, confidence


@dataclass
class _Sentence:
    """The links of one sentence, and the error of a bad line, which spoils them all."""

    file: str
    line: int  # the first that names the sentence
    rows: list[Row] = field(default_factory=list)
    error: CorpusError | None = None

    def alignment(self, n_source: int, n_target: int) -> Alignment:
        if self.error is not None:
            raise self.error
        for line, i, j, _, _ in self.rows:
            if i > n_source or j > n_target:
                wrong = f"link {i} {j} is out of range for {n_source} x {n_target} tokens"
                raise CorpusError(wrong, self.file, line)
        rows = [row for row in self.rows if row[1] and row[2]]
        return Alignment(
            n_source,
            n_target,
            frozenset((i - 1, j - 1) for _, i, j, possible, _ in rows if not possible),
            frozenset((i - 1, j - 1) for _, i, j, possible, _ in rows if possible),
            {(i - 1, j - 1): value for _, i, j, _, value in rows if value is not None},
        )


def _sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and all(_fields(split_tokens(line)) is not None for line in lines[:5])


def _read_numbered(source: Source) -> tuple[Numbered, list[CorpusError]]:
    """Return the links by sentence number, and the errors of lines whose sentence is not known."""
    sentences: dict[int, _Sentence] = {}
    errors: list[CorpusError] = []
    for number, item in enumerate(per_line(source, _parse), start=1):
        if item is None:
            continue
        if isinstance(item, CorpusError):
            errors.append(item)
            continue
        sentence, i, j, possible, confidence = item
        if sentence == 0:
            errors.append(CorpusError("there is no sentence 0: sentences count from 1", source.name, number))
            continue
        entry = sentences.setdefault(sentence, _Sentence(source.name, number))
        if isinstance(confidence, str):
            entry.error = entry.error or CorpusError(confidence, source.name, number)
        else:
            entry.rows.append((number, i, j, possible, confidence))
    return {number: (entry.line, entry.alignment) for number, entry in sentences.items()}, errors


def _parse(line: str) -> tuple[int, int, int, bool, float | str | None] | None:
    """Parse a line; if it is bad and its sentence is known, the error replaces the confidence."""
    pieces = split_tokens(line)
    if not pieces:
        return None
    fields = _fields(pieces)
    if fields is None:
        wrong = f"expected 'sentence i j [S|P] [confidence]' and not {quote(line)}"
        if len(pieces) == 1 or not _POSITION.fullmatch(pieces[0]):
            raise ValueError(wrong)
        return int(pieces[0]), 0, 0, False, wrong
    mark, number = fields
    confidence: float | str | None = float(number) if number else None
    if isinstance(confidence, float) and not math.isfinite(confidence):
        confidence = f"the confidence {quote(number, _SHOWN)} is beyond all numbers"
    return int(pieces[0]), int(pieces[1]), int(pieces[2]), mark == "P", confidence


def _fields(pieces: Sequence[str]) -> tuple[str, str] | None:
    """Return the mark and the confidence, "" for none; None if the line is not of this format."""
    if len(pieces) < 3 or not all(map(_POSITION.fullmatch, pieces[:3])):
        return None
    rest = list(pieces[3:])
    mark = rest.pop(0) if rest and rest[0] in ("S", "P") else ""
    number = rest.pop(0) if rest and _NUMBER.fullmatch(rest[0]) else ""
    return None if rest else (mark, number)


def _lines(example: Example, number: int) -> str:
    """Return the lines of the n-th example as sentence n, whatever its id; one without links has no line."""
    gold = alignment_of(example)
    lines = []
    for i, j in gold.all_links:
        confidence = gold.confidence.get((i, j))
        tail = f" {float(confidence)!r}" if confidence is not None else ""
        lines.append(f"{number} {i + 1} {j + 1} {'S' if (i, j) in gold.sure else 'P'}{tail}\n")
    return "".join(lines)


FORMAT = Format(
    sniff=_sniff,
    read_numbered=_read_numbered,
    write=partial(each_written, write=_lines),
    suffixes=(".wa",),
    holds_confidence=True,
)
