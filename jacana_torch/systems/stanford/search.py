"""The best injective map of target tokens to source tokens, by Lagrangian relaxation and branch and bound.

In: how good each target token's choices are, and the choices of two tokens that an edge of the target's dependency
tree joins. Out: a choice for each, no source token twice.

Without "no source token twice" the best map is found by max-product over the target's trees. So every source token
gets a price, raised while several want it and lowered while none does; a map that is best under prices, and takes
each token that has a price once, is the best of all. Where prices do not get there, a contested token is given to
one of the two or kept from it, and both cases are looked at, the more promising one first.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

ROUNDS = 40  # of prices, in every case
CASES = (
    60  # at most; then the best map so far is taken, which is the best of all but for a few pairs in a thousand
)
WORK = 1 << 31  # entries of `joint` looked at, about: long sentences get fewer cases
TOLERANCE = 1e-7
FORBIDDEN = -1e9


@dataclass(frozen=True)
class Model:
    """`unary` [N, M + 1]: each target token's choices, the last one nothing. `joint` [E, M + 1, M + 1]: head's
    choice, child's choice, of the edges `head`, `child` [E], which `levels` orders from the deepest up."""

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
    proved: bool  # whether there is none better


def search(model: Model) -> Found:
    """The best map, or the best that was found in `CASES` cases."""
    n, width = model.unary.shape
    none = np.full(n, width - 1)
    best = Found(none, model.score(none), True)
    if not n or width == 1:
        return best
    number = itertools.count()
    start = _solve(model, model.unary, np.zeros(width - 1), best)
    best = start.best
    waiting = [(-start.bound, next(number), model.unary, start)] if start.contested is not None else []
    for _ in range(max(1, min(CASES, WORK // (ROUNDS * max(model.joint.size, 1))))):
        if not waiting or -waiting[0][0] <= best.score + TOLERANCE:
            return best
        _, _, unary, case = heapq.heappop(waiting)
        assert case.contested is not None
        for part in _split(unary, *case.contested):
            solved = _solve(model, part, case.prices, best)
            best = solved.best
            if solved.contested is not None and solved.bound > best.score + TOLERANCE:
                heapq.heappush(waiting, (-solved.bound, next(number), part, solved))
    proved = not waiting or -waiting[0][0] <= best.score + TOLERANCE
    return Found(best.choice, best.score, proved)


@dataclass(frozen=True)
class _Case:
    """`bound`: no map of this case is better. `contested`: a source token and who wants it; None: all is clear."""

    bound: float
    best: Found
    prices: np.ndarray
    contested: tuple[int, int] | None


def _split(unary: np.ndarray, token: int, wanted_by: int) -> tuple[np.ndarray, np.ndarray]:
    """`wanted_by` may not have the token; nobody else may."""
    kept, given = unary.copy(), unary.copy()
    kept[wanted_by, token] = FORBIDDEN
    given[np.arange(len(unary)) != wanted_by, token] = FORBIDDEN
    return kept, given


def _solve(model: Model, unary: np.ndarray, prices: np.ndarray, best: Found) -> _Case:
    """Prices by Polyak's steps, until the case is decided or they have had their rounds."""
    shared = (unary[:, :-1] > FORBIDDEN / 2).sum(axis=0) > 1  # what one alone may have needs no price
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
        if bound <= best.score + TOLERANCE or not excess.any():  # whoever takes each priced token once is best
            return _Case(min(bound, value), best, kept, None)
        step = pace * max(value - best.score, 1e-3) / float(excess @ excess)
        prices = np.maximum(prices + step * excess, 0.0)
    return _Case(bound, best, kept, contested)


def _contested(
    unary: np.ndarray, choice: np.ndarray, excess: np.ndarray, prices: np.ndarray
) -> tuple[int, int] | None:
    """A token to decide about, and for whom: one that several want, or else one whose price nobody pays."""
    for token in np.flatnonzero(excess > 0).tolist():
        return token, int(np.flatnonzero(choice == token)[0])
    dear = np.flatnonzero((excess < 0) & (prices > 0))
    if not len(dear):
        return None
    token = int(dear[prices[dear].argmax()])
    return token, int(unary[:, token].argmax())


def best_tree(model: Model, unary: np.ndarray) -> tuple[np.ndarray, float]:
    """Max-product over the target's trees."""
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
    """Of those that want one token the one that gains most has it, and the others take the best free choice."""
    nothing = unary.shape[1] - 1
    legal = choice.copy()
    for token in clash.tolist():
        rivals = np.flatnonzero(choice == token)
        gain = unary[rivals, token] - unary[rivals, nothing]
        legal[np.delete(rivals, gain.argmax())] = nothing
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
