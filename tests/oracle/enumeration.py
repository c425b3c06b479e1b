"""The twin of crf inference: every path of every chain, in plain Python, sharing no code with the library."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import torch

from jacana_torch.crf.potentials import Potentials


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
        """Chances of each state [M][S], and expected numbers of each transition, start and end state."""
        S, log_z = len(self.start), self.log_z()
        node = [[0.0] * S for _ in self.node]
        edge = [[0.0] * S for _ in range(S)]
        start, end = [0.0] * S, [0.0] * S
        for score, path in self.paths():
            chance = math.exp(score - log_z)
            for m, s in enumerate(path):
                node[m][s] += chance
            for a, b in itertools.pairwise(path):
                edge[a][b] += chance
            if path:
                start[path[0]] += chance
                end[path[-1]] += chance
        return node, edge, start, end

    def softmax_margin(self, gold, cost_null: float, cost_link: float, cost_missed: float) -> float:
        def cost(path) -> float:
            total = 0.0
            for said, right in zip(path, gold, strict=True):
                if said != right:
                    total += cost_null if right == 0 else cost_missed if said == 0 else cost_link
            return total

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


def pack(chains, dtype=torch.float64, garbage: float = math.nan, extra: tuple[int, int] = (0, 0)) -> Potentials:
    """One padded batch with `garbage` wherever a chain has nothing, and `extra` positions and states of it."""
    M = max((len(c.node) for c in chains), default=0) + extra[0]
    S = max((len(c.start) for c in chains), default=1) + extra[1]
    states = sorted({len(c.start) for c in chains})
    node = torch.full((len(chains), M, S), garbage, dtype=dtype)
    edge = torch.full((len(states), S, S), garbage, dtype=dtype)
    start, end = (torch.full((len(states), S), garbage, dtype=dtype) for _ in range(2))
    for b, c in enumerate(chains):
        u, n = states.index(len(c.start)), len(c.start)
        if c.node:
            node[b, : len(c.node), :n] = torch.tensor(c.node, dtype=dtype)
        edge[u, :n, :n] = torch.tensor(c.edge, dtype=dtype)
        start[u, :n], end[u, :n] = torch.tensor(c.start, dtype=dtype), torch.tensor(c.end, dtype=dtype)
    table = torch.tensor([states.index(len(c.start)) for c in chains], dtype=torch.long)
    lengths = torch.tensor([len(c.node) for c in chains], dtype=torch.long)
    sizes = torch.tensor([len(c.start) for c in chains], dtype=torch.long)
    return Potentials.build(node, edge, start, end, table, lengths, sizes)
