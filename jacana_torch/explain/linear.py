"""Aligners that are linear chains, explained: a few pairs at a time, so that features never pile up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..crf.decoding import grids
from ..types import Alignment, SentencePair
from . import Explanation
from .chains import Chain, chains

if TYPE_CHECKING:
    from ..aligners.crf import Crf

AT_ONCE = 64  # pairs; as long as one of them is held, so are the features of its grid
MOST_CELLS = 20_000  # of a grid, unless a single pair has more
NO_WORDS = "one of the sentences has no words, so there is nothing to link"
Align = Callable[[Sequence[SentencePair]], list[Alignment]]


def explained(
    forward: Crf,
    backward: Crf | None,
    pairs: Sequence[SentencePair],
    align: Align,
    symmetrizer: str | None = None,
) -> Iterator[Explanation]:
    """One a pair, in order. `align` is what the aligner makes of pairs."""
    waiting = iter(pairs)
    while some := list(islice(waiting, AT_ONCE)):
        told = _told(forward, backward, some)
        for pair, alignment, directions in zip(some, align(some), told, strict=True):
            note = "" if directions else NO_WORDS
            yield Explanation(pair, alignment, directions, symmetrizer, note)


def _told(forward: Crf, backward: Crf | None, pairs: Sequence[SentencePair]) -> list[tuple[Chain, ...]]:
    out: list[tuple[Chain, ...]] = [()] * len(pairs)
    for places, grid in grids(pairs, MOST_CELLS):
        grid.remember(forward.scorer().memory)
        sides = [chains(forward, grid, "forward")]
        if backward is not None:
            sides.append(chains(backward, grid.flipped(), "backward"))
        for place, *directions in zip(places, *sides, strict=True):
            out[place] = tuple(directions)
    return out
