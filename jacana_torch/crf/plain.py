"""Best paths and chances in numpy: starting torch takes longer than aligning two thousand pairs.

A layout and its flat scores go in; columns by token (0 NULL, else the position), or chances by node, come out:
on processors, what bucketed.py does elsewhere. Best paths are those of best.py. Chances are scaled products as in
sweep.py, which says why that is exact, and sums of logarithms where scores spread too far for it.
"""

from __future__ import annotations

import numpy as np

from ..errors import JacanaError
from .best import best_paths
from .flat import Flat, Tables, bounds, readable, tables
from .layout import Layout
from .strips import ALIGNED, Strip, strips

__all__ = ["best_paths", "chances", "check_finite"]

# The log of a dtype's largest number, less room for what a sum over positions and states still has to resolve.
_ROOM: dict[np.dtype, float] = {np.dtype(np.float32): 87.0 - 18.0, np.dtype(np.float64): 708.0 - 50.0}
_MOST_STEPS = 8  # between two divisions


def chances(layout: Layout, flat: Flat) -> tuple[np.ndarray, np.ndarray]:
    """The chance of every NULL and link, and log Z of each pair; in the scores' dtype, worked out in float64 where
    they are single and spread too far for that."""
    nodes = np.zeros(layout.n_tokens + layout.n_cells, flat[0].dtype)
    log_z, flat = np.zeros(len(layout.n_source)), readable(layout, flat, ALIGNED)
    limits, last = bounds(layout, flat), None
    for strip in strips(layout):
        if strip.n_target is not last:  # those that follow one another may share their tables
            last, own = strip.n_target, tables(layout, flat, strip.n_target, strip.width)
        with np.errstate(all="ignore"):  # logs may be infinite, and what is not a number is told of below
            found, total = _swept(strip, own, limits[:, own.which], strip.nodes(flat))
        pairs = strip.pairs.reshape(-1)[strip.chains]
        check_finite(total, pairs)
        log_z[pairs] = total
        strip.put(found, nodes[: layout.n_tokens], nodes[layout.n_tokens :])
    return np.clip(nodes, 0.0, 1.0, out=nodes), log_z


def check_finite(log_z: np.ndarray, chains: np.ndarray | None = None) -> None:
    """An error where the scores of some chain have no meaning."""
    bad = np.flatnonzero(~np.isfinite(log_z))
    if len(bad):
        number = bad[0] if chains is None else chains[bad[0]]
        raise JacanaError(
            f"log Z is {log_z[bad[0]]} for chain {number} ({len(bad)} of {len(log_z)} such): its scores hold "
            "NaN or infinity, or forbid every path; look for a diverged weight or a feature that is not finite"
        )


