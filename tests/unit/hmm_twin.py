"""The twin of the HMM lattice: every path of a pair, in plain Python, sharing no code with the library."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass


@dataclass
class Pair:
    """`link` [m][n] and `null` [m] are the probabilities of each source word; jumps: `weights`, `starts`."""

    link: list
    null: list
    p0: float
    uniform: float
    weights: list
    starts: list

    @property
    def n(self) -> int:
        return len(self.link[0])

    def jump(self, j: int, k: int) -> tuple[float, float]:
        """The probability of going from j (-1 before the first) to k by the weights, and by the uniform part."""
        J = len(self.starts) - 1

        def weight(to: int) -> float:
            if j < 0:
                return self.starts[min(to, J)]
            return self.weights[max(-J, min(J, to - j)) + J]

        share = weight(k) / sum(weight(to) for to in range(self.n))
        return (1 - self.uniform) * share, self.uniform / self.n

    def paths(self):
        """Every (path of (position, is a link), probability). NULL keeps its position; a first NULL has any."""
        states = [(j, linked) for j in range(self.n) for linked in (True, False)]
        for path in itertools.product(states, repeat=len(self.link)):
            probability, before = 1.0, -1
            for i, (j, linked) in enumerate(path):
                if linked:
                    probability *= (1 - self.p0) * sum(self.jump(before, j)) * self.link[i][j]
                elif i == 0:
                    probability *= self.p0 * sum(self.jump(before, j)) * self.null[i]
                else:
                    probability *= self.p0 * self.null[i] * (j == before)
                before = j
            if probability:
                yield path, probability

    def expected(self):
        """log-likelihood, link [m][n], null [m], the probability of the best path, and how often the weights make
        each jump [n][n] and each start [n]."""
        m, n, total, best = len(self.link), self.n, 0.0, 0.0
        link, null = [[0.0] * n for _ in range(m)], [0.0] * m
        jumps, starts = [[0.0] * n for _ in range(n)], [0.0] * n
        for path, probability in self.paths():
            total, best, before = total + probability, max(best, probability), -1
            for i, (j, linked) in enumerate(path):
                if linked:
                    link[i][j] += probability
                else:
                    null[i] += probability
                made, other = self.jump(before, j)
                if before < 0:
                    starts[j] += probability * made / (made + other)
                elif linked:
                    jumps[before][j] += probability * made / (made + other)
                before = j
        share = [[x / total for x in row] for row in [*link, null, *jumps, starts]]
        return math.log(total), share[:m], share[m], best, share[m + 1 : -1], share[-1]
