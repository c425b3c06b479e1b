"""Where the scores of many pairs stand: in flat vectors, and in packs of chains that are stepped through together.

A `Layout` numbers the flat scores. `nodes` holds the NULL of every source token and then every link cell, pair by
pair. `edges`, `starts` and `ends` hold one table for each distinct target length, the shortest first: pairs of one
target length share their transitions.

A `Pack` holds groups of chains side by side. The chains of a group share a target length, and thus a transition
table, so that a step of a group is one matrix product. Groups are sorted by length, the longest first: those alive
at any time are the first ones, rows end as sentences do, and little is padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from ..util.geometry import Geometry, positions, run_of, starts
from .states import PLAIN, StateSpace

ALIGNED = 8  # states are padded to a multiple of this, so that vector registers are filled
# Numbers in the transition tables of one step: on a CPU they should stay in the second-level cache.
TABLE_NUMBERS = 1 << 18
# What one more matrix of a batched product costs, in rows; measured with 14 to 112 states on a CPU.
GROUP_COST = 6


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
        n, edge, first = self.distinct[tables, None], self.edge_start[tables, None], self.first_start[tables, None]
        inner, column = self.space.edge(n[:, None], state[:, None], state), self.space.column(n, state)
        start = self.sizes["edge"] + first
        return (
            np.where(inner >= 0, edge[:, None] + inner, nothing),
            np.where(state <= n, start + state, nothing),
            np.where(column >= 0, start + self.sizes["start"] + column, nothing),
        )


class Pack:
    """G groups of c chains over T times; R rows hold the groups alive at time 0, then those alive at time 1, ...

    `pairs` [G, c] the pair of each chain, -1 for none;  `lengths` [G, c] its source tokens;  `tables` [U] the
    numbers of the distinct target lengths;  `table` [G] which of these each group has;  `width` W states, padding
    included.

    State `final` is the boundary, where a chain is from its end on, and nowhere else; groups last one time longer
    than their longest chain. Without a boundary it is None.

    `alive` [T] how many groups there are at each time;  `group` [R] the group of each row;  `has_token` [R, c]
    where there is a token of some chain;  `places`, two arrays [R * c], the number of each token, and the entry
    before its first cell, among the nodes: the place behind the nodes where there is no token.

    `nulls`, in spaces that have several: the first state besides 0 that is NULL for some length, [R, 1, W - first]
    whether the states from there on are NULL, and [R, W, 1] 1 for each NULL: a product with it adds them up.
    """

    def __init__(
        self,
        layout: Layout,
        pairs: np.ndarray,
        lengths: np.ndarray,
        tables: np.ndarray,
        table: np.ndarray,
        width: int,
        final: int | None,
    ) -> None:
        self.layout, self.pairs, self.lengths = layout, pairs, lengths
        self.tables, self.table, self.width, self.final = tables, table, width, final
        durations = lengths[:, 0] + (final is not None)
        ended = np.searchsorted(durations[::-1], np.arange(durations[0]), "right")
        self.alive: list[int] = (len(durations) - ended).tolist()
        time, self.group = run_of(np.array(self.alive))[:, None], positions(np.array(self.alive))
        self.has_token: np.ndarray = time < lengths[self.group]
        g, pair = layout.geometry, pairs[self.group]
        first = layout.n_tokens + g.cell_start[pair] + time * g.n_target[pair] - 1
        places = np.where(self.has_token, [g.source_start[pair] + time, first], layout.n_nodes)
        self.places = places[0].reshape(-1), places[1].reshape(-1)
        self.nulls: tuple[int, np.ndarray, np.ndarray] | None = None
        null = layout.space.column(layout.distinct[tables][:, None], np.arange(width)) == 0
        if null[:, 1:].any():
            begin, null = int(null[:, 1:].any(0).argmax()) + 1, null[table][self.group]
            self.nulls = begin, null[:, None, begin:], null[:, :, None].astype(np.float64)

    @cached_property
    def step(self) -> np.ndarray:
        """[U * W * W] the entry of cat(edges, starts, ends, -inf, 0) of each step, the boundary's among them."""
        inner, start, end = self.layout.step_entries(self.tables, self.width)
        inner[:, self.final], inner[:, :, self.final] = start, end
        inner[:, self.final, self.final] = self.layout.sizes["edge"] + 2 * self.layout.sizes["start"] + 1
        step: np.ndarray = inner.reshape(-1)
        return step

    @cached_property
    def chains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The chains that there are, as numbers in G * c, and their pairs.

        With them, [R * c] the chain of each place, and [G] the last row of each group of a pack with a boundary.
        """
        some, c = np.flatnonzero(self.lengths), self.pairs.shape[1]
        chain: np.ndarray = (self.group[:, None] * c + np.arange(c)).reshape(-1)
        last: np.ndarray = starts(np.array(self.alive))[self.lengths[:, 0]] + np.arange(len(self.lengths))
        return some, self.pairs.reshape(-1)[some], chain, last


def packs(
    layout: Layout,
    places: int = 1 << 19,
    together: int | None = None,
    numbers: int = TABLE_NUMBERS,
    aligned: int = ALIGNED,
) -> list[Pack]:
    """Return packs that together hold every pair with source tokens once.

    `places` is how many states of all times a pack holds at most (a longer pair comes alone), `numbers` how many
    its transition tables do, `together` how many chains a group does, and `aligned` the multiple that states are
    padded to.
    """
    g = layout.geometry
    widths = -(-(layout.space.size(g.n_target) + 1) // aligned) * aligned
    alone = g.n_source * widths > places // 16  # beside such a pair, others would mostly be padding
    out: list[Pack] = []
    some = g.n_source > 0
    for kind in np.unique((widths * 2 + alone)[some]).tolist():
        pairs, width = np.flatnonzero((widths * 2 + alone == kind) & some), kind // 2
        most = max(places // (width * (int(g.n_source[pairs].max()) + 1)), 1)  # chains that fit
        rows = _rows(layout, pairs, 1 if kind % 2 else min(together or most, most))
        lengths = np.where(rows < 0, 0, g.n_source[rows])
        begin = 0
        while begin < len(rows):  # as many groups as the limits allow
            row = rows.shape[1] * width
            fit = min(numbers // (row * width), places // (row * (int(lengths[begin, 0]) + 1)))
            own = slice(begin, begin := begin + max(fit, 1))
            tables, table = np.unique(layout.table[rows[own, 0]], return_inverse=True)
            final = int(layout.space.size(layout.distinct[tables[-1]]))
            out.append(Pack(layout, rows[own], lengths[own], tables, table, width, final))
    return out


# A step of lanes holds this many numbers, so that it stays in a CPU's caches, and all its times this many states.
LANE_NUMBERS, LANE_PLACES = 1 << 18, 1 << 19
LANE_WASTE = 2_000_000  # transitions of states that are padding, for as long as one more pack takes to start


def lanes(layout: Layout) -> Iterator[Pack]:
    """Yield packs of groups of one chain and no boundary, which may differ a little in their target lengths.

    The best path takes one addition and one maximum a step over all chains, with the chains last in memory: 2
    times as fast as in groups of one target length.
    """
    n_source, sizes = layout.geometry.n_source, layout.space.size(layout.distinct)
    # Neighbouring lengths share lanes while padding takes less time than one more pack, and while a step has room.
    held_pairs = np.bincount(layout.table, minlength=len(sizes)).tolist()
    tokens = np.bincount(layout.table, n_source, len(sizes)).tolist()
    first, widest, held, waste, begun = [0] * len(sizes), 0, 0, 0.0, 0
    for u in range(len(sizes) - 1, -1, -1):
        size = int(sizes[u])
        waste += tokens[u] * (widest**2 - size**2)
        if waste > LANE_WASTE or (held + held_pairs[u]) * widest**2 > LANE_NUMBERS or not widest:
            widest, held, waste, begun = size, 0, 0.0, u
        held += held_pairs[u]
        first[u] = begun
    kinds = np.array(first, np.int64)[layout.table]
    for kind in np.unique(kinds[n_source > 0]).tolist():
        pairs = np.flatnonzero((kinds == kind) & (n_source > 0))
        pairs = pairs[np.argsort(-n_source[pairs], kind="stable")]
        width, begin = int(sizes[layout.table[pairs].max()]), 0
        while begin < len(pairs):
            most = min(LANE_NUMBERS // width**2, LANE_PLACES // (width * int(n_source[pairs[begin]])))
            own = pairs[begin : begin + max(most, 1)]
            tables, table = np.unique(layout.table[own], return_inverse=True)
            yield Pack(layout, own[:, None], n_source[own][:, None], tables, table, width, None)
            begin += len(own)


def _rows(layout: Layout, pairs: np.ndarray, together: int) -> np.ndarray:
    """Return [G, c] groups of pairs of one target length, -1 for none; the longest first in rows and columns."""
    n_source, table = layout.geometry.n_source, layout.table
    pairs = pairs[np.lexsort((-n_source[pairs], table[pairs]))]
    _, first, which, counts = np.unique(table[pairs], return_index=True, return_inverse=True, return_counts=True)
    # As many chains a group as waste least: a table with few chains leaves rows empty, one with many needs groups.
    largest = int(counts.max())
    widths = np.unique(np.append(2 ** np.arange(largest.bit_length()), largest))
    waste = (-(-counts[:, None] // widths)).sum(0) * (widths + GROUP_COST)
    c = min(int(widths[np.argmin(waste)]), together)
    groups = -(-counts // c)
    begin, rank = np.cumsum(groups) - groups, np.arange(len(pairs)) - first[which]
    rows = np.full((int(groups.sum()), c), -1)
    rows[begin[which] + rank // c, rank % c] = pairs
    return rows[np.argsort(-n_source[rows[:, 0]], kind="stable")]
