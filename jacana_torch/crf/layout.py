"""Where the scores of many pairs stand: flat vectors of nodes, edges, starts and ends.

`nodes` holds the NULL of every source token and then every link cell, pair by pair. `edges`, `starts` and `ends`
hold one table for each distinct target length, the shortest first: pairs of one target length share their
transitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..util.geometry import Geometry, starts
from .state_space import PLAIN, StateSpace


class Layout:
    """The flat vectors of the pairs of a geometry, under a state space.

    `distinct` are the distinct target lengths, `edge_start` and `first_start` where the edges, and the starts or
    ends, of each begin, `sizes` the lengths of the five kinds of scores.
    """

    def __init__(self, geometry: Geometry, space: StateSpace = PLAIN) -> None:
        self.geometry, self.space = geometry, space
        self.distinct, self.table = np.unique(geometry.n_target, return_inverse=True)  # table: [P]
        edges, outer = space.edges(self.distinct), self.distinct + 1
        self.edge_start, self.first_start = starts(edges), starts(outer)
        self.runs = geometry.n_target[geometry.source_pair]  # [n_tokens] link cells of each source token
        self.n_tokens, self.n_nodes = geometry.n_tokens, geometry.n_tokens + geometry.n_cells
        self.sizes = {
            "null": geometry.n_tokens, "link": geometry.n_cells, "edge": int(edges.sum()),
            "start": int(outer.sum()), "end": int(outer.sum()),
        }  # fmt: skip

    def columns(self, states: np.ndarray) -> np.ndarray:
        """Return [n_tokens] the columns of states: 0 for NULL, else the target position plus one."""
        return np.asarray(self.space.column(self.runs, states))

    def node_entries(self, path: np.ndarray) -> np.ndarray:
        """Return [n_tokens] which entry of `nodes` each token has, given the column that it takes."""
        g = self.geometry
        cell = g.cell_start[g.source_pair] + g.source_position * self.runs
        return np.where(path == 0, np.arange(g.n_tokens), g.n_tokens + cell + path - 1)

    def path_entries(self, paths: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return which nodes, edges, starts and ends paths take; a path is one column a source token."""
        g, path = self.geometry, np.concatenate(paths)
        n = self.runs
        if len(path) != g.n_tokens or ((path < 0) | (path > n)).any():
            raise ValueError(
                "a path has as many states as its pair has source tokens, from 0 to the target's length"
            )
        inner = np.flatnonzero(g.source_position)  # tokens that follow another
        table = self.table[g.source_pair]
        states = self.space.path(path, n, g.source_start[g.source_pair])
        edges = self.edge_start[table[inner]] + self.space.edge(n[inner], states[inner - 1], states[inner])
        some = g.n_source > 0
        first, last = g.source_start[some], (g.source_start + g.n_source - 1)[some]
        outer = self.first_start[table] + path
        return self.node_entries(path), edges, outer[first], outer[last]

    def step_entries(self, tables: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return [U, W, W] and twice [U, W]: which entry of cat(edges, starts, ends, -inf, 0) each of them has.

        `tables` are numbers of distinct target lengths. States that a length does not have get the entry of -inf.
        """
        state, nothing = np.arange(width), self.sizes["edge"] + 2 * self.sizes["start"]
        n, edge, first = (x[tables][:, None] for x in (self.distinct, self.edge_start, self.first_start))
        inner, column = self.space.edge(n[:, None], state[:, None], state), self.space.column(n, state)
        start = self.sizes["edge"] + first
        return (
            np.where(inner >= 0, edge[:, None] + inner, nothing),
            np.where(state <= n, start + state, nothing),
            np.where(column >= 0, start + self.sizes["start"] + column, nothing),
        )
