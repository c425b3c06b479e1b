"""The format talp: links `i-j` sure and `ipj` possible, counted from 0, one pair per line; otherwise as pharaoh.

Some references look the same and count from 1; nothing in the file tells them apart, so shift those first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ..types import Example
from ._formats import Format
from ._lines import format_line, link_texts, looks_like_links, parse_links, parse_pair, per_line


def _sniff(lines: Sequence[str]) -> bool:
    """Whether the only or the third column has links, some of them possible."""
    return any("p" in text for text in link_texts(lines) if looks_like_links(text))


def _write(examples: Iterable[Example], *, text: bool) -> Iterator[str]:
    return (format_line(example, text=text, possible=True) for example in examples)


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=partial(parse_pair, possible=True)),
    read_links=partial(per_line, parse=partial(parse_links, possible=True)),
    write=partial(_write, text=True),
    write_links=partial(_write, text=False),
    suffixes=(".talp",),
)
