"""Best paths in numpy: chains side by side in lanes, the last dimension in memory, so that one addition and one
maximum take a step of all of them.

A layout and its flat scores go in; states by token and the score of each path come out, the same as torch's to the
last tie and rounding, as sums are taken and compared in the same order (ties go to the smallest state of the last
position, then of the one before it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .flat import Flat, Tables, readable, rows, tables
from .layout import Layout

_STEP = 1 << 18  # numbers of one step, which should stay in a processor's caches
_PLACES = 1 << 19  # states of all times in one set of lanes
_WASTE = 2_000_000  # transitions of states that are padding, for as long as another set of lanes takes to start
_FEW = 4  # states are the last dimension where there are as many times more of them than of lanes


@dataclass(frozen=True)
class Lanes:
    """K pairs, the longest first, over T times, in as many states as the longest target has. Tokens are told time
    after time, R of them, those of a time in the order of the pairs."""

    layout: Layout
    pairs: np.ndarray

    @cached_property
    def n_source(self) -> np.ndarray:
        return self.layout.n_source[self.pairs]

    @cached_property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct target lengths, and [K] which of them each pair has."""
        return np.unique(self.layout.n_target[self.pairs], return_inverse=True)

    @cached_property
    def states(self) -> int:
        return int(self.layout.space.size(self.targets[0][-1]))

    @cached_property
    def alive(self) -> list[int]:
        """[T] how many pairs there are at each time."""
        ended = np.searchsorted(self.n_source[::-1], np.arange(self.n_source[0]), "right")
        return (len(self.pairs) - ended).tolist()

    @cached_property
    def times(self) -> list[slice]:
        """[T] the tokens of each time."""
        past = np.cumsum(self.alive).tolist()
        return [slice(end - k, end) for end, k in zip(past, self.alive, strict=True)]

    @cached_property
    def lane(self) -> np.ndarray:
        """[R] whose each token is."""
        return np.concatenate([np.arange(k) for k in self.alive])

    @cached_property
    def position(self) -> np.ndarray:
        """[R] the time of each token."""
        return np.repeat(np.arange(len(self.alive)), self.alive)

    @cached_property
    def token(self) -> np.ndarray:
        """[R] the number of each token in the layout."""
        return self.layout.token_start[self.pairs][self.lane] + self.position

    def nodes(self, flat: Flat) -> np.ndarray:
        """[R, states] scores; what there is where there is no state means nothing."""
        n = self.layout.n_target[self.pairs]
        cell = self.layout.cell_start[self.pairs][self.lane] + self.position * n[self.lane]
        return rows(self.layout, flat[0], self.states, (self.token, cell, self.lane), n)


def best_paths(layout: Layout, flat: Flat) -> tuple[np.ndarray, np.ndarray]:
    """The column of every source token on its pair's best path, and the score of each path."""
    states = np.zeros(layout.n_tokens, np.int64)
    scores, flat = np.zeros(len(layout.n_source), flat[0].dtype), readable(layout, flat)
    every = list(cut(layout))
    most = max((len(lanes.pairs) * lanes.states**2 for lanes in every), default=0)
    room = np.empty((2, most), scores.dtype)  # for every step, as pages that are asked for anew have to be cleared
    for lanes in every:
        own = tables(layout, flat, lanes.targets[0], lanes.states)
        alpha = _best_scores(lanes, own, lanes.nodes(flat), room)
        states[lanes.token], scores[lanes.pairs] = _way_back(lanes, own, alpha)
    return layout.columns(states), scores


def cut(layout: Layout) -> Iterator[Lanes]:
    """Lanes that together hold every pair once."""
    kinds = _kinds(layout)
    for kind in np.unique(kinds).tolist():
        pairs = np.flatnonzero(kinds == kind)
        pairs = pairs[np.argsort(-layout.n_source[pairs], kind="stable")]
        states, begin = int(layout.space.size(layout.n_target[pairs].max())), 0
        while begin < len(pairs):
            most = min(_STEP // states**2, _PLACES // (states * int(layout.n_source[pairs[begin]])))
            own = slice(begin, begin + max(most, 1))
            yield Lanes(layout, pairs[own])
            begin = own.stop


def _kinds(layout: Layout) -> np.ndarray:
    """[pairs] what may go side by side: target lengths that follow one another, as long as what is padding takes
    less time than another start would, and as one step holds."""
    which = np.searchsorted(layout.distinct, layout.n_target)
    sizes = layout.space.size(layout.distinct).tolist()
    pairs, tokens = np.bincount(which).tolist(), np.bincount(which, layout.n_source).tolist()
    kinds, widest, held, waste = [0] * len(sizes), 0, 0, 0.0
    for u in range(len(sizes) - 1, -1, -1):
        waste += tokens[u] * (widest**2 - sizes[u] ** 2)
        if waste > _WASTE or (held + pairs[u]) * widest**2 > _STEP or not widest:
            widest, held, waste, begun = sizes[u], 0, 0.0, u
        held += pairs[u]
        kinds[u] = begun
    return np.array(kinds, np.int64)[which]


def _steps(room: np.ndarray, states: int, lanes: int) -> np.ndarray:
    """[from, to, lanes] numbers in that room; the longer of the last two dimensions is the last in memory."""
    room = room[: states * states * lanes]
    if _FEW * lanes < states:
        return room.reshape(states, lanes, states).transpose(0, 2, 1)
    return room.reshape(states, states, lanes)


def _best_scores(lanes: Lanes, own: Tables, nodes: np.ndarray, room: np.ndarray) -> np.ndarray:
    """[T, S, K] the best score of any path that ends in each state."""
    table, width = lanes.targets[1], len(lanes.pairs)
    edge, sums = (_steps(one, lanes.states, width) for one in room)
    np.ascontiguousarray(own.edge.transpose(1, 2, 0)).take(table, axis=2, out=edge, mode="clip")
    alpha = np.empty_like(edge, shape=(len(lanes.alive), *edge.shape[1:]))
    alpha[0] = (nodes[lanes.times[0]] + own.start[table]).T
    for t in range(1, len(lanes.alive)):
        k = lanes.alive[t]
        if 2 * k <= width:  # until then it is quicker to go on with those that have ended
            room, width = room[::-1], k
            fewer, sums = (_steps(one, lanes.states, width) for one in room)
            fewer[:], edge = edge[:, :, :k], fewer
        now = alpha[t][:, :width]
        np.add(alpha[t - 1][:, None, :width], edge, out=sums)
        np.maximum.reduce(sums, axis=0, out=now)
        now[:, :k] += nodes[lanes.times[t]].T
    return alpha


def _way_back(lanes: Lanes, own: Tables, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[R] the states of the best paths, and [K] their scores; each predecessor is looked up again."""
    table, lane = lanes.targets[1], np.arange(len(lanes.pairs))
    ends = alpha[lanes.n_source - 1, :, lane] + own.end[table]
    state = ends.argmax(1)
    scores, found = ends[lane, state], np.empty(len(lanes.lane), np.int64)
    found[lanes.times[-1]] = state[: lanes.alive[-1]]
    into, base = own.edge.transpose(0, 2, 1).reshape(-1, lanes.states), table * lanes.states
    for t in range(len(lanes.alive) - 2, -1, -1):
        k = lanes.alive[t + 1]
        sums = into.take(base[:k] + state[:k], axis=0, mode="clip")
        sums += alpha[t][:, :k].T
        sums.argmax(1, out=state[:k])
        found[lanes.times[t]] = state[: lanes.alive[t]]
    return found, scores
