"""The states of a chain towards a target of n tokens, and which score each state and transition has.

States 0 to n are the same in every space: NULL and the target's positions. Only they begin a path. The functions
take lengths and states as numbers or as arrays that broadcast, and return numbers of scores; -1 stands for no
score.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class StateSpace(Protocol):
    """`reach`: the continuations of two states differ by a factor of at most e^(reach * spread of transitions)."""

    reach: int

    def size(self, n: Any) -> Any:
        """Return the number of states."""
        ...

    def edges(self, n: Any) -> Any:
        """Return how many transitions have a score of their own."""
        ...

    def column(self, n: Any, state: Any) -> Any:
        """Return whose node and end score a state has: 0 for NULL's, else the position's."""
        ...

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        """Return which transition score a step has."""
        ...

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return the states of consecutive paths that take these columns.

        `start` is where each token's path begins, `n` the length of its target.
        """
        ...


class Plain:
    """States 0 to n, and a score for every step from one to another."""

    reach = 1

    def size(self, n: Any) -> Any:
        return n + 1

    def edges(self, n: Any) -> Any:
        return (n + 1) ** 2

    def column(self, n: Any, state: Any) -> Any:
        return np.where(state <= n, state, -1)

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        return np.where((before <= n) & (after <= n), before * (n + 1) + after, -1)

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        return columns


class Remembering:
    """NULL remembers the last link: state n + k is NULL after position k, and 0 is NULL before any link.

    A link is then scored by its jump from the last link, across any number of NULLs. The transitions of `Plain`
    come first, then the n * n jumps from NULL after one position to another. Every NULL stays NULL by the score of
    the step from 0 to 0. Two states that go to NULL, stay there and link the same position differ in the first and
    in the last of these steps, hence `reach`.
    """

    reach = 2

    def size(self, n: Any) -> Any:
        return 2 * n + 1

    def edges(self, n: Any) -> Any:
        return (n + 1) ** 2 + n**2

    def column(self, n: Any, state: Any) -> Any:
        return np.where(state <= n, state, np.where(state <= 2 * n, 0, -1))

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        linked = before <= n
        jump = np.where(linked, before * (n + 1) + after, (n + 1) ** 2 + (before - n - 1) * n + after - 1)
        null = np.where((before == 0) | (before > n), before, before + n)  # the NULL that follows `before`
        into = np.where(after == null, np.where(linked, before * (n + 1), 0), -1)
        return np.where(before > 2 * n, -1, np.where((after > 0) & (after <= n), jump, into))

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        token = np.arange(len(columns))
        last = np.maximum.accumulate(np.where(columns > 0, token, -1))  # the last link, perhaps of an earlier path
        return np.where((columns == 0) & (last >= start), n + columns[last], columns)


PLAIN, REMEMBERING = Plain(), Remembering()
