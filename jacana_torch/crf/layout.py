"""From flat scores to padded potentials: where each place of a batch takes its score from.

Only lengths go in. A layout is made once for a set of pairs and serves any number of evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .buckets import buckets
from .potentials import Potentials


@dataclass(frozen=True)
class Bucket:
    """Pairs of similar size. Every place is a number in the flat vectors; padding points at their last entry."""

    pairs: np.ndarray  # [B] which pairs
    node: Tensor  # [B, M, S] into cat(null, link, pad)
    edge: Tensor  # [U, S, S] into cat(edges of all lengths, pad)
    start: Tensor  # [U, S] into cat(starts of all lengths, pad)
    table: Tensor  # [B]
    lengths: Tensor  # [B]
    sizes: Tensor  # [B]

    def potentials(self, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> Potentials:
        """From the flat vectors, each with a padding entry at its end."""
        return Potentials.build(
            node=nodes[self.node],
            edge=edges[self.edge],
            start=starts[self.start],
            end=ends[self.start],
            table=self.table,
            lengths=self.lengths,
            sizes=self.sizes,
        )


class Layout:
    """Buckets over pairs of the given lengths; `lengths` are the distinct target lengths in edge order."""

    def __init__(self, n_source: np.ndarray, n_target: np.ndarray, max_cells: int, device: str) -> None:
        self.n_source, self.n_target = n_source, n_target
        self.distinct = np.unique(n_target)
        squares = (self.distinct + 1) ** 2
        self.edge_start = np.cumsum(squares) - squares
        self.first_start = np.cumsum(self.distinct + 1) - (self.distinct + 1)
        self.n_edges, self.n_starts = int(squares.sum()), int((self.distinct + 1).sum())
        self.n_tokens, self.n_cells = int(n_source.sum()), int((n_source * n_target).sum())
        self.token_start = np.cumsum(n_source) - n_source
        self.cell_start = np.cumsum(n_source * n_target) - n_source * n_target
        self.max_cells, self.device = max_cells, device
        self.buckets = [self._bucket(pairs) for pairs in buckets(n_source, n_target, max_cells)]

    def _bucket(self, pairs: np.ndarray) -> Bucket:
        m_max = int(self.n_source[pairs].max(initial=0))
        s_max = int(self.n_target[pairs].max(initial=0)) + 1
        m, s = np.arange(m_max)[None, :, None], np.arange(s_max)[None, None, :]
        n_source, n_target = self.n_source[pairs][:, None, None], self.n_target[pairs][:, None, None]
        null = self.token_start[pairs][:, None, None] + m + 0 * s
        link = self.n_tokens + self.cell_start[pairs][:, None, None] + m * n_target + s - 1
        inside = (m < n_source) & (s <= n_target)
        node = np.where(inside, np.where(s == 0, null, link), self.n_tokens + self.n_cells)
        lengths, table = np.unique(self.n_target[pairs], return_inverse=True)
        which = np.searchsorted(self.distinct, lengths)
        a, b = np.arange(s_max)[None, :, None], np.arange(s_max)[None, None, :]
        width = lengths[:, None, None] + 1
        inside = (a < width) & (b < width)
        edge = np.where(inside, self.edge_start[which][:, None, None] + a * width + b, self.n_edges)
        first = np.arange(s_max)[None, :]
        start = np.where(first < width[:, :, 0], self.first_start[which][:, None] + first, self.n_starts)

        def tensor(array: np.ndarray) -> Tensor:
            return torch.as_tensor(array, dtype=torch.long, device=self.device)

        return Bucket(
            pairs,
            tensor(node),
            tensor(edge),
            tensor(start),
            tensor(table),
            tensor(self.n_source[pairs]),
            tensor(self.n_target[pairs] + 1),
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the flat vectors of each space."""
        outer = self.n_starts
        return {"null": self.n_tokens, "link": self.n_cells, "edge": self.n_edges, "start": outer, "end": outer}

    def token_of_cell(self) -> np.ndarray:
        """[n_cells] which source token each link cell belongs to."""
        return np.repeat(np.arange(self.n_tokens), np.repeat(self.n_target, self.n_source))

    def paths(self, states: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where paths go, one state sequence a pair: entries of cat(null, link), of the edges, starts and ends."""
        path, n = np.concatenate(states), np.repeat(self.n_target, self.n_source)
        if len(path) != self.n_tokens or ((path < 0) | (path > n)).any():
            raise ValueError(
                "a path has as many states as its pair has source tokens, from 0 to the target's length"
            )
        token = np.arange(self.n_tokens)
        cell = np.repeat(self.cell_start, self.n_source) + (token - np.repeat(self.token_start, self.n_source)) * n
        nodes = np.where(path == 0, token, self.n_tokens + cell + path - 1)
        which = np.searchsorted(self.distinct, n)
        first, last = self.token_start, self.token_start + self.n_source - 1
        inner = np.setdiff1d(token, first)  # tokens that have one before them
        edges = self.edge_start[which[inner]] + path[inner - 1] * (n[inner] + 1) + path[inner]
        ends = self.first_start[which]
        return nodes, edges, ends[first] + path[first], ends[last] + path[last]
