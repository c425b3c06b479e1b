"""Pairs side by side in strips, so that numpy takes one step of many chains at a time.

A layout goes in; out go strips: groups of chains that share a target length, the longest groups first, so that
those which last to any time are the first ones. Padded are the states, to the next multiple of a few, and the
chains of a group, to its longest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .buckets import best_width
from .layout import Layout

_ALIGNED = 8  # states: vector registers are filled
_STEP = 1 << 17  # numbers of one step of Viterbi, which should stay in a processor's second cache
_PLACES = 1 << 18  # of one strip
_TOGETHER = 8  # chains of a group at most: those of one target length that end at about the same time

Flat = Sequence[np.ndarray]  # scores of nodes (NULLs, then links), edges, starts, ends


@dataclass(frozen=True)
class Tables:
    """Log scores of the U distinct lengths of a strip, -inf where there is no state: `edge` [U, W, W] from row to
    column, `start` and `end` [U, W]. `low` and `high` [U, 3] bound those of states that there are."""

    edge: np.ndarray
    start: np.ndarray
    end: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Strip:
    """G groups of c chains over T times. Rows of all times lie one after the other, R of them.

    `pairs` [G, c] -1 where there is none;  `lengths` [G, c] positions of each;  `width` W states, padding included
    `n_target` [U] the distinct target lengths;  `table` [G] which of them
    """

    layout: Layout
    pairs: np.ndarray
    lengths: np.ndarray
    width: int
    n_target: np.ndarray
    table: np.ndarray

    @cached_property
    def alive(self) -> list[int]:
        """[T] how many groups there are at each time."""
        durations = self.lengths[:, 0]
        return (len(durations) - np.searchsorted(durations[::-1], np.arange(durations[0]), "right")).tolist()

    @cached_property
    def times(self) -> list[slice]:
        """[T] the rows of each time."""
        past = np.cumsum(self.alive).tolist()
        return [slice(end - k, end) for end, k in zip(past, self.alive, strict=True)]

    @cached_property
    def group(self) -> np.ndarray:
        """[R] whose each row is."""
        return np.concatenate([np.arange(k) for k in self.alive])

    @cached_property
    def position(self) -> np.ndarray:
        """[R] the time of each row."""
        return np.repeat(np.arange(len(self.alive)), self.alive)

    @cached_property
    def inside(self) -> np.ndarray:
        """[R * c] the places, row by row, where there is a token of some chain."""
        return np.flatnonzero(self.position[:, None] < self.lengths[self.group])

    @cached_property
    def chain(self) -> np.ndarray:
        """[inside] which of the G * c chains each token belongs to."""
        row, column = np.divmod(self.inside, self.lengths.shape[1])
        return self.group[row] * self.lengths.shape[1] + column

    @cached_property
    def token(self) -> np.ndarray:
        """[inside] the number of each token in the layout."""
        position = self.position[self.inside // self.lengths.shape[1]]
        return self.layout.token_start[self.pairs.reshape(-1)[self.chain]] + position

    @cached_property
    def cell(self) -> np.ndarray:
        """[inside] the first link cell of each token."""
        n = self.n_target[self.table[self.chain // self.lengths.shape[1]]]
        pair = self.pairs.reshape(-1)[self.chain]
        return self.layout.cell_start[pair] + self.position[self.inside // self.lengths.shape[1]] * n

    @cached_property
    def chains(self) -> np.ndarray:
        """The numbers of the chains that there are."""
        return np.flatnonzero(self.lengths)

    @cached_property
    def last(self) -> np.ndarray:
        """[chains] the place of each one's last token."""
        first = np.array([rows.start for rows in self.times])
        group, column = np.divmod(self.chains, self.lengths.shape[1])
        return (first[self.lengths.reshape(-1)[self.chains] - 1] + group) * self.lengths.shape[1] + column

    def nodes(self, flat: Flat) -> np.ndarray:
        """[R, c, W] scores, -inf where there is no state; 0 where there is no token."""
        rows, c, width = len(self.group), self.lengths.shape[1], self.width
        out = np.zeros((rows * c, width), flat[0].dtype)
        # A row of the widest length at a time, whatever there is behind a shorter one: no cell has an index.
        out[self.inside, 0] = flat[0][self.token]
        out[self.inside, 1:] = windows(flat[0], width - 1)[self.layout.n_tokens + self.cell]
        none = np.arange(width) > self.n_target[:, None]
        out = out.reshape(rows, c, width)
        np.copyto(out, -np.inf, where=none[self.table][self.group][:, None])
        return out

    def tables(self, flat: Flat) -> Tables:
        layout, size = self.layout, (len(self.n_target), self.width)
        edge, start, end = (np.full(shape, -np.inf, flat[0].dtype) for shape in ((*size, self.width), size, size))
        low, high = np.empty((size[0], 3)), np.empty((size[0], 3))
        for u, n in enumerate(self.n_target.tolist()):
            which, s = int(np.searchsorted(layout.distinct, n)), n + 1
            a, b = int(layout.edge_start[which]), int(layout.first_start[which])
            own = flat[1][a : a + s * s], flat[2][b : b + s], flat[3][b : b + s]
            edge[u, :s, :s], start[u, :s], end[u, :s] = own[0].reshape(s, s), own[1], own[2]
            low[u], high[u] = [x.min() for x in own], [x.max() for x in own]
        return Tables(edge, start, end, low, high)

    def put_links(self, chances: np.ndarray, out: np.ndarray) -> None:
        """From [R, c, W] to the link cells `out`."""
        of_length = self.table[self.chain // self.lengths.shape[1]]
        flat = chances.reshape(-1, self.width)
        for u, n in enumerate(self.n_target.tolist()):
            own = np.flatnonzero(of_length == u)
            windows(out, n)[self.cell[own]] = flat[self.inside[own], 1 : n + 1]


def readable(layout: Layout, flat: Flat) -> Flat:
    """The scores with room behind them for rows of the widest length, as `Strip.nodes` reads them."""
    nodes, *steps = flat
    room = np.zeros(int(layout.n_target.max(initial=0)) + _ALIGNED, nodes.dtype)
    return np.concatenate([nodes[: layout.n_tokens + layout.n_cells], room]), *steps


def windows(flat: np.ndarray, width: int) -> np.ndarray:
    """Every run of that many entries, without copying any."""
    (step,) = flat.strides
    shape = (max(len(flat) - width + 1, 0), width)
    return np.lib.stride_tricks.as_strided(flat, shape, (step, step))


def strips(layout: Layout) -> Iterator[Strip]:
    """Strips that together hold every pair of the layout once."""
    width = -(-(layout.n_target + 1) // _ALIGNED) * _ALIGNED
    alone = layout.n_source * width > _PLACES // 16  # beside such a pair, others would mostly be padding
    for kind in np.unique(width * 2 + alone).tolist():
        pairs = np.flatnonzero(width * 2 + alone == kind)
        yield from _cut(layout, *_grouped(layout, pairs, bool(kind % 2)), kind // 2)


def _grouped(layout: Layout, pairs: np.ndarray, alone: bool) -> tuple[np.ndarray, np.ndarray]:
    """[G, c] chains of one target length each, and how long they are; the longest first, in rows and columns."""
    pairs = pairs[np.lexsort((-layout.n_source[pairs], layout.n_target[pairs]))]
    _, which, counts = np.unique(layout.n_target[pairs], return_inverse=True, return_counts=True)
    c = 1 if alone else min(best_width(counts), _TOGETHER)
    groups = -(-counts // c)
    rank = np.arange(len(pairs)) - (np.cumsum(counts) - counts)[which]
    out = np.full((int(groups.sum()), c), -1)
    out[(np.cumsum(groups) - groups)[which] + rank // c, rank % c] = pairs
    lengths = np.where(out < 0, 0, layout.n_source[out])
    order = np.argsort(-lengths[:, 0], kind="stable")
    return out[order], lengths[order]


def _cut(layout: Layout, pairs: np.ndarray, lengths: np.ndarray, width: int) -> Iterator[Strip]:
    """Strips of as many groups as a cache and the memory hold."""
    begin, chains = 0, pairs.shape[1]
    while begin < len(pairs):
        most = min(_STEP // (chains * width**2), _PLACES // (chains * width * int(lengths[begin, 0])))
        own = slice(begin, begin + max(most, 1))
        n_target, table = np.unique(layout.n_target[pairs[own, 0]], return_inverse=True)
        yield Strip(layout, pairs[own], lengths[own], width, n_target, table)
        begin = own.stop
