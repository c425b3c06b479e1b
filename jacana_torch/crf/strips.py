"""Pairs side by side in strips, so that numpy takes one step of many chains at a time.

A layout goes in; out go strips: groups of chains that share a target length, the longest groups first, so that
those which last to any time are the first ones. Padded are the states, to the next multiple of a few, and the
chains of a group, to its longest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .buckets import best_width
from .flat import Flat, rows, windows
from .layout import Layout

ALIGNED = 8  # states: vector registers are filled
_STEP = 1 << 18  # numbers of all tables, which should stay in a processor's second cache
_PLACES = 1 << 19  # of one strip
_TOGETHER = 4  # chains of a group at most: those of one target length that end at about the same time


@dataclass(frozen=True)
class Strip:
    """G groups of c chains over T times. Rows of all times lie one after the other, R of them.

    `pairs` [G, c] -1 where there is none;  `lengths` [G, c] positions of each;  `width` W states, padding included
    `n_target` [U] the distinct target lengths of this width;  `table` [G] which of them
    """

    layout: Layout
    pairs: np.ndarray
    lengths: np.ndarray
    width: int
    n_target: np.ndarray
    table: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """[U] states of each length."""
        return self.layout.space.size(self.n_target)

    @cached_property
    def nulls(self) -> tuple[np.ndarray, np.ndarray]:
        """The states that are NULL for some length, and [U, nulls] for which."""
        null = self.layout.space.column(self.n_target[:, None], np.arange(self.width)) == 0  # [U, W]
        states = np.flatnonzero(null.any(0))
        return states, null[:, states]

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

    @cached_property
    def early(self) -> tuple[np.ndarray, list[int]]:
        """Those of `chains` (their places in it) that end while their group goes on, in order of their ends; and
        [T + 1] how many of them have ended before each time."""
        lengths = self.lengths.reshape(-1)[self.chains]
        found = np.flatnonzero(lengths < self.lengths[self.chains // self.lengths.shape[1], 0])
        found = found[np.argsort(lengths[found], kind="stable")]
        return found, np.searchsorted(lengths[found], np.arange(1, len(self.alive) + 2)).tolist()

    def nodes(self, flat: Flat) -> np.ndarray:
        """[R, c, W] scores; what there is where there is no state or no token means nothing."""
        count, c = len(self.group), self.lengths.shape[1]
        cell, token = np.zeros((2, count * c), np.int64)
        cell[self.inside], token[self.inside] = self.cell, self.token
        places, n = (token, cell, np.repeat(self.group, c)), self.n_target[self.table]
        return rows(self.layout, flat[0], self.width, places, n).reshape(count, c, self.width)

    def put(self, chances: np.ndarray, null: np.ndarray, out: np.ndarray) -> None:
        """From [R, c, W] to the tokens `null` and the link cells `out`."""
        of_length = self.table[self.chain // self.lengths.shape[1]]
        flat = chances.reshape(-1, self.width)
        states, where = self.nulls
        null[self.token] = np.where(where.T[:, of_length], flat[self.inside, states[:, None]], 0).sum(0)
        for u, n in enumerate(self.n_target.tolist()):
            own = np.flatnonzero(of_length == u)
            windows(out, n)[self.cell[own]] = flat[self.inside[own], 1 : n + 1]


def strips(layout: Layout) -> Iterator[Strip]:
    """Strips that together hold every pair of the layout once."""
    width = -(-layout.space.size(layout.n_target) // ALIGNED) * ALIGNED
    alone = layout.n_source * width > _PLACES // 16  # beside such a pair, others would mostly be padding
    for kind in np.unique(width * 2 + alone).tolist():
        yield from _cut(_whole(layout, np.flatnonzero(width * 2 + alone == kind), kind // 2, bool(kind % 2)))


def _whole(layout: Layout, pairs: np.ndarray, width: int, alone: bool) -> Strip:
    """Chains of one target length a group; the longest first, in rows and columns."""
    pairs = pairs[np.lexsort((-layout.n_source[pairs], layout.n_target[pairs]))]
    n_target, which, counts = np.unique(layout.n_target[pairs], return_inverse=True, return_counts=True)
    c = 1 if alone else min(best_width(counts), _TOGETHER)
    groups = -(-counts // c)
    rank = np.arange(len(pairs)) - (np.cumsum(counts) - counts)[which]
    out = np.full((int(groups.sum()), c), -1)
    out[(np.cumsum(groups) - groups)[which] + rank // c, rank % c] = pairs
    lengths = np.where(out < 0, 0, layout.n_source[out])
    order = np.argsort(-lengths[:, 0], kind="stable")
    table = np.repeat(np.arange(len(n_target)), groups)
    return Strip(layout, out[order], lengths[order], width, n_target, table[order])


def _cut(whole: Strip) -> Iterator[Strip]:
    """Strips of as many groups as a cache and the memory hold."""
    begin, (groups, chains), width = 0, whole.pairs.shape, whole.width
    while begin < groups:
        most = min(_STEP // (chains * width**2), _PLACES // (chains * width * int(whole.lengths[begin, 0])))
        own = slice(begin, begin + max(most, 1))
        yield replace(whole, pairs=whole.pairs[own], lengths=whole.lengths[own], table=whole.table[own])
        begin = own.stop
