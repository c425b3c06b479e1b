"""What states a chain towards a target of n tokens has, and where each takes its scores from.

States 0 to n are the same everywhere: NULL, and the target's positions; they alone begin a path. A chain that
remembers has a NULL after each position besides, so that a link is scored by its jump from the last one, however
many NULLs are between. Lengths and states in, as numbers or arrays that fit each other, numbers of scores out; -1
where there is none.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Space(Protocol):
    """`reach`: the continuations of two states differ by a factor of at most e^(reach * spread of transitions)."""

    reach: int

    def size(self, n: Any) -> Any:
        """How many states there are."""
        ...

    def edges(self, n: Any) -> Any:
        """How many transitions have scores of their own."""
        ...

    def column(self, n: Any, state: Any) -> Any:
        """Whose node and end score a state has: 0 NULL's, else that position's."""
        ...

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        """Which of the transitions' scores a step has."""
        ...

    def square(self, n: int, scores: np.ndarray) -> np.ndarray:
        """[size, size] the scores of the steps, -inf where there is none."""
        ...

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        """The states of paths, one after the other, that take these columns; `start` is where each token's path
        begins, `n` its target's length."""
        ...


class Plain:
    """States 0 to n, and every step from one to another."""

    reach = 1

    def size(self, n: Any) -> Any:
        return n + 1

    def edges(self, n: Any) -> Any:
        return (n + 1) ** 2

    def column(self, n: Any, state: Any) -> Any:
        return np.where(state <= n, state, -1)

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        return np.where((before <= n) & (after <= n), before * (n + 1) + after, -1)

    def square(self, n: int, scores: np.ndarray) -> np.ndarray:
        return scores.reshape(n + 1, n + 1)

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        return columns


class Remembering:
    """State n + k is NULL after position k, and 0 NULL before any link: NULL keeps what it comes from.

    Transitions are those of Plain, followed by the n * n jumps from NULL after a position to a position. Every
    NULL stays NULL by the score of the step from 0 to 0, hence `reach`: after two states, the same NULLs and then
    the same position differ in the step to NULL and in the one from it.
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
        null = np.where((before == 0) | (before > n), before, before + n)  # what NULL is after that state
        into = np.where(after == null, np.where(linked, before * (n + 1), 0), -1)
        return np.where(before > 2 * n, -1, np.where((after > 0) & (after <= n), jump, into))

    def square(self, n: int, scores: np.ndarray) -> np.ndarray:
        plain, gap = scores[: (n + 1) ** 2].reshape(n + 1, n + 1), scores[(n + 1) ** 2 :].reshape(n, n)
        out, null = np.full((2 * n + 1, 2 * n + 1), -np.inf, scores.dtype), np.arange(n + 1, 2 * n + 1)
        out[: n + 1, 1 : n + 1], out[n + 1 :, 1 : n + 1] = plain[:, 1:], gap
        out[0, 0], out[null - n, null], out[null, null] = plain[0, 0], plain[1:, 0], plain[0, 0]
        return out

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        token = np.arange(len(columns))
        last = np.maximum.accumulate(
            np.where(columns > 0, token, -1)
        )  # the last link so far, perhaps another path's
        return np.where((columns == 0) & (last >= start), n + columns[last], columns)


PLAIN, REMEMBERING = Plain(), Remembering()
