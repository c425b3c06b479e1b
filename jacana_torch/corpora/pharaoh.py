"""Corpora, format pharaoh: sure links `0-0 1-2`, 0-based, a pair a line.

With its text, as it is read and written: `source TAB target TAB links` (or ` ||| ` for the tabs; without the
third column the pair is unaligned). Links alone, a line a pair, is what aligners print and `write_links` writes;
to be read they need the sentences, see `align_to` and `read(..., text=...)`. Possible links only talp can hold.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ..errors import CorpusError
from ..types import Example, Link
from ._columns import (
    LinkText,
    columns,
    format_bare,
    format_pair,
    link_texts,
    looks_like_links,
    parse_bare,
    parse_pair,
)
from ._links import Links, format_links
from ._source import Source, per_line, per_line_and_pauses

SUFFIXES = (".pharaoh",)

log = logging.getLogger(__name__)


def sniff(lines: Sequence[str]) -> bool:
    """Links in the only or the third column, none of them possible."""
    texts = link_texts(lines)
    if not texts:  # perhaps pairs with a third column that is there and empty: no links were found
        return bool(lines) and all(len(found := columns(line)) == 3 and not found[2].strip() for line in lines)
    return not any("p" in text for text in texts if looks_like_links(text))


def read(source: Source) -> Iterator[Example | CorpusError | None]:
    return per_line_and_pauses(source, partial(parse_pair, possible=False))


def read_links(source: Source) -> Iterator[Links | CorpusError]:
    return per_line(source, partial(parse_bare, possible=False))


def write(examples: Iterable[Example]) -> Iterator[str]:
    return _lines(examples, format_pair)


def write_links(examples: Iterable[Example]) -> Iterator[str]:
    return _lines(examples, format_bare)


def _lines(examples: Iterable[Example], one_line: Callable[[Example, LinkText], str]) -> Iterator[str]:
    dropped = 0

    def sure_only(sure: Sequence[Link], possible: Sequence[Link]) -> str:
        nonlocal dropped
        dropped += len(possible)
        return format_links(sure)

    for example in examples:
        yield one_line(example, sure_only)
    if dropped:
        log.warning("left out %d possible links, which pharaoh cannot hold and talp can", dropped)
