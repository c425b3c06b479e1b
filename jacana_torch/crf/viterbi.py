"""Best paths: Viterbi for many pairs at once on any device, and the k best.

Ties go to the smallest state of the last position, then of the one before it, and so on. Sums are formed and
compared in the same order on every device, so all devices find the same paths.
"""

from __future__ import annotations

import numpy as np

from .arrays import NUMPY, Array, Arrays, arrays_of
from .kernel import Flat, step_scores
from .layout import Layout, Pack, lanes

STATES_LAST = 4  # states are the last dimension in memory where there are so many times more of them than of lanes


def best_paths(layout: Layout, flat: Flat) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of every source token on its pair's best path (0: NULL), and the score of each path."""
    ns = arrays_of(flat[0])
    states, scores = np.zeros(layout.n_tokens, np.int64), np.zeros(len(layout.geometry.n_source))
    nodes, steps = _readable(layout, flat[0], ns), ns.cast(step_scores(layout, flat, ns), flat[0].dtype)
    every = list(lanes(layout))
    # One room for all steps: fresh pages would have to be cleared for each of them.
    largest = 0
    for pack in every:
        largest = max(largest, len(pack.pairs) * pack.width**2)
    room = ns.empty((largest,), dtype=nodes.dtype), ns.empty((largest,), dtype=nodes.dtype)
    found, best = [ns.zeros((0,), dtype=ns.int64)], [ns.zeros((0,), dtype=nodes.dtype)]
    tokens, pairs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for pack in every:
        emission, edge, start, end = _of_pack(pack, nodes, steps, ns)
        alpha = _forward(pack, emission, edge, start, room, ns)
        for kept, own in zip((found, best), _way_back(pack, alpha, edge, end, ns), strict=True):
            kept.append(own)
        tokens.append(pack.places[0])
        pairs.append(pack.pairs[:, 0])
    path, score = ns.host(ns.concatenate(found)), ns.host(ns.concatenate(best))  # what waits for the device
    states[np.concatenate(tokens)], scores[np.concatenate(pairs)] = path, score
    return layout.columns(states), scores.astype(score.dtype, copy=False)


def _readable(layout: Layout, nodes: Array, ns: Arrays) -> Array:
    """Return node scores with room behind them, for rows as wide as a pack to be read."""
    widest = int(layout.space.size(layout.distinct.max(initial=0)))
    return ns.concatenate([nodes, ns.zeros((widest + 1,), dtype=nodes.dtype)])


def _of_pack(pack: Pack, nodes: Array, steps: Array, ns: Arrays) -> list[Array]:
    """Return node scores [R, S], and the edges [U, S, S], starts and ends [U, S] of the pack's target lengths.

    No transition leads to states that a chain does not have.
    """
    emission = ns.windows(nodes, pack.width, ns.index(pack.places[1]))
    emission[:, 0] = ns.take(nodes, ns.index(pack.places[0]))
    if pack.nulls is not None:
        first, others, _ = pack.nulls
        ns.fill(emission[:, first:], emission[:, :1], where=ns.index(others)[:, 0])
    tables = [emission]
    for at in pack.layout.step_entries(pack.tables, pack.width):
        tables.append(ns.take(steps, ns.index(at.reshape(-1))).reshape(at.shape))
    return tables


def _step(room: Array, states: int, width: int) -> Array:
    """Return [from, to, lanes] numbers in that room, the longer of the last two dimensions last in memory."""
    room = room[: states * states * width]
    if STATES_LAST * width < states:
        return room.reshape(states, width, states).swapaxes(1, 2)
    return room.reshape(states, states, width)


def _forward(
    pack: Pack, emission: Array, table: Array, start: Array, room: tuple[Array, Array], ns: Arrays
) -> Array:
    """Return [T, S, K] the best score of any path that ends in each state."""
    which, width, states, alive = ns.index(pack.table), len(pack.pairs), pack.width, pack.alive
    edge, sums = _step(room[0], states, width), _step(room[1], states, width)
    ns.take_last(table.swapaxes(0, 1).swapaxes(1, 2), which, out=edge)
    emissions, alpha = ns.split(emission, alive), ns.empty((len(alive), states, width), dtype=emission.dtype)
    if STATES_LAST * width < states:
        alpha = alpha.reshape(len(alive), width, states).swapaxes(1, 2)
    alpha[0] = (emissions[0] + ns.take(start, which)).T
    for t in range(1, len(alive)):
        k = alive[t]
        if 2 * k <= width:  # until then it is faster to go on with chains that have ended
            room, width = room[::-1], k
            fewer, sums = _step(room[0], states, width), _step(room[1], states, width)
            fewer[:], edge = edge[:, :, :k], fewer
        now = alpha[t][:, :width]
        ns.add(alpha[t - 1][:, None, :width], edge, out=sums)
        ns.largest(sums, out=now)
        now[:, :k] += emissions[t].T
    return alpha


