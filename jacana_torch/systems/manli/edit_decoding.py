"""Decode: find the alignment of largest score, given the gains of all edits.

An alignment is a set of edits that share no token; all other tokens are deleted and inserted. The gain of an edit
is what it adds to the score of an alignment where its tokens were deleted and inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...errors import ConfigError, JacanaError
from ...types import Sentence, SentencePair
from .edit_features import Edit
from .phrase_similarity import Spans

MODIFIERS = frozenset(("CC", "CD", "MD", "DT", "PDT", "WDT"))
PREPOSITIONS = frozenset(("IN", "TO", "RP"))
SEARCHED = 20  # edits of the largest component that is searched in Python
COMPARED = 3000  # edits that are compared with each other; a problem with more goes to HiGHS as a whole
_NOTHING = 1e-12  # a gain that counts as none
_SLACK = 1e-9

# A token, and the supporters of which one must be aligned where it is; targets are numbered after sources.
Condition = tuple[int, Sequence[int]]


# Simulated annealing (MacCartney et al. 2008, Figure 2)


@dataclass(frozen=True)
class Schedule:
    """`steps` (N), the initial temperature (T0), and the factor `cooling` (r) that every step applies to it."""

    steps: int = 100
    temperature: float = 40.0
    cooling: float = 0.9

    def __post_init__(self) -> None:
        if self.steps < 1 or not (0 < self.temperature < np.inf and 0 < self.cooling <= 1):
            raise ConfigError(
                f"steps={self.steps}, temperature={self.temperature}, cooling={self.cooling}: choose at least one "
                "step, a positive temperature, and a factor above 0 and at most 1"
            )


def anneal(
    gains: np.ndarray, source: Spans, target: Spans, schedule: Schedule, random: np.random.Generator
) -> list[Edit]:
    """Return the best alignment on the way from the empty one."""
    state = Annealing(gains, source, target)
    best, best_edits = 0.0, list[Edit]()
    temperature = schedule.temperature
    for _ in range(schedule.steps):
        temperature *= schedule.cooling
        state.step(temperature, random.random())
        if state.score > best:
            best, best_edits = state.score, sorted(state.edits)
    return best_edits


class Annealing:
    """An alignment, and the score of each of its successors.

    A successor adds an edit, a deletion or an insertion, and removes what clashes with it. Successors are numbered
    in this order. `lost` holds the gain that each would remove, and is updated from step to step.
    """

    def __init__(self, gains: np.ndarray, source: Spans, target: Spans) -> None:
        self.gains, self.source, self.target = gains, source, target
        self.size, self.width = gains.size, gains.shape[1]
        self.gain = np.concatenate([gains.ravel(), np.zeros(source.n + target.n)])
        self.lost = np.zeros(len(self.gain))
        self.edits: set[Edit] = set()
        self.score = 0.0

    def step(self, temperature: float, sample: float) -> None:
        """Move to the successor F that a uniform sample selects: p(F) ~ exp(score of F) ^ (1 / temperature)."""
        p = self.gain - self.lost  # the scores but for a constant
        p -= p.max()
        p /= temperature
        np.exp(p, out=p)
        total = np.cumsum(p, out=p)
        number = min(int(total.searchsorted(sample * total[-1], side="right")), len(p) - 1)
        if number < self.size:
            edit = divmod(number, self.width)
            if edit not in self.edits:
                self._remove([other for other in self.edits if self._clash(edit, other)])
                self._change(edit, 1)
            return
        token, side = number - self.size, 0
        if token >= self.source.n:
            token, side = token - self.source.n, 1
        spans = (self.source, self.target)[side]
        self._remove([e for e in self.edits if spans.start[e[side]] <= token < spans.end[e[side]]])

    def _clash(self, one: Edit, other: Edit) -> bool:
        return any(
            spans.start[a] < spans.end[b] and spans.start[b] < spans.end[a]
            for spans, a, b in zip((self.source, self.target), one, other, strict=True)
        )

    def _remove(self, edits: Sequence[Edit]) -> None:
        for edit in edits:
            self._change(edit, -1)

    def _change(self, edit: Edit, sign: int) -> None:
        """Add an edit that clashes with no other (sign 1), or remove one (sign -1)."""
        (self.edits.add if sign > 0 else self.edits.discard)(edit)
        gain = sign * self.gains[edit]
        self.score += gain
        (first, end), (first_target, end_target) = (
            (int(spans.start[k]), int(spans.end[k]))
            for spans, k in zip((self.source, self.target), edit, strict=True)
        )
        above = (self.source.start < end) & (self.source.end > first)  # spans that share a token with the edit's
        below = (self.target.start < end_target) & (self.target.end > first_target)
        lost = self.lost[: self.size].reshape(self.gains.shape)
        lost[above] += gain
        lost[np.ix_(~above, below)] += gain
        self.lost[self.size + first : self.size + end] += gain
        behind = self.size + self.source.n
        self.lost[behind + first_target : behind + end_target] += gain


# Exact decoding (Thadani & McKeown 2011)


def decode(gains: np.ndarray, source: Spans, target: Spans) -> list[Edit]:
    """Return the edits of the best alignment, in order. Ties are always broken alike."""
    places = np.flatnonzero(gains > _NOTHING)
    if not len(places):
        return []
    s, t = np.divmod(places, gains.shape[1])
    chosen = pack(gains[s, t].astype(np.float64), source, target, s, t)
    return sorted(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def pack(gain: np.ndarray, source: Spans, target: Spans, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the numbers of the edits (s[k], t[k]) that share no token and gain most; all gains are positive.

    Most edits are decided at once, because they gain more than all that they exclude. The others fall into small
    components. Single words are an assignment problem, other small components are searched, HiGHS solves the rest.
    """
    if len(gain) > COMPARED:
        return maximise(gain, source, target, s, t)
    a, b, c, d = source.start[s], source.end[s], target.start[t], target.end[t]
    # Drop edits that contain smaller ones of at least the same gain.
    within = (a[:, None] >= a) & (b[:, None] <= b) & (c[:, None] >= c) & (d[:, None] <= d)
    within &= gain[:, None] >= gain
    np.fill_diagonal(within, False)
    kept: np.ndarray = np.flatnonzero(~within.any(axis=0))
    gain, a, b, c, d = gain[kept], a[kept], b[kept], c[kept], d[kept]
    clash = ((a[:, None] < b) & (a < b[:, None])) | ((c[:, None] < d) & (c < d[:, None]))
    np.fill_diagonal(clash, False)
    chosen, undecided = _decided(gain, clash)
    for part in _components(clash, undecided):
        if (b[part] - a[part] == 1).all() and (d[part] - c[part] == 1).all():
            found = _assigned(gain[part], a[part], c[part])
        elif len(part) <= SEARCHED:
            found = searched(gain[part], clash[np.ix_(part, part)])
        else:
            found = maximise(gain[part], source, target, s[kept[part]], t[kept[part]])
        chosen[part[found]] = True
    return np.asarray(kept[chosen])


