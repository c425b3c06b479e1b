"""The links that make the expected F1 of a pair the largest.

Chances of links go in, how many of the likeliest to keep comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def expected_f1_links(posteriors: Sequence[float] | np.ndarray) -> tuple[int, float, float]:
    """How many of the likeliest links to keep for the largest expected F1, were links independent.

    Returns that number, the probability of the least likely link kept (1.0 where none is), and the F1 expected.
    Keep the links with at least that probability. F1 is 0 where there are no links to find, as in evaluate.
    """
    # E[F1 of the k likeliest] = sum over h of P(h of them are gold) 2 h E[1 / (k + h + gold links of the rest)]:
    # the rest grows one by one from the least likely (Ye et al. 2012) while k shrinks, all h at once.
    chances = np.sort(np.asarray(posteriors, dtype=np.float64).reshape(-1))[::-1]
    n = len(chances)
    hits = [np.ones(1)]  # P(h of the k likeliest are gold), for each k
    for chance in chances:
        hits.append(np.append(hits[-1], 0.0) * (1 - chance) + np.append(0.0, hits[-1]) * chance)
    inverse = 1 / np.arange(1, 2 * n + 1, dtype=np.float64)  # E[1 / (a + gold links of the rest)], from a = 1
    best = (0, 1.0, 0.0)
    for k in range(n, 0, -1):
        h = np.arange(k + 1)
        f1 = float(hits[k] @ (2 * h * inverse[k - 1 : 2 * k]))
        if f1 > 0 and f1 >= best[2]:
            best = (k, float(chances[k - 1]), f1)
        inverse = inverse[:-1] * (1 - chances[k - 1]) + inverse[1:] * chances[k - 1]
    return best
