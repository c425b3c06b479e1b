"""The twin of chains that remember: every choice of NULL or a position for every token, in plain Python.

What a token chooses is a column: 0 for NULL, n for a position. The last position chosen is found on the path.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np


@dataclass
class Remembered:
    """Scores as nested lists: node [M][N+1], plain [N+1][N+1], gap [N][N], start and end [N+1]."""

    node: list
    plain: list
    gap: list
    start: list
    end: list

    def used(self, path) -> list:
        """The scores that a path takes: (name, place)."""
        found = [("start", (path[0],)), ("end", (path[-1],))]
        found += [("node", (m, column)) for m, column in enumerate(path)]
        for m in range(1, len(path)):
            before, after = path[m - 1], path[m]
            linked = [column for column in path[:m] if column]
            if before == 0 and after and linked:
                found.append(("gap", (linked[-1] - 1, after - 1)))
            else:
                found.append(("plain", (before, after)))
        return found

    def value(self, name: str, place: tuple) -> float:
        out = getattr(self, name)
        for k in place:
            out = out[k]
        return out

    def score(self, path) -> float:
        return math.fsum(self.value(*used) for used in self.used(path))

    def paths(self) -> list:
        """Every (score, path)."""
        columns = range(len(self.start))
        return [(self.score(path), path) for path in itertools.product(columns, repeat=len(self.node))]

    def log_z(self) -> float:
        return log_sum(score for score, _ in self.paths())

    def counts(self, gold=None, costs=(0.0, 0.0)) -> Counter:
        """How often each score is expected to be taken: where gold is given, under costs, less what gold takes."""
        priced = [(score + cost(path, gold, *costs), path) for score, path in self.paths()]
        log_z, found = log_sum(score for score, _ in priced), Counter()
        for score, path in priced:
            for used in self.used(path):
                found[used] += math.exp(score - log_z)
        for used in self.used(gold) if gold is not None else ():
            found[used] -= 1
        return found

    def softmax_margin(self, gold, *costs: float) -> float:
        return log_sum(score + cost(path, gold, *costs) for score, path in self.paths()) - self.score(gold)

    def posteriors(self) -> list:
        """[M][N+1]"""
        counts = self.counts()
        return [[counts["node", (m, n)] for n in range(len(row))] for m, row in enumerate(self.node)]


def log_sum(values) -> float:
    values = list(values)
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def cost(path, gold, cost_null: float, cost_link: float) -> float:
    if gold is None:
        return 0.0
    return sum(cost_link if right else cost_null for said, right in zip(path, gold, strict=True) if said != right)


def random_memories(sizes, seed: int, node: float, edge: float, whole: bool = False) -> list[Remembered]:
    """Of the given (M, N), uniform in ±node and ±edge; those of one N share their tables. `whole`: many ties."""
    draw = random.Random(seed)

    def numbers(scale: float, *shape: int) -> list:
        if len(shape) > 1:
            return [numbers(scale, *shape[1:]) for _ in range(shape[0])]
        values = [float(draw.randint(-1, 1)) if whole else draw.uniform(-scale, scale) for _ in range(shape[0])]
        return np.array(values, np.float32).astype(float).tolist()  # both precisions get the same

    tables = {
        n: (numbers(edge, n + 1, n + 1), numbers(edge, n, n), numbers(edge, n + 1), numbers(edge, n + 1))
        for n in sorted({n for _, n in sizes})
    }
    return [Remembered(numbers(node, m, n + 1), *tables[n]) for m, n in sizes]


def flat_places(chains: list[Remembered]) -> list[list[tuple]]:
    """Nulls, links, edges, starts, ends in the order of a layout: pairs as they come, tables by their size.
    Of each entry, whose score it is: (a chain's number, name, place); where some share a table, the first's."""
    rows = [(k, m, len(c.start)) for k, c in enumerate(chains) for m in range(len(c.node))]
    of_size: dict[int, int] = {}
    for k, c in enumerate(chains):
        of_size.setdefault(len(c.start), k)
    tables = [(k, size) for size, k in sorted(of_size.items())]
    edges = []
    for k, size in tables:
        edges += [(k, "plain", (a, b)) for a in range(size) for b in range(size)]
        edges += [(k, "gap", (a, b)) for a in range(size - 1) for b in range(size - 1)]
    return [
        [(k, "node", (m, 0)) for k, m, _ in rows],
        [(k, "node", (m, n)) for k, m, size in rows for n in range(1, size)],
        edges,
        *([(k, name, (n,)) for k, size in tables for n in range(size)] for name in ("start", "end")),
    ]


def flat_scores(chains: list[Remembered]) -> list[list[float]]:
    return [[chains[k].value(name, place) for k, name, place in part] for part in flat_places(chains)]
