"""Where the scores of many pairs stand, one after the other: flat vectors of nodes, edges, starts and ends.

Only lengths go in. A layout is made once for a set of pairs and serves any number of evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .spaces import PLAIN, Space

if TYPE_CHECKING:
    from .bucketed import Bucket


class Layout:
    """Pairs of the given lengths; `distinct` are the distinct target lengths in edge order. `device` is where
    inference happens, `max_cells` what a batch of it holds, `space` what states there are."""

    def __init__(
        self, n_source: np.ndarray, n_target: np.ndarray, max_cells: int, device: str, space: Space = PLAIN
    ) -> None:
        self.n_source, self.n_target, self.space = n_source, n_target, space
        self.distinct = np.unique(n_target)
        edges = space.edges(self.distinct)
        self.edge_start = np.cumsum(edges) - edges
        self.first_start = np.cumsum(self.distinct + 1) - (self.distinct + 1)
        self.n_edges, self.n_starts = int(edges.sum()), int((self.distinct + 1).sum())
        self.n_tokens, self.n_cells = int(n_source.sum()), int((n_source * n_target).sum())
        self.token_start = np.cumsum(n_source) - n_source
        self.cell_start = np.cumsum(n_source * n_target) - n_source * n_target
        self.max_cells, self.device = max_cells, device

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Pairs of alike size as padded tensors."""
        from .bucketed import bucketed  # starts torch, which not everybody needs

        return bucketed(self)

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the flat vectors of each space."""
        outer = self.n_starts
        return {"null": self.n_tokens, "link": self.n_cells, "edge": self.n_edges, "start": outer, "end": outer}

    def token_of_cell(self) -> np.ndarray:
        """[n_cells] which source token each link cell belongs to."""
        return np.repeat(np.arange(self.n_tokens), np.repeat(self.n_target, self.n_source))

    def columns(self, states: np.ndarray) -> np.ndarray:
        """[n_tokens] from the states of all tokens: 0 NULL, else the target's position."""
        return self.space.column(np.repeat(self.n_target, self.n_source), states)

    def nodes(self, path: np.ndarray) -> np.ndarray:
        """[n_tokens] entries of cat(null, link), where the tokens of all pairs take these columns."""
        token, n = np.arange(self.n_tokens), np.repeat(self.n_target, self.n_source)
        cell = np.repeat(self.cell_start, self.n_source) + (token - np.repeat(self.token_start, self.n_source)) * n
        return np.where(path == 0, token, self.n_tokens + cell + path - 1)

    def paths(self, gold: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where paths go, a sequence of columns a pair: entries of cat(null, link), of edges, starts and ends."""
        path, n = np.concatenate(gold), np.repeat(self.n_target, self.n_source)
        if len(path) != self.n_tokens or ((path < 0) | (path > n)).any():
            raise ValueError(
                "a path has as many states as its pair has source tokens, from 0 to the target's length"
            )
        token = np.arange(self.n_tokens)
        which = np.searchsorted(self.distinct, n)
        first, last = self.token_start, self.token_start + self.n_source - 1
        inner = np.setdiff1d(token, first)  # tokens that have one before them
        states = self.space.path(path, n, np.repeat(first, self.n_source))
        edges = self.edge_start[which[inner]] + self.space.edge(n[inner], states[inner - 1], states[inner])
        ends = self.first_start[which]
        return self.nodes(path), edges, ends[first] + path[first], ends[last] + path[last]
