"""Reading flat vectors of scores as rows of states and tables of steps, without a loop over pairs.

A layout, which says what stands where, and its scores go in; out go rows of nodes and, for some distinct target
lengths, tables padded with -inf, which is how a state that a shorter length lacks is never entered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .layout import Layout

Flat = Sequence[np.ndarray]  # scores of nodes (NULLs, then links), edges, starts, ends
Places = tuple[np.ndarray, np.ndarray, np.ndarray]  # [R] of tokens: their numbers, first link cells, and chains


@dataclass(frozen=True)
class Tables:
    """Log scores of U distinct lengths: `edge` [U, W, W] from row to column, `start` and `end` [U, W]; `which`
    [U] of the layout's distinct ones they are."""

    which: np.ndarray
    edge: np.ndarray
    start: np.ndarray
    end: np.ndarray


def readable(layout: Layout, flat: Flat, room: int = 0) -> Flat:
    """The scores with `room` numbers and one row of the widest length behind the nodes', for `rows` to read."""
    nodes, *steps = flat
    behind = np.zeros(int(layout.space.size(layout.n_target.max(initial=0))) + room, nodes.dtype)
    return np.concatenate([nodes[: layout.n_tokens + layout.n_cells], behind]), *steps


def windows(flat: np.ndarray, width: int) -> np.ndarray:
    """Every run of that many entries, without copying any."""
    (step,) = flat.strides
    shape = (max(len(flat) - width + 1, 0), width)
    return np.lib.stride_tricks.as_strided(flat, shape, (step, step))


def rows(layout: Layout, nodes: np.ndarray, width: int, places: Places, n: np.ndarray) -> np.ndarray:
    """[R, width] the scores of tokens at these places, of chains towards `n` target tokens; what there is where
    there is no state means nothing."""
    token, cell, chain = places
    # A row of the widest length at a time, whatever there is behind a shorter one: no cell has an index.
    out = windows(nodes, width)[layout.n_tokens + cell - 1]
    null = layout.space.column(n[:, None], np.arange(width)) == 0  # [chains, width]
    states = np.flatnonzero(null.any(0))
    out[:, states] = np.where(null[:, states][chain], nodes[token][:, None], out[:, states])
    return out


def tables(layout: Layout, flat: Flat, n_target: np.ndarray, width: int) -> Tables:
    """Of these distinct lengths, for `width` states."""
    which, state = np.searchsorted(layout.distinct, n_target), np.arange(width)
    column = layout.space.column(n_target[:, None], state)
    edge = np.full((len(which), width, width), -np.inf, flat[1].dtype)
    for own, n, begin in zip(edge, n_target.tolist(), layout.edge_start[which].tolist(), strict=True):
        size = layout.space.size(n)  # not by index, as a table of thousands of states is large enough without
        own[:size, :size] = layout.space.square(n, flat[1][begin : begin + layout.space.edges(n)])
    first = layout.first_start[which][:, None] + np.maximum(column, 0)
    start, end = (np.where(column < 0, -np.inf, scores[first]).astype(scores.dtype) for scores in flat[2:])
    start[state > n_target[:, None]] = -np.inf
    return Tables(which, edge, start, end)


def bounds(layout: Layout, flat: Flat) -> np.ndarray:
    """[2, distinct, 3] the lowest and the highest score of the edges, starts and ends of each distinct length."""
    counts = layout.n_edges, layout.n_starts, layout.n_starts
    begin = layout.edge_start, layout.first_start, layout.first_start
    own = [(x[:count], first) for x, count, first in zip(flat[1:], counts, begin, strict=True)]
    return np.array([np.stack([least.reduceat(*x) for x in own], 1) for least in (np.minimum, np.maximum)])
