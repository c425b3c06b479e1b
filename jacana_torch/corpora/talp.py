"""Corpora, format talp: links `i-j` sure and `ipj` possible, 0-based, a pair a line; otherwise as pharaoh.

References that count from 1 exist under the same look; nothing in the file tells them apart, so shift those first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ..errors import CorpusError
from ..types import Example
from ._columns import format_bare, format_pair, link_texts, looks_like_links, parse_bare, parse_pair
from ._links import Links, format_links
from ._source import Source, per_line, per_line_and_pauses

SUFFIXES = (".talp",)


def sniff(lines: Sequence[str]) -> bool:
    """Links in the only or the third column, some of them possible."""
    return any("p" in text for text in link_texts(lines) if looks_like_links(text))


def read(source: Source) -> Iterator[Example | CorpusError | None]:
    return per_line_and_pauses(source, partial(parse_pair, possible=True))


def read_links(source: Source) -> Iterator[Links | CorpusError]:
    return per_line(source, partial(parse_bare, possible=True))


def write(examples: Iterable[Example]) -> Iterator[str]:
    return (format_pair(example, format_links) for example in examples)


def write_links(examples: Iterable[Example]) -> Iterator[str]:
    return (format_bare(example, format_links) for example in examples)
