"""Alignment error rate (Och and Ney 2003): the figure of papers whose gold tells sure links from possible ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Alignment
from .counts import check_same, links_of


def alignment_error_rate(gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str = "sure") -> float:
    """1 - (|A & S| + |A & P|) / (|A| + |S|) over all pairs, P being gold's sure and possible links, and A what is
    predicted: its sure links, or all of them. 0 where nothing is linked on either side."""
    check_same(gold, predicted)
    good = whole = 0
    for right, guess in zip(gold, predicted, strict=True):
        found = links_of(guess, links)
        good += len(found & right.sure) + len(found & (right.sure | right.possible))
        whole += len(found) + len(right.sure)
    return 1 - good / whole if whole else 0.0
