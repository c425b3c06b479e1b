"""All pairs of a training set as a few lattices, laid out once: where each of their places takes its score from.

A layout goes in, bands come out: pairs of like target length in rows, the longest first, so that rows end as
sentences do and next to nothing is padding. What is known beforehand is not computed again in each evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .buckets import best_width
from .layout import Layout
from .sweep import Clock, Counts, Lattice, padded


@dataclass(frozen=True)
class Band:
    """Pairs in G groups of c rows, each group of one target length; see sweep.Lattice.

    The flat vectors are cat(null, link) and cat(edge, start, end), each followed by two entries: what a place
    scores that does not exist, and what one scores that is certain.
    """

    shape: tuple[int, int, int]  # R, c, W
    clock: Clock
    final: int
    node: Tensor  # [R*c*W] which entry of the flat nodes is in each place
    cells: Tensor  # [k] the entries that this band has, and
    places: Tensor  # [k] where
    step: Tensor  # [U*W*W] which entry of the flat steps
    table: Tensor  # [G] which of the U tables

    @property
    def size(self) -> int:
        return len(self.node)

    def lattice(self, nodes: Tensor, steps: Tensor, every: int, room: Tensor) -> Lattice:
        """From the flat vectors; `room` holds `size` entries three times, or more."""
        room, width = room[: 3 * self.size].view(3, *self.shape), self.shape[2]
        torch.index_select(nodes, 0, self.node, out=room[0].view(-1))
        table = steps.index_select(0, self.step).view(-1, width, width).index_select(0, self.table)
        return Lattice(self.clock, room[0], table, self.final, every, room[1:])

    def add(self, counts: Counts, nodes: Tensor, steps: Tensor) -> None:
        """Add the counts of a sweep to flat vectors."""
        nodes.index_add_(0, self.cells, counts.node.view(-1).index_select(0, self.places))
        n_tables, shape = len(self.step) // self.shape[2] ** 2, counts.edge.shape[1:]
        tables = counts.edge.new_zeros(n_tables, *shape).index_add_(0, self.table, counts.edge)
        steps.index_add_(0, self.step, tables.view(-1))


def bands(layout: Layout, max_cells: int) -> list[Band]:
    """Bands of at most `max_cells` places each; a pair that has more comes alone."""
    widths = padded(layout.space.size(layout.n_target))
    out = []
    for width in np.unique(widths):
        members: list[np.ndarray] = []
        places = 0
        for group in _groups(layout, np.flatnonzero(widths == width), max_cells // width):
            more = int((layout.n_source[group[0]] + 2) * len(group) * width)
            if members and places + more > max_cells:
                out.append(_band(layout, np.array(members)))
                members, places = [], 0
            members.append(group)
            places += more
        out.append(_band(layout, np.array(members)))
    return out


def _groups(layout: Layout, pairs: np.ndarray, max_rows: int) -> Iterator[np.ndarray]:
    """Pairs of one target length at a time, the longest first, -1 where a row stays empty.

    `max_rows` is how many rows a band has room for, over all times."""
    lengths, counts = np.unique(layout.n_target[pairs], return_counts=True)
    rows = int(np.clip(max_rows // (layout.n_source[pairs].max() + 2), 1, best_width(counts)))
    for n in lengths:
        same = pairs[layout.n_target[pairs] == n]
        same = same[np.argsort(-layout.n_source[same], kind="stable")]
        yield from np.append(same, np.full(-len(same) % rows, -1)).reshape(-1, rows)


def _band(layout: Layout, pairs: np.ndarray) -> Band:
    """`pairs` [G, c], -1 for none."""
    pairs = pairs[np.argsort(-layout.n_source[pairs[:, 0]], kind="stable")]
    clock = Clock.of(layout.n_source[pairs[:, 0]] + 2)
    lengths, table = np.unique(layout.n_target[pairs[:, 0]], return_inverse=True)
    final = int(layout.space.size(lengths.max()))
    node, n_nodes = _nodes(layout, pairs, clock, final), layout.n_tokens + layout.n_cells
    places = np.flatnonzero(node.reshape(-1) < n_nodes)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array.reshape(-1), device=layout.device)

    step = _steps(layout, np.searchsorted(layout.distinct, lengths), final)
    return Band(
        node.shape, clock.to(layout.device), final, tensor(node), tensor(node.reshape(-1)[places]),
        tensor(places), tensor(step), tensor(table),
    )  # fmt: skip


def _nodes(layout: Layout, pairs: np.ndarray, clock: Clock, final: int) -> np.ndarray:
    """[R, c, W] entries of the flat nodes."""
    group, state = clock.group.numpy(), np.arange(padded(final))
    chain = pairs[group][:, :, None]  # [R, c, 1]
    position = np.repeat(np.arange(len(clock.alive)), clock.alive)[:, None, None] - 1
    inside = (chain >= 0) & (position >= 0) & (position < layout.n_source[chain])
    n = layout.n_target[chain]
    column = layout.space.column(n, state)
    null = layout.token_start[chain] + position
    link = layout.n_tokens + layout.cell_start[chain] + position * n + column - 1
    nothing = layout.n_tokens + layout.n_cells
    entry = np.where(inside & (column >= 0), np.where(column == 0, null, link), nothing)
    return np.where(~inside & (state == final), nothing + 1, entry)


def _steps(layout: Layout, which: np.ndarray, final: int) -> np.ndarray:
    """[U, W, W] entries of the flat steps, for the distinct lengths number `which`."""
    state, space = np.arange(padded(final)), layout.space
    a, b = state[None, :, None], state[None, None, :]
    n, edge, first = (x[which][:, None, None] for x in (layout.distinct, layout.edge_start, layout.first_start))
    inner, ended = space.edge(n, a, b), space.column(n, a)
    nothing = layout.n_edges + 2 * layout.n_starts
    step = np.where(inner >= 0, edge + inner, nothing)
    step = np.where((a == final) & (b <= n), layout.n_edges + first + b, step)
    step = np.where((ended >= 0) & (b == final), layout.n_edges + layout.n_starts + first + ended, step)
    return np.where((a == final) & (b == final), nothing + 1, step)
