"""Words that a pair repeats: links in order, where a chain cannot tell equal words apart.

In `the the the ...`, a word is surely linked to an equal word, but to each of them with a small probability, so
that a threshold finds no link, or links without any order. Such words are linked in their order: the first to the
first, and so on. Ordinary text has none of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..crf.links import FEWEST, SURE
from ..features.grid import Grid

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]

FIRM = 0.95  # links as likely as this stay as they are


def in_order(
    grid: Grid,
    pairs: np.ndarray,
    chosen: np.ndarray,
    forward: np.ndarray,
    backward: np.ndarray,
    combine: Combine,
) -> np.ndarray:
    """Return the cells that are links, ascending: those that were `chosen`, with repeated words in order.

    `pairs` are those to look at, `forward` and `backward` [C] the posteriors of both directions; `combine` makes
    one probability of them.
    """
    links = np.zeros(grid.n_cells, dtype=bool)
    links[chosen] = True
    for k in pairs.tolist():
        pair, shape = grid.pairs[k], (int(grid.n_source[k]), int(grid.n_target[k]))
        cells = slice(int(grid.cell_start[k]), int(grid.cell_start[k]) + shape[0] * shape[1])
        of_pair, there, back = (values[cells].reshape(shape) for values in (links, forward, backward))
        rows, columns = _places(pair.source.tokens), _places(pair.target.tokens)
        for word in rows.keys() & columns.keys():
            if min(len(rows[word]), len(columns[word])) >= FEWEST:
                block = np.ix_(rows[word], columns[word])
                others = of_pair[rows[word]].sum(1), of_pair[:, columns[word]].sum(0)
                of_pair[block] = _placed(of_pair[block], *others, there[block], back[block], combine)
    return np.flatnonzero(links)


def _places(tokens: tuple[str, ...]) -> dict[str, list[int]]:
    """Return where each word is, whatever its case."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token.lower(), []).append(place)
    return places


def _placed(
    links: np.ndarray,
    row_links: np.ndarray,
    column_links: np.ndarray,
    forward: np.ndarray,
    backward: np.ndarray,
    combine: Combine,
) -> np.ndarray:
    """Return the links [m, n] of a word that comes m and n times, in order if some are lost or tangled.

    `row_links` [m] and `column_links` [n] count all links of the word, those to other words among them.
    """
    sure = forward.sum(1) >= SURE, backward.sum(0) >= SURE
    lost = sure[0] & (row_links == 0), sure[1] & (column_links == 0)
    if max(min(lost[0].sum(), lost[1].sum()), links.sum() - max(links.shape)) < FEWEST:  # neither lost nor tangled
        return links
    probability = combine(forward.ravel(), backward.ravel()).reshape(links.shape)
    loose = links & (probability < FIRM)
    # Words whose other links are firm, or lead to other words, keep them.
    free = np.ix_(sure[0] & (row_links == loose.sum(1)), sure[1] & (column_links == loose.sum(0)))
    placed: np.ndarray = links.copy()
    block = np.zeros(probability[free].shape, dtype=bool)
    block[matched(probability[free])] = True
    placed[free] = block
    return placed


def matched(worth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the best matching in order, with a partner for each word of the shorter side."""
    if len(worth) > len(worth.T):
        columns, rows = matched(worth.T)
        return rows, columns
    n, m = worth.shape
    spare = m - n  # row k goes to column k + s, for an s that never falls
    best, steps = np.zeros(spare + 1), []
    for k in range(n):
        so_far = np.maximum.accumulate(best)
        steps.append(np.maximum.accumulate(np.where(best == so_far, np.arange(spare + 1), 0)))
        best = so_far + worth[k, k : k + spare + 1]
    shift, shifts = int(best.argmax()), []
    for step in reversed(steps):
        shifts.append(shift)
        shift = int(step[shift])
    rows = np.arange(n)
    return rows, rows + np.array(shifts[::-1], dtype=np.int64)
