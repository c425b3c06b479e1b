"""The format talp: links `i-j` sure and `ipj` possible, counted from 0, one pair per line; otherwise as pharaoh.

Some references look the same and count from 1; nothing in the file tells them apart, so shift those first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from . import Format
from ._files import per_line
from .pharaoh import link_texts, looks_like_links, parse_links, parse_pair, write_lines


def _sniff(lines: Sequence[str]) -> bool:
    """Whether the only or the third column has links, some of them possible."""
    return any("p" in text for text in link_texts(lines) if looks_like_links(text))


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=partial(parse_pair, possible=True), header=True),
    read_links=partial(per_line, parse=partial(parse_links, possible=True)),
    write=partial(write_lines, text=True, possible=True),
    write_links=partial(write_lines, text=False, possible=True),
    header=True,
    cut="lines",
)
