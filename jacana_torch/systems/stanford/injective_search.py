"""Find the best injective map of target tokens to source tokens, by Lagrangian relaxation and branch and bound.

A map is scored by the choice of each target token, and by the choices at both ends of every dependency edge of the
target. If source tokens may be taken twice, max-product over the target's trees finds the best map. So every
source token gets a price, which rises while several tokens choose it and falls while none does. A map that is best
under prices, and takes each priced token once, is optimal.

Where prices do not converge, the search branches: a contested token is given to one target token, or kept from it.
The branch with the larger bound comes first.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

ROUNDS = 40  # updates of the prices in every branch
BRANCHES = 60  # limit; the best map so far is then optimal but for a few pairs in a thousand
WORK = 1 << 31  # limit of the entries of `joint` that are read, so that long sentences get fewer branches
TOLERANCE = 1e-7
FORBIDDEN = -1e9


@dataclass(frozen=True)
class Model:
    """Scores of the choices of target tokens; the last choice is no source token.

    `unary` [N, M + 1]. `joint` [E, M + 1, M + 1]: by the choice of the head and that of the child, for the edges
    `head`, `child` [E]. `levels`: edge numbers, the deepest first.
    """

    unary: np.ndarray
    joint: np.ndarray
    head: np.ndarray
    child: np.ndarray
    levels: list[np.ndarray]

    def score(self, choice: np.ndarray) -> float:
        own = self.unary[np.arange(len(choice)), choice].sum()
        return float(own + self.joint[np.arange(len(self.head)), choice[self.head], choice[self.child]].sum())


@dataclass(frozen=True)
class Found:
    choice: np.ndarray
    score: float
    proved: bool  # whether it is optimal


def search(model: Model) -> Found:
    """Return the best map, or the best found within the limits."""
    n, width = model.unary.shape
    none = np.full(n, width - 1)
    best = Found(none, model.score(none), True)
    if not n or width == 1:
        return best
    number = itertools.count()
    start = _solve(model, model.unary, np.zeros(width - 1), best)
    best = start.best
    waiting = [(-start.bound, next(number), model.unary, start)] if start.contested is not None else []
    for _ in range(max(1, min(BRANCHES, WORK // (ROUNDS * max(model.joint.size, 1))))):
        if not waiting or -waiting[0][0] <= best.score + TOLERANCE:
            return best
        _, _, unary, branch = heapq.heappop(waiting)
        assert branch.contested is not None
        token, chosen_by = branch.contested
        kept, given = unary.copy(), unary.copy()
        kept[chosen_by, token] = FORBIDDEN
        given[np.arange(n) != chosen_by, token] = FORBIDDEN
        for part in (kept, given):
            solved = _solve(model, part, branch.prices, best)
            best = solved.best
            if solved.contested is not None and solved.bound > best.score + TOLERANCE:
                heapq.heappush(waiting, (-solved.bound, next(number), part, solved))
    proved = not waiting or -waiting[0][0] <= best.score + TOLERANCE
    return Found(best.choice, best.score, proved)


@dataclass(frozen=True)
class _Branch:
    """`bound`: an upper bound on its maps. `contested`: a source and a target token to branch on, or None."""

    bound: float
    best: Found
    prices: np.ndarray
    contested: tuple[int, int] | None


def _solve(model: Model, unary: np.ndarray, prices: np.ndarray, best: Found) -> _Branch:
    """Update prices by Polyak's steps, until the branch is solved or the rounds are used up."""
    shared = (unary[:, :-1] > FORBIDDEN / 2).sum(axis=0) > 1  # other tokens need no price
    prices = np.where(shared, prices, 0.0)
    bound, kept, contested, pace = np.inf, prices, None, 1.0
    for _ in range(ROUNDS):
        priced = unary.copy()
        priced[:, :-1] -= prices
        choice, value = best_tree(model, priced)
        value += float(prices.sum())
        excess = np.where(shared, np.bincount(choice, minlength=unary.shape[1])[:-1] - 1.0, 0.0)
        if value < bound - TOLERANCE:
            bound, kept, contested = value, prices, _contested(unary, choice, excess, prices)
        else:
            pace /= 2
        legal = _legal(model, unary, choice, np.flatnonzero(excess > 0))
        score = model.score(legal)
        if score > best.score:
            best = Found(legal, score, True)
        excess[(excess < 0) & (prices <= 0)] = 0.0
        if bound <= best.score + TOLERANCE or not excess.any():  # each priced token is taken once
            return _Branch(min(bound, value), best, kept, None)
        step = pace * max(value - best.score, 1e-3) / float(excess @ excess)
        prices = np.maximum(prices + step * excess, 0.0)
    return _Branch(bound, best, kept, contested)


def _contested(
    unary: np.ndarray, choice: np.ndarray, excess: np.ndarray, prices: np.ndarray
) -> tuple[int, int] | None:
    """Return a source token to branch on, and a target token: one chosen twice, or else the dearest not chosen."""
    for token in np.flatnonzero(excess > 0).tolist():
        return token, int(np.flatnonzero(choice == token)[0])
    unpaid = np.flatnonzero((excess < 0) & (prices > 0))
    if not len(unpaid):
        return None
    token = int(unpaid[prices[unpaid].argmax()])
    return token, int(unary[:, token].argmax())


def best_tree(model: Model, unary: np.ndarray) -> tuple[np.ndarray, float]:
    """Run max-product over the target's trees; return the best map, not necessarily injective, and its score."""
    belief = unary.copy()
    back = np.zeros((len(model.head), unary.shape[1]), dtype=np.int64)
    for edges in model.levels:
        table = model.joint[edges] + belief[model.child[edges], None, :]
        back[edges] = table.argmax(axis=2)
        np.add.at(belief, model.head[edges], table.max(axis=2))
    root = np.ones(len(unary), dtype=bool)
    root[model.child] = False
    choice = np.zeros(len(unary), dtype=np.int64)
    choice[root] = belief[root].argmax(axis=1)
    for edges in model.levels[::-1]:
        choice[model.child[edges]] = back[edges, choice[model.head[edges]]]
    return choice, float(belief[root].max(axis=1).sum())


def _legal(model: Model, unary: np.ndarray, choice: np.ndarray, clash: np.ndarray) -> np.ndarray:
    """Make a map injective: of several that choose a token, the one that gains most keeps it.

    The others take the best free choice.
    """
    nothing = unary.shape[1] - 1
    legal: np.ndarray = choice.copy()
    for token in clash.tolist():
        competitors = np.flatnonzero(choice == token)
        gain = unary[competitors, token] - unary[competitors, nothing]
        legal[np.delete(competitors, gain.argmax())] = nothing
    for j in np.flatnonzero(legal != choice).tolist():
        value = unary[j].copy()
        above, below = np.flatnonzero(model.child == j), np.flatnonzero(model.head == j)
        for edge in above.tolist():
            value += model.joint[edge, legal[model.head[edge]]]
        for edge in below.tolist():
            value += model.joint[edge, :, legal[model.child[edge]]]
        value[legal[legal < nothing]] = -np.inf
        legal[j] = int(value.argmax())
    return legal
