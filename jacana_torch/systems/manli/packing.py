"""The best alignment exactly: phrases that share no token, of the largest gain together.

Gains of all edits in, the chosen edits out. This is Thadani & McKeown's integer programme with deletions and
insertions taken out of it: a token costs what it does unaligned, and an edit is worth what it adds to that. Edits
that add nothing need not be looked at, and of the few that are left most are decided at once, since they are worth
more than all that they exclude. What remains falls into small parts: single words are an assignment, other small
parts are searched, and HiGHS solves the rest.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .edit_features import Edit
from .phrases import Spans
from .programme import maximise

SEARCHED = 20  # edits of the largest part that is searched in Python
COMPARED = 3000  # edits that are compared with each other
_NOTHING = 1e-12


def decode(gains: np.ndarray, source: Spans, target: Spans) -> list[Edit]:
    """The edits of the best alignment, in order; where several are equally good, always the same one."""
    places = np.flatnonzero(gains > _NOTHING)
    if not len(places):
        return []
    s, t = np.divmod(places, gains.shape[1])
    chosen = pack(gains[s, t].astype(np.float64), source, target, s, t)
    return sorted(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def pack(gain: np.ndarray, source: Spans, target: Spans, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Numbers of the edits (s[k], t[k]) that share no token and are worth most; all gains are positive."""
    if len(gain) > COMPARED:
        return maximise(gain, source, target, s, t)
    a, b, c, d = source.start[s], source.end[s], target.start[t], target.end[t]
    if len(gain) > 1:
        within = (a[:, None] >= a) & (b[:, None] <= b) & (c[:, None] >= c) & (d[:, None] <= d)
        within &= gain[:, None] >= gain
        np.fill_diagonal(within, False)
        kept = np.flatnonzero(~within.any(axis=0))  # else take the smaller phrases that are worth as much
        gain, a, b, c, d = gain[kept], a[kept], b[kept], c[kept], d[kept]
    else:
        kept = np.arange(len(gain))
    clash = ((a[:, None] < b) & (a < b[:, None])) | ((c[:, None] < d) & (c < d[:, None]))
    np.fill_diagonal(clash, False)
    chosen, open_ = _decided(gain, clash)
    for part in _parts(clash, open_):
        single = bool((b[part] - a[part] == 1).all() and (d[part] - c[part] == 1).all())
        if single:
            found = _assigned(gain[part], a[part], c[part])
        elif len(part) <= SEARCHED:
            found = _searched(gain[part], clash[np.ix_(part, part)])
        else:
            found = maximise(gain[part], source, target, s[kept[part]], t[kept[part]])
        chosen[part[found]] = True
    return kept[chosen]


def _decided(gain: np.ndarray, clash: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which edits are in a best alignment because they outweigh all that they clash with; the undecided ones."""
    chosen = np.zeros(len(gain), dtype=bool)
    weights, open_ = clash.astype(np.float64), np.ones(len(gain), dtype=bool)
    while open_.any():
        wins = np.flatnonzero(open_ & (gain >= weights @ (gain * open_)))
        if not len(wins):
            break
        rivals = np.tril(clash[np.ix_(wins, wins)], -1).any(axis=1)  # two of equal gain: the first
        wins = wins[~rivals]
        chosen[wins] = True
        open_[wins] = False
        open_ &= ~clash[wins].any(axis=0)
    return chosen, open_


def _parts(clash: np.ndarray, open_: np.ndarray) -> list[np.ndarray]:
    """The undecided edits in groups that do not clash with each other."""
    parts, left = [], open_.copy()
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
    """Single words with single words."""
    from scipy.optimize import linear_sum_assignment

    rows, i = np.unique(source, return_inverse=True)
    columns, j = np.unique(target, return_inverse=True)
    table = np.zeros((len(rows), len(columns)))
    number = np.full(table.shape, -1, dtype=np.int64)
    table[i, j], number[i, j] = gain, np.arange(len(gain))
    found = number[linear_sum_assignment(table, maximize=True)]
    return found[found >= 0]


def _searched(gain: np.ndarray, clash: np.ndarray) -> np.ndarray:
    """Each edit with or without, remembering what is best of those that are left."""
    worth = gain.tolist()
    excludes = [1 << k | sum(1 << j for j in np.flatnonzero(row).tolist()) for k, row in enumerate(clash)]

    @cache
    def best(left: int) -> tuple[float, int]:
        if not left:
            return 0.0, 0
        first = left & -left
        k = first.bit_length() - 1
        value, edits = best(left & ~excludes[k])
        taken = value + worth[k], edits | first
        if excludes[k] & left == first:
            return taken
        without = best(left & ~first)
        return taken if taken[0] >= without[0] else without

    edits = best((1 << len(worth)) - 1)[1]
    return np.array([k for k in range(len(worth)) if edits >> k & 1], dtype=np.int64)
