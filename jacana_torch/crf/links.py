"""From flat scores to alignments: best paths, posteriors of links, and links of the highest expected F1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..types import Alignment, Link, trusted
from ..util.geometry import Geometry
from .arrays import placed
from .kernel import Flat, posteriors
from .layout import Layout
from .viterbi import best_paths


def decoded(layout: Layout, flat: Flat, device: str = "cpu", confidence: bool = True) -> list[Alignment]:
    """Return the links of the best path of every pair.

    `confidence` adds their posteriors and, as the score, log p(path | pair) per source token, for twice the time.
    All is computed in single precision, which loses far less than the weights mean.
    """
    g, flat = layout.geometry, placed(flat, device, "float32")
    columns, best = best_paths(layout, flat)
    token = np.flatnonzero(columns)
    entries = layout.node_entries(columns)[token]
    if not confidence:
        return alignments_of(g, entries - layout.n_tokens)
    nodes, log_z = posteriors(layout, flat)
    score = (best - log_z) / g.n_source
    return alignments_of(g, entries - layout.n_tokens, nodes[entries], score)


def link_posteriors(layout: Layout, flat: Flat, device: str = "cpu", precise: bool = True) -> np.ndarray:
    """Return [C] the posterior of every link cell; in single precision unless `precise`."""
    return posteriors(layout, placed(flat, device, "float64" if precise else "float32")).nodes[layout.n_tokens :]


def alignments_of(
    g: Geometry, cells: np.ndarray, probability: np.ndarray | None = None, score: np.ndarray | None = None
) -> list[Alignment]:
    """Return the alignments of all pairs with links in these cells, in ascending order, and what is known of them.

    `probability` is that of each of the cells, `score` that of each pair.
    """
    pair = np.searchsorted(g.cell_start, cells, side="right") - 1
    rows, columns = np.divmod(cells - g.cell_start[pair], g.n_target[pair])
    links: list[Link] = list(zip(rows.tolist(), columns.tolist(), strict=True))
    ends = np.searchsorted(pair, np.arange(len(g.n_source)), side="right").tolist()
    sizes = zip(g.n_source.tolist(), g.n_target.tolist(), [0, *ends], ends, strict=False)
    out = []
    if probability is None or score is None:
        for m, n, begin, end in sizes:
            out.append(trusted(m, n, frozenset(links[begin:end])))
        return out
    known = probability.tolist()
    for (m, n, begin, end), own in zip(sizes, score.tolist(), strict=True):
        confidence = dict(zip(links[begin:end], known[begin:end], strict=True))
        out.append(trusted(m, n, frozenset(confidence), confidence=confidence, score=own))
    return out


SURE = 0.5  # a word has a partner, whichever it is, if the posteriors of its links add up to this
FEWEST = 2  # words that are lost, or links too many: a single one is nothing unusual


def unsettled(g: Geometry, cells: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """Return the pairs where several source words have a partner and no link, or links of both sides are too many.

    `cells` are the links, `posterior` [C] is that of every cell.
    """
    pair = g.pair[cells]
    rows = np.bincount(g.source_token[cells], minlength=g.n_tokens)
    columns = np.bincount(g.target_start[pair] + g.n[cells], minlength=len(g.target_pair))
    begin = g.cell_start[g.source_pair] + g.source_position * g.n_target[g.source_pair]
    lost = (rows == 0) & (np.add.reduceat(posterior, begin) >= SURE)
    several = []
    for of, count in ((g.source_pair, lost), (g.source_pair, rows - 1), (g.target_pair, columns - 1)):
        several.append(np.bincount(of, np.maximum(count, 0), len(g.n_source)) >= FEWEST)
    return np.flatnonzero(several[0] | (several[1] & several[2]))


def expected_f1_links(posteriors: Sequence[float] | np.ndarray) -> tuple[int, float, float]:
    """Return how many of the likeliest links to keep for the highest expected F1, were links independent.

    Also returns the probability of the least likely link that is kept (1.0 if there is none) and the expected F1:
    keep all links with at least that probability. F1 is 0 where there are no links to find, as in `evaluate`.
    """
    # E[F1 of the k likeliest] = sum over h of P(h of them are gold) 2 h E[1 / (k + h + gold links of the rest)]:
    # the rest grows one by one from the least likely (Ye et al. 2012) while k shrinks, all h at once.
    probabilities = np.sort(np.asarray(posteriors, dtype=np.float64).reshape(-1))[::-1]
    n = len(probabilities)
    correct = [np.ones(1)]  # P(h of the k likeliest are gold), for each k
    for p in probabilities:
        correct.append(np.append(correct[-1], 0.0) * (1 - p) + np.append(0.0, correct[-1]) * p)
    inverse = 1 / np.arange(1, 2 * n + 1, dtype=np.float64)  # E[1 / (a + gold links of the rest)], from a = 1
    best = (0, 1.0, 0.0)
    for k in range(n, 0, -1):
        f1 = float(correct[k] @ (2 * np.arange(k + 1) * inverse[k - 1 : 2 * k]))
        if f1 > 0 and f1 >= best[2]:
            best = (k, float(probabilities[k - 1]), f1)
        inverse = inverse[:-1] * (1 - probabilities[k - 1]) + inverse[1:] * probabilities[k - 1]
    return best
