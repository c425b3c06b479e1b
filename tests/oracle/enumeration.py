"""The twin of crf inference: every path of every chain, in plain Python, sharing no code with the library."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import numpy as np
import torch

from jacana_torch.crf.layout import Layout
from jacana_torch.crf.states import PLAIN
from jacana_torch.util.geometry import Geometry


@dataclass
class Chain:
    """Scores as nested lists: node [M][S], edge [S][S], start [S], end [S]; S includes NULL (state 0)."""

    node: list
    edge: list
    start: list
    end: list

    def score(self, path) -> float:
        if not path:
            return 0.0
        terms = [self.node[m][s] for m, s in enumerate(path)]
        terms += [self.edge[a][b] for a, b in itertools.pairwise(path)]
        return math.fsum([*terms, self.start[path[0]], self.end[path[-1]]])

    def paths(self) -> list:
        """Every (score, path)."""
        states = range(len(self.start))
        return [(self.score(path), path) for path in itertools.product(states, repeat=len(self.node))]

    def log_z(self) -> float:
        return log_sum(score for score, _ in self.paths())

    def counts(self):
        """Posteriors of each state [M][S], and expected numbers of each transition, start and end state."""
        S, log_z = len(self.start), self.log_z()
        node = [[0.0] * S for _ in self.node]
        edge = [[0.0] * S for _ in range(S)]
        start, end = [0.0] * S, [0.0] * S
        for score, path in self.paths():
            share = math.exp(score - log_z)
            for m, s in enumerate(path):
                node[m][s] += share
            for a, b in itertools.pairwise(path):
                edge[a][b] += share
            if path:
                start[path[0]] += share
                end[path[-1]] += share
        return node, edge, start, end

    def softmax_margin(self, gold, cost_null: float, cost_link: float) -> float:
        def cost(path) -> float:
            pairs = zip(path, gold, strict=True)
            return sum(cost_null if right == 0 else cost_link for found, right in pairs if found != right)

        return log_sum(score + cost(path) for score, path in self.paths()) - self.score(gold)


def log_sum(values) -> float:
    values = list(values)
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def random_chains(sizes, seed: int, node: float = 1.0, edge: float = 1.0, whole: bool = False) -> list[Chain]:
    """Chains of the given (M, N), uniform in ±node and ±edge; those of one N share a table. `whole`: many ties."""
    draw = random.Random(seed)

    def numbers(n: int, scale: float) -> list:
        # As float32 numbers, so that both precisions get the very same input.
        values = [float(draw.randint(-1, 1)) if whole else draw.uniform(-scale, scale) for _ in range(n)]
        return torch.tensor(values, dtype=torch.float32).tolist()

    tables = {}
    for n in sorted({n for _, n in sizes}):
        S = n + 1
        tables[n] = [numbers(S, edge) for _ in range(S)], numbers(S, edge), numbers(S, edge)
    return [Chain([numbers(n + 1, node) for _ in range(m)], *tables[n]) for m, n in sizes]


def layout_of(sizes, space=PLAIN) -> Layout:
    """The layout of pairs of the given (M, N)."""
    return Layout(Geometry(*(np.array([size[k] for size in sizes], np.int64) for k in (0, 1))), space)


def laid_out(chains, dtype=torch.float64) -> tuple[Layout, list[torch.Tensor]]:
    """The layout of some chains and their flat scores."""
    null = [row[0] for c in chains for row in c.node]
    link = [x for c in chains for row in c.node for x in row[1:]]
    tables = {len(c.start): c for c in chains}
    edges = [x for n in sorted(tables) for row in tables[n].edge for x in row]
    starts, ends = ([x for n in sorted(tables) for x in getattr(tables[n], k)] for k in ("start", "end"))
    flat = [torch.tensor(x, dtype=dtype) for x in (null + link, edges, starts, ends)]
    return layout_of([(len(c.node), len(c.start) - 1) for c in chains]), flat


def of_pairs(layout: Layout, tokens) -> list[list]:
    """A value per source token, pair by pair."""
    return [own.tolist() for own in np.split(np.asarray(tokens), layout.geometry.source_start[1:])]


def node_rows(layout: Layout, nodes) -> list[np.ndarray]:
    """Flat values of NULLs and links as [M, N + 1] for each pair."""
    null, link = np.split(np.asarray(nodes, np.float64), [layout.n_tokens])
    g = layout.geometry
    nulls, links = np.split(null, g.source_start[1:]), np.split(link, g.cell_start[1:])
    sizes = zip(g.n_source.tolist(), g.n_target.tolist(), strict=True)
    return [np.column_stack([a, b.reshape(m, n)]) for a, b, (m, n) in zip(nulls, links, sizes, strict=True)]
