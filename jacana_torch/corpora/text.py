"""Corpora, format text: a pair a line, `source TAB target` or `source ||| target`, without links.

A blank line is an empty pair. The sentences keep their raw text, so that what aligns them may tokenise it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..errors import CorpusError
from ..types import Example
from ._columns import columns, looks_like_links, pair_of, raw_text
from ._source import Source, per_line_and_pauses, quote

SUFFIXES = (".text",)


def sniff(lines: Sequence[str]) -> bool:
    """Most lines have two columns; one bad line, be it the first, should not hide what the others say."""
    return sum(len(columns(line)) == 2 for line in lines) * 2 > len(lines)


def read(source: Source) -> Iterator[Example | CorpusError | None]:
    return per_line_and_pauses(source, _parse)


def _parse(line: str) -> Example:
    found = columns(line)
    if len(found) == 2:
        return Example(pair_of(*found, raw=True))
    if not line.strip(" "):
        return Example(pair_of("", "", raw=True))
    if len(found) == 1:
        raise ValueError(f"no tab and no ' ||| ' between two sentences in {quote(line)}")
    hint = "; with links in the third, it is --from pharaoh or talp" if looks_like_links(found[2]) else ""
    raise ValueError(f"{len(found)} columns instead of source and target{hint}")


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        yield f"{raw_text(example.pair.source)}\t{raw_text(example.pair.target)}\n"
