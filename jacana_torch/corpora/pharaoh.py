"""The format pharaoh: sure links `0-0 1-2`, counted from 0, one pair per line.

With its text, a line is `source TAB target TAB links` (or ` ||| ` for the tabs); without the third column the pair
is unaligned. Aligners print links alone, one line per pair; to read these you need the sentences, see `align_to`
and `read(..., text=...)`. Only talp can hold possible links.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ..types import Example
from ._formats import Format
from ._lines import columns, format_line, link_texts, looks_like_links, parse_links, parse_pair, per_line

log = logging.getLogger(__name__)


def _sniff(lines: Sequence[str]) -> bool:
    """Whether the only or the third column has links, none of them possible."""
    texts = link_texts(lines)
    if not texts:  # perhaps pairs with an empty third column: no links were found
        return bool(lines) and all(len(found := columns(line)) == 3 and not found[2].strip() for line in lines)
    return not any("p" in text for text in texts if looks_like_links(text))


def _write(examples: Iterable[Example], *, text: bool) -> Iterator[str]:
    dropped = 0
    for example in examples:
        yield format_line(example, text=text, possible=False)
        dropped += len(example.gold.possible) if example.gold is not None else 0
    if dropped:
        log.warning("left out %d possible links, which pharaoh cannot hold and talp can", dropped)


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=partial(parse_pair, possible=False)),
    read_links=partial(per_line, parse=partial(parse_links, possible=False)),
    write=partial(_write, text=True),
    write_links=partial(_write, text=False),
    suffixes=(".pharaoh",),
)
