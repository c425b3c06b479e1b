"""How far annotators agree: their alignments of the same pairs in, F1, exact match and kappa of every two out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..errors import JacanaError
from ..types import Alignment
from .counts import check_same, links_of
from .score import Score, score


@dataclass(frozen=True)
class Agreement:
    """Of two annotators. F1 and exact do not depend on which of them counts as gold; precision and recall do, with
    the first as gold. `kappa` is Cohen's, over all cells, linked or not."""

    first: str
    second: str
    score: Score
    kappa: float


def agreements(annotators: Mapping[str, Sequence[Alignment]], links: str = "sure") -> list[Agreement]:
    """Every two of them."""
    if len(annotators) < 2:
        raise JacanaError(f"agreement is between two annotators at least, not {len(annotators)}")
    return [
        Agreement(one, other, score(annotators[one], annotators[other], links), cohen(
            annotators[one], annotators[other], links
        ))
        for one, other in combinations(annotators, 2)
    ]  # fmt: skip


def cohen(one: Sequence[Alignment], other: Sequence[Alignment], links: str = "sure") -> float:
    """Cohen's kappa of the question, asked of every cell: is it a link?"""
    check_same(one, other)
    cells = np.zeros((2, 2))
    for a, b in zip(one, other, strict=True):
        mine, theirs = links_of(a, links), links_of(b, links)
        both = len(mine & theirs)
        apart = len(mine) - both, len(theirs) - both
        cells += [[a.n_source * a.n_target - both - sum(apart), apart[1]], [apart[0], both]]
    return _kappa(
        np.trace(cells) / max(cells.sum(), 1), float(cells.sum(0) @ cells.sum(1)) / max(cells.sum(), 1) ** 2
    )


def fleiss(annotators: Sequence[Sequence[Alignment]], links: str = "sure") -> float:
    """Fleiss's kappa of the same question, of all annotators together."""
    for other in annotators[1:]:
        check_same(annotators[0], other)
    raters = len(annotators)
    votes = np.zeros(raters + 1)  # cells by how many call them links
    for alignments in zip(*annotators, strict=True):
        linked = [links_of(alignment, links) for alignment in alignments]
        every = frozenset().union(*linked)
        for link in every:
            votes[sum(link in one for one in linked)] += 1
        votes[0] += alignments[0].n_source * alignments[0].n_target - len(every)
    yes = np.arange(raters + 1)
    total = max(votes.sum(), 1)
    agreed = votes @ (yes * (yes - 1) + (raters - yes) * (raters - yes - 1)) / (total * raters * (raters - 1))
    share = votes @ yes / (total * raters)
    return _kappa(float(agreed), float(share**2 + (1 - share) ** 2))


def _kappa(agreed: float, by_chance: float) -> float:
    """1 where nothing but agreement was possible, and there was."""
    return float((agreed - by_chance) / (1 - by_chance)) if by_chance < 1 else 1.0
