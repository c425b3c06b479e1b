"""Pair the sentences of two texts: exact dynamic programming over scores of blocks, then what has moved.

A block is one sentence of either text, or one and two, or two and one. Its score is additive: the weight of the
words that are aligned in it, less a share of the weight of all its words. The best sequence of blocks in the order
of both texts has the largest sum; sentences outside of it are deleted, inserted or moved. Moved ones are the best
assignment of what remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Block = tuple[int, int, int, int]  # the sentences first:last of the source and first:last of the target


@dataclass(frozen=True)
class Paired:
    """Sentences `source` and `target` (numbers) that belong together; one of them is empty if the other is new.

    `kind` is same, changed, split (1-2), merged (2-1), moved, deleted or inserted.
    """

    kind: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float = 0.0


def best_chain(scores: Mapping[Block, float], m: int, n: int) -> list[Block]:
    """Return the blocks of the largest total score that follow each other in both texts of m and n sentences.

    Blocks that add nothing are left out; of equal chains, the result is always the same.
    """
    ending: dict[int, list[tuple[Block, float]]] = {}
    for block in sorted(scores):
        if scores[block] > 0:
            ending.setdefault(block[1], []).append((block, scores[block]))
    best = np.zeros((m + 1, n + 1))
    for i in range(1, m + 1):
        row = best[i - 1].copy()
        for (first, _, begin, end), score in ending.get(i, ()):
            row[end] = max(row[end], best[first, begin] + score)
        best[i] = np.maximum.accumulate(row)
    chain: list[Block] = []
    i, j = m, n
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            fitting = [b for b, score in ending[i] if b[3] == j and best[i, j] == best[b[0], b[2]] + score]
            chain.append(fitting[0])
            i, _, j = fitting[0][0], None, fitting[0][2]
    return chain[::-1]


def best_assignment(scores: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Return the pairs of the largest total score among which no number comes twice on a side."""
    good = {pair: score for pair, score in scores.items() if score > 0}
    if not good:
        return []
    from scipy.optimize import linear_sum_assignment

    left, right = sorted({i for i, _ in good}), sorted({j for _, j in good})
    row, column = ({number: k for k, number in enumerate(side)} for side in (left, right))
    table = np.zeros((len(left), len(right)))
    for (i, j), score in good.items():
        table[row[i], column[j]] = score
    chosen = zip(*linear_sum_assignment(table, maximize=True), strict=True)
    found = [(left[int(r)], right[int(c)]) for r, c in chosen]
    return sorted(pair for pair in found if pair in good)


def paired(scores: Mapping[Block, float], m: int, n: int, least_moved: Mapping[Block, float]) -> list[Paired]:
    """Pair the sentences, in the order of the target; deleted ones come where they were.

    `least_moved` has the blocks of one and one that are good enough to have moved, with their scores.
    """
    chain = best_chain(scores, m, n)
    used = {i for b in chain for i in range(b[0], b[1])}, {j for b in chain for j in range(b[2], b[3])}
    free = {
        (b[0], b[2]): score
        for b, score in least_moved.items()
        if b[1] - b[0] == b[3] - b[2] == 1 and b[0] not in used[0] and b[2] not in used[1]
    }
    moved = {j: i for i, j in best_assignment(free)}
    gone = set(moved.values())
    found: list[Paired] = []
    i = j = 0
    for block in [*chain, (m, m, n, n)]:
        found += [Paired("deleted", (k,), ()) for k in range(i, block[0]) if k not in gone]
        for k in range(j, block[2]):
            found.append(
                Paired("moved", (moved[k],), (k,), free[moved[k], k])
                if k in moved
                else Paired("inserted", (), (k,))
            )
        i, j = block[1], block[3]
        source, target = tuple(range(block[0], i)), tuple(range(block[2], j))
        if source:
            kind = {(1, 1): "changed", (1, 2): "split", (2, 1): "merged"}.get(
                (len(source), len(target)), "changed"
            )
            found.append(Paired(kind, source, target, scores[block]))
    return found
