"""The best path through every state of one chain: what else might have been, and by how much it is worse.

In come the scores of one chain, as numpy arrays; out go path scores [M, S] and the paths themselves.
"""

from __future__ import annotations

import numpy as np


class Alternatives:
    """`score` [M, S] is that of the best path on which position m has state s.

    `node` [M, S], `edge` [S, S] from row to column, `start` and `end` [S]; M is 1 at least.
    """

    def __init__(self, node: np.ndarray, edge: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        self._edge, self._node = edge, node
        self._before, self._after = np.empty_like(node), np.empty_like(node)
        self._before[0] = start + node[0]
        for m in range(1, len(node)):
            self._before[m] = (self._before[m - 1][:, None] + edge).max(0) + node[m]
        self._after[-1] = end
        for m in range(len(node) - 2, -1, -1):
            self._after[m] = (edge + (node[m + 1] + self._after[m + 1])).max(1)
        self.score = self._before + self._after

    def path(self, position: int, state: int, best: np.ndarray) -> np.ndarray:
        """[M] the best path with that state there. `best` is the best of all: where the two meet they stay
        together. Ties go to the smallest state."""
        path = best.copy()
        path[position] = state
        for m in range(position, 0, -1):
            path[m - 1] = (self._before[m - 1] + self._edge[:, path[m]]).argmax()
            if path[m - 1] == best[m - 1]:
                break
        for m in range(position + 1, len(path)):
            path[m] = (self._edge[path[m - 1]] + self._node[m] + self._after[m]).argmax()
            if path[m] == best[m]:
                break
        return path

    def rival(self, position: int, states: int | np.ndarray) -> int | None:
        """The best state of a position that is none of these; None where there is no other."""
        scores = self.score[position].copy()
        scores[states] = -np.inf
        return int(scores.argmax()) if np.isfinite(scores).any() else None