def _way_back(pack: Pack, alpha: Array, edge: Array, end: Array, ns: Arrays) -> tuple[Array, Array]:
    """Return [R] the states of the best paths, and [K] their scores; each predecessor is looked up again."""
    alive, states, table = pack.alive, pack.width, ns.index(pack.table)
    lane, last = ns.index(np.arange(len(pack.pairs))), ns.index(pack.lengths[:, 0] - 1)
    ends = alpha[last, :, lane] + ns.take(end, table)
    state = ns.argmax(ends)
    scores, found = ends[lane, state], [ns.copy(state[: alive[-1]], ns.int64)]
    into, base = edge.swapaxes(1, 2).reshape(-1, states), table * states
    for t in range(len(alive) - 2, -1, -1):
        k = alive[t + 1]
        sums = ns.take(into, base[:k] + state[:k])
        sums += alpha[t][:, :k].T
        state[:k] = ns.argmax(sums)
        found.append(ns.copy(state[: alive[t]], ns.int64))
    return ns.concatenate(found[::-1]), scores


def k_best(layout: Layout, flat: Flat, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns [k, n_tokens] and the scores [k, P] of the k best paths of every pair, the best first.

    Where a pair has fewer paths, the other scores are -inf and their columns -1.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least one path is needed")
    flat = [NUMPY.cast(arrays_of(x).host(x), NUMPY.float64) for x in flat]
    states, scores = np.full((k, layout.n_tokens), -1), np.full((k, len(layout.geometry.n_source)), -np.inf)
    scores[0, layout.geometry.n_source == 0] = 0.0
    nodes, steps = _readable(layout, flat[0], NUMPY), step_scores(layout, flat, NUMPY)
    for pack in lanes(layout):
        emission, *tables = _of_pack(pack, nodes, steps, NUMPY)
        edge, start, end = (table[pack.table] for table in tables)
        found = _k_best(pack, emission, edge, start, end, k)
        states[:, pack.places[0]], scores[:, pack.pairs[:, 0]] = found
    return np.where(states < 0, -1, layout.columns(np.maximum(states, 0))), scores


def _k_best(
    pack: Pack, emission: np.ndarray, edge: np.ndarray, start: np.ndarray, end: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return [k, R] states, -1 where there is no path, and [k, K] scores."""
    alive, states, emissions = pack.alive, pack.width, NUMPY.split(emission, pack.alive)
    best, back = np.full((len(pack.pairs), states, k), -np.inf), []  # of paths that end in each state
    best[..., 0] = start + emissions[0]
    for t in range(1, len(alive)):
        sums = best[: alive[t], None] + edge[: alive[t]].swapaxes(1, 2)[..., None]  # [lanes, to, from, k]
        back.append(np.argsort(-sums.reshape(alive[t], states, -1), axis=2, kind="stable")[..., :k])
        top = np.take_along_axis(sums.reshape(alive[t], states, -1), back[-1], 2)
        best[: alive[t]] = top + emissions[t][..., None]
    ends = (best + end[..., None]).reshape(len(best), -1)
    place = np.argsort(-ends, axis=1, kind="stable")[:, :k]  # from here on a state and which of its paths
    scores, found = np.take_along_axis(ends, place, 1), [place[: alive[-1]] // k]
    for t in range(len(alive) - 2, -1, -1):
        ahead = place[: alive[t + 1]]
        place[: alive[t + 1]] = back[t][np.arange(alive[t + 1])[:, None], ahead // k, ahead % k]
        found.append(place[: alive[t]] // k)
    taken: np.ndarray = np.concatenate(found[::-1])
    return np.where(np.isfinite(scores)[pack.group], taken, -1).T, scores.T
