"""Gold links as edits: the reachable alignment that training steers towards.

Contiguous links become phrases, of which every token has a link. Where a word is linked to words that do not stand
together, or to more of them than a phrase may have, those links are kept that agree best with the others and look
most alike.
"""

from __future__ import annotations

import numpy as np

from ...types import Alignment
from .edit_features import Edit, Problem
from .packing import decode
from .phrases import coverage

INVENTED = 0.9  # what a link costs that a phrase brings and gold lacks; below 1, so that runs of links are merged
_TIE = 1e-3


def reachable(gold: Alignment, problem: Problem) -> list[Edit]:
    """The edits whose links are nearest to gold: most of its links, fewest others; likeness breaks ties."""
    source, target = problem.source, problem.target
    links = np.zeros((source.n, target.n))
    if gold.sure:
        links[tuple(np.array(sorted(gold.sure)).T)] = 1.0
    total = np.pad(links, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    found = total[source.end[:, None], target.end] - total[source.start[:, None], target.end]
    found -= total[source.end[:, None], target.start] - total[source.start[:, None], target.start]
    invented = source.length[:, None] * target.length - found
    gains = found - INVENTED * invented + _TIE * problem.similarity * found
    return decode(np.where(coverage(links, source, target) > 1 - _TIE, gains, 0.0), source, target)


def links_of(edits: list[Edit], problem: Problem) -> frozenset[tuple[int, int]]:
    """Each token of a phrase with each token of the other."""
    source, target = problem.source, problem.target
    return frozenset(
        (i, j)
        for s, t in edits
        for i in range(int(source.start[s]), int(source.end[s]))
        for j in range(int(target.start[t]), int(target.end[t]))
    )
