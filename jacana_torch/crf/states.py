"""Gold alignments as state sequences, and state sequences as links.

A first-order chain gives each source token one state: 0 for NULL, n for target token n - 1. Gold may link a source
token to several target tokens; a named policy says which of those links trains, and how many were dropped is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..errors import ConfigError
from ..types import Alignment, Link

# Candidates of each linked source token, in order: (i, the j's in ascending order).
Candidates = list[tuple[int, list[int]]]


class Readings(NamedTuple):
    """`paths`, of equal shares, each a state [M] int64 a token; `dropped` is how many gold links no path holds."""

    paths: list[np.ndarray]
    dropped: int


class GoldStates(NamedTuple):
    """`states` [M] int64; `dropped` is how many gold links the sequence does not hold."""

    states: np.ndarray
    dropped: int


def gold_states(alignment: Alignment, policy: str = "monotone", possible: bool = False) -> GoldStates:
    """The state sequence that an alignment trains; `possible` links count only where asked for."""
    if policy not in POLICIES:
        raise ConfigError(f"no policy {policy!r} for tokens with several links: choose {' or '.join(POLICIES)}")
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
    """What an alignment trains where each of several policies has an equal say."""
    paths = [gold_states(alignment, policy).states for policy in policies]
    held = {link for path in paths for link in state_links(path)}
    return Readings(paths, len(alignment.links) - len(held))


def _first(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    return [js[0] for _, js in candidates]


def _last(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    return [js[-1] for _, js in candidates]


def _diagonal(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    """The target nearest to where the token would be if both sentences ran evenly."""
    place = {i: (i + 0.5) * n_target / n_source - 0.5 for i, _ in candidates}
    return [min(js, key=lambda j: (abs(j - place[i]), j)) for i, js in candidates]


def _monotone(candidates: Candidates, n_source: int, n_target: int) -> list[int]:
    """The choice whose path departs least from stepping one target token for each source token."""
    if not candidates:
        return []
    best: dict[int, int] = dict.fromkeys(candidates[0][1], 0)
    back: list[dict[int, int]] = []
    for (before, _), (i, js) in zip(candidates, candidates[1:], strict=False):
        step, costs, pointers = i - before, {}, {}
        for j in js:
            costs[j], pointers[j] = min((cost + abs(j - k - step), k) for k, cost in best.items())
        best = costs
        back.append(pointers)
    j = min(best, key=lambda k: (best[k], k))
    chosen = [j]
    for pointers in reversed(back):
        j = pointers[j]
        chosen.append(j)
    return chosen[::-1]


POLICIES: Mapping[str, Callable[[Candidates, int, int], list[int]]] = MappingProxyType(
    {"monotone": _monotone, "diagonal": _diagonal, "first": _first, "last": _last}
)


def state_links(states: Sequence[int] | np.ndarray) -> list[Link]:
    """The links of one state sequence; NULL (0) and padding (-1) link nothing."""
    states = np.asarray(states, dtype=np.int64)
    return [(int(i), int(states[i]) - 1) for i in np.flatnonzero(states > 0)]
