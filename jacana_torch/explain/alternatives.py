"""The best path through every state of one chain: what else might have been, and how much worse it is."""

from __future__ import annotations

import numpy as np


class Alternatives:
    """The best paths of one chain under the condition that a position has a state.

    `node` [M, S], `edge` [S, S] from row to column, `start` and `end` [S] are its scores; M is at least 1. `score`
    [M, S] is the score of the best path in which position m has state s.
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
        """Return [M] the best path with that state there.

        `best` is the best path of all; the two stay together where they meet. Ties go to the smallest state.
        """
        path: np.ndarray = best.copy()
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

    def competitor(self, position: int, states: int | np.ndarray) -> int | None:
        """Return the best state of a position that is not among these; None if there is no other."""
        scores = self.score[position].copy()
        scores[states] = -np.inf
        return int(scores.argmax()) if np.isfinite(scores).any() else None
