"""The format journal: what `jacana-torch annotate` writes, a line of JSON for every event.

The first line says which file is annotated; the others are events (`_annotations.py`). Read as a corpus, a journal
gives the pairs that were accepted, in the order of the file. Where annotators disagree, adjudicated work counts;
without any, the pair is an error. A last line that a killed process left without its end is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CorpusError, quote
from ..types import Example
from ..util.json_values import encodable, field, parse_object, shown
from . import Format, Source
from ._annotations import Annotations

MARK, VERSION = "jacana_annotation", 1


@dataclass(frozen=True)
class Header:
    """The first line of a journal: the name of the annotated file, its number of pairs, a digest of its words."""

    file: str
    pairs: int
    digest: str

    def line(self) -> dict[str, Any]:
        return {MARK: VERSION, "file": self.file, "pairs": self.pairs, "digest": self.digest}

    @classmethod
    def of(cls, item: dict[str, Any]) -> Header:
        version = field(item, MARK)
        if type(version) is not int or version != VERSION:
            raise ValueError(f"this journal has version {shown(version)}, and {VERSION} can be read: update")
        file, pairs, digest = (field(item, key) for key in ("file", "pairs", "digest"))
        if not isinstance(file, str) or type(pairs) is not int or not isinstance(digest, str):
            raise ValueError(f"the first line should have file, pairs and digest and is {shown(item)}")
        return cls(encodable(file), pairs, encodable(digest))


@dataclass
class Folded:
    """A journal up to its last whole line: its header (None: not even that), what its events add up to, its bytes.

    `lines` has the line of the last event of each pair.
    """

    header: Header | None
    state: Annotations
    size: int
    lines: dict[int, int]


def folded(source: Source) -> Folded:
    """Read a journal to its end."""
    out = Folded(None, Annotations(), 0, {})
    lines = [numbered for numbered in source.lines() if numbered is not None]
    for number, raw in lines:
        last = number == len(lines) and source.unended
        try:
            text = source.decode(number, raw)
        except CorpusError:
            if last:
                break
            raise
        if text.strip(" \t\r"):
            try:
                item = parse_object(text)
            except ValueError as error:
                if last:  # a line is written at once, so what is cut short was never answered for
                    break
                raise CorpusError(str(error), source.name, number) from None
            try:
                if out.header is None:
                    out.header = Header.of(item)
                else:
                    out.state.add(item)
                    if type(about := item.get("pair")) is int:
                        out.lines[about] = number
            except ValueError as error:
                raise CorpusError(str(error), source.name, number) from None
        out.size += len(raw) + 1
    return out


def _read(source: Source) -> Iterator[Example | CorpusError | None]:
    found = folded(source)
    for number, work in found.state.settled():
        pair = found.state.pairs[number]
        if isinstance(work, tuple):
            yield disagreement(pair.id, number, work, source.name, found.lines[number])
        else:
            yield Example(pair, work.alignment(pair))


def disagreement(
    id: str | None, number: int, names: Sequence[str], file: str, line: int | None = None
) -> CorpusError:
    which = f"pair {number + 1}" + (f" ({quote(id)})" if id is not None else "")
    return CorpusError(
        f"{which}: {' and '.join(map(quote, names))} disagree: decide with `jacana-torch annotate FILE "
        "--compare`, or export the work of one with `--annotator NAME --export OUT`",
        file,
        line,
    )


def _sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].lstrip(" \t{").startswith(f'"{MARK}"')


FORMAT = Format(sniff=_sniff, read=_read)
