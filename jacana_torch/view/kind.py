"""What a link is: an alignment in, and what it is held against, and a kind for each link out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..types import Alignment, Link

LINK, ASIDE, HIT, MISS, INVENTION = "link", "aside", "hit", "miss", "invention"


def kinds(alignment: Alignment, gold: Alignment | None = None) -> dict[Link, str]:
    """In reading order. Sure links count, as `evaluate` counts them; those that are only possible are asides."""
    if gold is None:
        return {link: LINK if link in alignment.sure else ASIDE for link in alignment.all_links}
    every = alignment.sure | alignment.possible | gold.sure | gold.possible
    return {link: _against(link in alignment.sure, link in gold.sure) for link in sorted(every)}


def _against(found: bool, right: bool) -> str:
    if found:
        return HIT if right else INVENTION
    return MISS if right else ASIDE
