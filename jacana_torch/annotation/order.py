"""Which pair to annotate next: the one whose proposed links are expected to have the most mistakes."""

from __future__ import annotations

import numpy as np

from ..types import Alignment


def expected_mistakes(posterior: np.ndarray, proposed: Alignment) -> float:
    """Return how many cells of a pair are expected to be wrong.

    `posterior` [M, N] is the probability of a link in each cell. A proposed link is wrong with the probability
    that there is none, and any other cell with the probability that there is one.
    """
    total = float(posterior.sum())
    for i, j in proposed.sure:
        total += 1.0 - 2.0 * float(posterior[i, j])
    return total
