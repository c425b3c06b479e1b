"""The states of a chain: which states and scores there are towards a target of n tokens, and gold as states.

States 0 to n are the same in every space: NULL and the target's positions. Only they begin a path. The functions
of a `StateSpace` take lengths and states as numbers or as arrays that broadcast, and return numbers of scores; -1
stands for no score.

A first-order chain gives each source token one state, but gold may link a token to several target tokens. A named
policy chooses which of those links trains, and the number of links left out is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..errors import ConfigError
from ..types import Alignment, Link


class StateSpace:
    """The plain space: states 0 to n, and a score for every step from one to another.

    `reach`: the continuations of two states differ by a factor of at most e^(reach * spread of transitions).
    """

    reach = 1

    def size(self, n: Any) -> Any:
        """Return the number of states."""
        return n + 1

    def edges(self, n: Any) -> Any:
        """Return how many transitions have a score of their own."""
        return (n + 1) ** 2

    def column(self, n: Any, state: Any) -> Any:
        """Return whose node and end score a state has: 0 for NULL's, else the position's."""
        return np.where(state <= n, state, -1)

    def edge(self, n: Any, before: Any, after: Any) -> Any:
        """Return which transition score a step has."""
        return np.where((before <= n) & (after <= n), before * (n + 1) + after, -1)

    def path(self, columns: np.ndarray, n: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return the states of consecutive paths that take these columns.

        `start` is where each token's path begins, `n` the length of its target.
        """
        return columns


class Remembering(StateSpace):
    """NULL remembers the last link: state n + k is NULL after position k, and 0 is NULL before any link.

    A link is then scored by its jump from the last link, across any number of NULLs. The transitions of the plain
    space come first, then the n * n jumps from NULL after one position to another. Every NULL stays NULL by the
    score of the step from 0 to 0. Two states that go to NULL, stay there and link the same position differ in the
    first and in the last of these steps, hence `reach`.
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


PLAIN, REMEMBERING = StateSpace(), Remembering()


# Candidates of each linked source token, in order: (i, the j's in ascending order).
Candidates = list[tuple[int, list[int]]]


class Readings(NamedTuple):
    """`paths`, which train equal shares: a state per token. `dropped` counts the gold links that no path holds."""

    paths: list[np.ndarray]
    dropped: int


class GoldStates(NamedTuple):
    """`states` [M]; `dropped` counts the gold links that they do not hold."""

    states: np.ndarray
    dropped: int


def gold_states(alignment: Alignment, policy: str = "monotone", possible: bool = False) -> GoldStates:
    """Return the state sequence that an alignment trains; `possible` adds possible links to the sure ones."""
    if policy not in POLICIES:
        raise ConfigError(f"policy={policy!r}: choose {' or '.join(POLICIES)} for tokens with several links")
    links = alignment.all_links if possible else alignment.links
    targets: dict[int, list[int]] = {}
    for i, j in links:
        targets.setdefault(i, []).append(j)
    chosen = POLICIES[policy](list(targets.items()), alignment.n_source, alignment.n_target)
    states = np.zeros(alignment.n_source, dtype=np.int64)
    for (i, _), j in zip(targets.items(), chosen, strict=True):
        states[i] = j + 1
    return GoldStates(states, len(links) - len(chosen))


def readings(alignment: Alignment, policies: Sequence[str]) -> Readings:
    """Return the paths that an alignment trains, one for each policy."""
    paths: list[np.ndarray] = []
    held: set[Link] = set()
    for policy in policies:
        paths.append(gold_states(alignment, policy).states)
        held.update(state_links(paths[-1]))
    return Readings(paths, len(alignment.links) - len(held))


def _first(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    return [js[0] for _, js in candidates]


def _last(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    return [js[-1] for _, js in candidates]


def _diagonal(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    """Choose the target nearest to the diagonal."""
    place = {i: (i + 0.5) * n_target / n_source - 0.5 for i, _ in candidates}
    return [min(js, key=lambda j: (abs(j - place[i]), j)) for i, js in candidates]


def _monotone(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    """Choose the path closest to one target token per source token."""
    if not candidates:
        return []
    best: dict[int, int] = dict.fromkeys(candidates[0][1], 0)
    back: list[dict[int, int]] = []
    for (before, _), (i, js) in zip(candidates, candidates[1:], strict=False):
        step, costs, pointers = i - before, {}, {}
        for j in js:
            from_each = []
            for k, cost in best.items():
                from_each.append((cost + abs(j - k - step), k))
            costs[j], pointers[j] = min(from_each)
        best = costs
        back.append(pointers)
    _, j = min(zip(best.values(), best, strict=True))
    chosen = [j]
    for pointers in reversed(back):
        j = pointers[j]
        chosen.append(j)
    return chosen[::-1]


POLICIES: Mapping[str, Callable[[Candidates, int, int], list[int]]] = MappingProxyType(
    {"monotone": _monotone, "diagonal": _diagonal, "first": _first, "last": _last}
)


def state_links(states: Sequence[int] | np.ndarray) -> list[Link]:
    """Return the links of one state sequence; NULL (0) and padding (-1) link nothing."""
    states = np.asarray(states, dtype=np.int64)
    linked = np.flatnonzero(states > 0)
    return list(zip(linked.tolist(), (states[linked] - 1).tolist(), strict=True))