def _swept(strip: Strip, own: Tables, limits: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[R, c, W] the chance of each state, and log Z [chains]."""
    no_state = np.arange(strip.width) >= strip.sizes[:, None]
    np.copyto(nodes, -np.inf, where=no_state[strip.table][strip.group][:, None])
    dtype, every = _pace(strip, limits, nodes.dtype)
    if not every:
        return _in_logs(strip, own, nodes)
    # Rows as columns: short rows are reduced one by one, ten times slower than all of them side by side.
    top = np.ascontiguousarray(nodes.reshape(-1, strip.width).T).max(0).reshape(*nodes.shape[:2], 1)
    nodes -= top
    emission = np.exp(nodes, dtype=dtype)
    middle = (limits[0] + limits[1] + np.log(strip.sizes + 1)[:, None]) / 2
    edge, start, end = (
        np.exp(x - middle[:, k].reshape(-1, *[1] * (x.ndim - 1))).astype(dtype)[strip.table]
        for k, x in enumerate((own.edge, own.start, own.end))
    )
    alpha, scale = _forward(strip, emission, edge, start, every)
    beta = _backward(strip, emission, edge, end, every)
    c = strip.lengths.shape[1]
    final = (alpha.reshape(-1, strip.width)[strip.last] * end[strip.chains // c]).sum(1)
    shifts = (top + np.log(scale)).reshape(-1)[strip.inside]
    log_z = np.bincount(strip.chain, shifts, strip.lengths.size)[strip.chains] + np.log(final, dtype=np.float64)
    # A chain of M positions takes an edge M - 1 times, a start and an end once.
    of_chain = middle[strip.table[strip.chains // c]]
    log_z += of_chain[:, 0] * (strip.lengths.reshape(-1)[strip.chains] - 1) + of_chain[:, 1] + of_chain[:, 2]
    alpha *= beta
    alpha /= _sums(alpha)
    return alpha, log_z


def _pace(strip: Strip, limits: np.ndarray, dtype: np.dtype) -> tuple[np.dtype, int]:
    """The dtype to compute in and after how many steps to rescale (see sweep.py); 0: only logs will do."""
    spread = strip.layout.space.reach * float((limits[1] - limits[0]).max())
    for kind, room in _ROOM.items():
        steps = (room - spread) / (spread + np.log(strip.width + 1))
        if kind.itemsize >= dtype.itemsize and steps >= 1:
            return kind, min(int(steps), _MOST_STEPS)
    return np.dtype(np.float64), 0


def _sums(chances: np.ndarray) -> np.ndarray:
    """[R, c, 1] over the states: as a product, which does not start anew for each of the short rows."""
    rows, c, width = chances.shape
    return (chances.reshape(-1, width) @ np.ones(width, chances.dtype)).reshape(rows, c, 1)


def _forward(
    strip: Strip, emission: np.ndarray, edge: np.ndarray, start: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray]:
    """[R, c, W] probabilities up to each time, and [R, c, 1] what they were divided by."""
    alpha, scale = np.empty_like(emission), np.ones((*emission.shape[:2], 1), emission.dtype)
    np.multiply(emission[strip.times[0]], start[:, None], out=alpha[strip.times[0]])
    for t in range(1, len(strip.alive)):
        begin, k, now = strip.times[t - 1].start, strip.alive[t], alpha[strip.times[t]]
        np.matmul(alpha[begin : begin + k], edge[:k], out=now)
        now *= emission[strip.times[t]]
        if t % every == 0:
            scale[strip.times[t]] = _sums(now)
            now /= scale[strip.times[t]]
    return alpha, scale


def _backward(strip: Strip, emission: np.ndarray, edge: np.ndarray, end: np.ndarray, every: int) -> np.ndarray:
    """[R, c, W] in proportion to the probabilities of what comes after each time."""
    beta, room = np.empty_like(emission), np.empty_like(emission[strip.times[0]])
    back, flat, (early, ended) = edge.transpose(0, 2, 1), beta.reshape(-1, strip.width), strip.early
    final = end[strip.chains // strip.lengths.shape[1]]
    beta[strip.times[-1]] = end[: strip.alive[-1], None]
    for t in range(len(strip.alive) - 2, -1, -1):
        after, k, now = strip.times[t + 1], strip.alive[t + 1], beta[strip.times[t]]
        np.matmul(np.multiply(beta[after], emission[after], out=room[:k]), back[:k], out=now[:k])
        if k < len(now):
            now[k:] = end[k : len(now), None]
        if ended[t] < ended[t + 1]:
            own = early[ended[t] : ended[t + 1]]
            flat[strip.last[own]] = final[own]
        if t % every == 0:
            now /= _sums(now)
    return beta


def _in_logs(strip: Strip, own: Tables, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As _swept where no scale would do: slower, and exact whatever the scores are."""
    nodes = nodes.astype(np.float64)
    edge, start, end = (x.astype(np.float64)[strip.table] for x in (own.edge, own.start, own.end))
    alpha, beta, (early, ended) = nodes.copy(), np.empty_like(nodes), strip.early
    alpha[strip.times[0]] += start[:, None]
    for t in range(1, len(strip.alive)):
        begin, k = strip.times[t - 1].start, strip.alive[t]
        alpha[strip.times[t]] += np.logaddexp.reduce(alpha[begin : begin + k, :, :, None] + edge[:k, None], axis=2)
    final = end[strip.chains // strip.lengths.shape[1]]
    beta[strip.times[-1]] = end[: strip.alive[-1], None]
    for t in range(len(strip.alive) - 2, -1, -1):
        after, k, now = strip.times[t + 1], strip.alive[t + 1], beta[strip.times[t]]
        now[:k] = np.logaddexp.reduce((beta[after] + nodes[after])[:, :, None] + edge[:k, None], axis=3)
        now[k:] = end[k : len(now), None]
        done = early[ended[t] : ended[t + 1]]
        beta.reshape(-1, strip.width)[strip.last[done]] = final[done]
    log_z = np.logaddexp.reduce(alpha.reshape(-1, strip.width)[strip.last] + final, axis=1)
    alpha += beta
    return np.exp(alpha - np.logaddexp.reduce(alpha, axis=2)[..., None]), log_z