def _decided(gain: np.ndarray, clash: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edits that gain at least as much as all that they clash with, and the undecided edits."""
    chosen, undecided = np.zeros(len(gain), dtype=bool), np.ones(len(gain), dtype=bool)
    clashing = clash.astype(np.float64)
    while undecided.any():
        wins = np.flatnonzero(undecided & (gain >= clashing @ (gain * undecided)))
        if not len(wins):
            break
        wins = wins[~np.tril(clash[np.ix_(wins, wins)], -1).any(axis=1)]  # of two with equal gains, the first
        chosen[wins] = True
        undecided[wins] = False
        undecided &= ~clash[wins].any(axis=0)
    return chosen, undecided


def _components(clash: np.ndarray, undecided: np.ndarray) -> list[np.ndarray]:
    """Group the undecided edits, so that edits of different groups do not clash."""
    parts, left = [], undecided.copy()
    while left.any():
        part = np.zeros(len(left), dtype=bool)
        part[int(np.argmax(left))] = True
        size = 0
        while size != (size := int(part.sum())):
            part |= clash[part].any(axis=0) & left
        parts.append(np.flatnonzero(part))
        left &= ~part
    return parts


def _assigned(gain: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Assign single words to single words."""
    from scipy.optimize import linear_sum_assignment

    rows, i = np.unique(source, return_inverse=True)
    columns, j = np.unique(target, return_inverse=True)
    table = np.zeros((len(rows), len(columns)))
    number = np.full(table.shape, -1, dtype=np.int64)
    table[i, j], number[i, j] = gain, np.arange(len(gain))
    found: np.ndarray = number[linear_sum_assignment(table, maximize=True)]
    return found[found >= 0]


def searched(gain: np.ndarray, clash: np.ndarray) -> np.ndarray:
    """Find the independent set of largest gain by memoised search; sets of edits are bit masks."""
    gains = gain.tolist()
    excludes = [1 << k | sum(1 << j for j in np.flatnonzero(row).tolist()) for k, row in enumerate(clash)]

    @cache
    def best(left: int) -> tuple[float, int]:
        if not left:
            return 0.0, 0
        first = left & -left
        k = first.bit_length() - 1
        value, edits = best(left & ~excludes[k])
        taken = value + gains[k], edits | first
        if excludes[k] & left == first:
            return taken
        without = best(left & ~first)
        return taken if taken[0] >= without[0] else without

    edits = best((1 << len(gains)) - 1)[1]
    return np.array([k for k in range(len(gains)) if edits >> k & 1], dtype=np.int64)


def cover(source: Spans, target: Spans, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """[m + n, K] whether an edit (s[k], t[k]) covers a token; targets come after sources."""
    sides = []
    for spans, k in ((source, s), (target, t)):
        tokens = np.arange(spans.n)[:, None]
        sides.append((spans.start[k] <= tokens) & (tokens < spans.end[k]))
    return np.concatenate(sides)


def maximise(
    gain: np.ndarray,
    source: Spans,
    target: Spans,
    s: np.ndarray,
    t: np.ndarray,
    conditions: Sequence[Condition] = (),
    relaxed: bool = False,
) -> np.ndarray:
    """Solve the integer programme by HiGHS; return the numbers of the chosen edits.

    Each edit is a variable, without the deletions and insertions of the paper. A token takes one edit at most, and
    a token with a condition needs an edit of one of its supporters. `relaxed` returns the values [K] of the
    optimum of the linear relaxation instead.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    covers = cover(source, target, s, t)
    rows = csr_array(covers[covers.sum(axis=1) > 1], dtype=np.float64)
    upper = np.ones(rows.shape[0])
    if conditions:
        active = np.array([covers[token] for token, _ in conditions], dtype=np.float64)
        support = np.array([covers[list(others)].sum(axis=0) for _, others in conditions], dtype=np.float64)
        needed = active - support
        rows = vstack([rows, csr_array(needed[(needed > 0).any(axis=1)])], format="csr")
        upper = np.concatenate([upper, np.zeros(rows.shape[0] - len(upper))])
    result = milp(
        -gain,
        integrality=np.full(len(gain), 0 if relaxed else 1),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(rows, -np.inf, upper)] if rows.shape[0] else None,
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise JacanaError(f"HiGHS found no alignment of {source.n} x {target.n} tokens: {result.message}")
    return result.x if relaxed else np.flatnonzero(result.x > 0.5)


# Modifier and lineage constraints over a dependency parse (Thadani & McKeown 2011, §5)


def conditions(pair: SentencePair, modifier: bool, lineage: bool) -> list[Condition]:
    """Return the conditions on both sentences.

    A modifier may only be aligned where its parent is, a preposition where an ancestor or descendant is. Tokens
    without these are free.
    """
    found: list[Condition] = []
    for sentence, first in ((pair.source, 0), (pair.target, len(pair.source))):
        tags, heads = sentence.layer("pos"), sentence.layer("head")
        if any(not -1 <= head < len(heads) for head in heads):
            raise ConfigError(f"heads must be token numbers or -1, not {list(heads)} in {str(sentence)[:60]!r}")
        above = _ancestors(sentence) if lineage else []
        for token, tag in enumerate(tags):
            supporters: list[int] = []
            if modifier and tag in MODIFIERS and heads[token] >= 0:
                supporters = [heads[token]]
            elif lineage and tag in PREPOSITIONS:
                supporters = [*above[token], *(other for other, over in enumerate(above) if token in over)]
            if supporters:
                found.append((first + token, [first + other for other in supporters]))
    return found


def _ancestors(sentence: Sentence) -> list[list[int]]:
    """Return the ancestors of each token. The parse may contain cycles."""
    heads = sentence.layer("head")
    out: list[list[int]] = []
    for token, head in enumerate(heads):
        above: list[int] = []
        while head >= 0 and head not in above and head != token:
            above.append(head)
            head = heads[head]
        out.append(above)
    return out


def decode_under(gains: np.ndarray, source: Spans, target: Spans, required: Sequence[Condition]) -> list[Edit]:
    """Return the best edits that meet the conditions.

    If the unconstrained optimum meets them, it is the answer. Otherwise find a good answer, and solve the
    programme for the edits that may be in a better one.
    """
    free = decode(gains, source, target)
    good = _without_broken(free, gains, source, target, required)
    if good == free:
        return free
    least = sum(float(gains[edit]) for edit in good)
    s, t = np.nonzero(_bounds(gains, source, target, free) > least - _SLACK)
    gain = gains[s, t].astype(np.float64)
    covers = cover(source, target, s, t)
    useful = gain > 0
    before = np.zeros_like(useful)
    while (useful != before).any():  # a loss pays only by supporting a useful edit, and may need support
        active, before = np.asarray(covers[:, useful].any(axis=1)), useful
        supporters = sorted({other for token, others in required if active[token] for other in others})
        useful = useful | covers[supporters].any(axis=0)
    s, t = s[useful], t[useful]
    chosen = maximise(gain[useful], source, target, s, t, required)
    return sorted(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def _without_broken(
    edits: list[Edit], gains: np.ndarray, source: Spans, target: Spans, required: Sequence[Condition]
) -> list[Edit]:
    """Leave tokens that break a condition unaligned, and decode again, until all conditions are met."""
    left = gains
    while edits:
        numbers = np.array(edits)
        active = set(np.flatnonzero(cover(source, target, numbers[:, 0], numbers[:, 1]).any(axis=1)).tolist())
        broken = [token for token, others in required if token in active and active.isdisjoint(others)]
        if not broken:
            break
        left = left.copy()
        for token in broken:
            if token < source.n:
                left[(source.start <= token) & (token < source.end)] = 0.0
            else:
                left[:, (target.start <= token - source.n) & (token - source.n < target.end)] = 0.0
        edits = decode(left, source, target)
    return edits


def _bounds(gains: np.ndarray, source: Spans, target: Spans, free: Sequence[Edit]) -> np.ndarray:
    """[S, T] an upper bound on the gain of any alignment with each edit. `free`: the unconstrained optimum.

    Every token has a price, and no edit gains more than its tokens' prices together (a solution of the dual). So
    no alignment gains more than the sum of all prices. With an edit below its tokens' prices, it gains less by as
    much.
    """
    price = np.zeros(source.n + target.n)
    for one, other in free:
        half = float(gains[one, other]) / 2
        price[source.start[one] : source.end[one]] += half / source.length[one]
        price[source.n + target.start[other] : source.n + target.end[other]] += half / target.length[other]
    s, t = np.nonzero(gains > 0)
    gain, covers = gains[s, t], cover(source, target, s, t)
    lacking = gain - price @ covers
    while len(s) and lacking.max() > 0:
        k = int(np.argmax(lacking))
        price[int(source.start[s[k]])] += lacking[k] + _SLACK
        lacking = gain - price @ covers
    above = np.concatenate([[0.0], np.cumsum(price[: source.n])])
    below = np.concatenate([[0.0], np.cumsum(price[source.n :])])
    paid = (above[source.end] - above[source.start])[:, None] + below[target.end] - below[target.start]
    bounds: np.ndarray = price.sum() + gains - paid
    return bounds
