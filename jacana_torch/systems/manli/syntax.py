"""Modifier and lineage constraints over a dependency parse (Thadani & McKeown §5), and decoding under them.

A token of some tags may only be aligned where a token that it belongs to is: a modifier's parent, or anything that
is above or below a preposition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ConfigError
from ...types import Sentence, SentencePair
from .edit_features import Edit
from .packing import decode
from .phrases import Spans
from .programme import Condition, cover, maximise

MODIFIERS = frozenset(("CC", "CD", "MD", "DT", "PDT", "WDT"))
PREPOSITIONS = frozenset(("IN", "TO", "RP"))
_SLACK = 1e-9


def conditions(pair: SentencePair, modifier: bool, lineage: bool) -> list[Condition]:
    """The conditions of both sentences. Tokens that nothing is above or below are free."""
    found: list[Condition] = []
    for sentence, first in ((pair.source, 0), (pair.target, len(pair.source))):
        for token, supporters in _of(sentence, modifier, lineage):
            found.append((first + token, [first + other for other in supporters]))
    return found


def _of(sentence: Sentence, modifier: bool, lineage: bool) -> list[Condition]:
    tags, heads = sentence.layer("pos"), sentence.layer("head")
    if any(not -1 <= head < len(heads) for head in heads):
        raise ConfigError(f"heads are numbers of tokens, or -1: {list(heads)} of {str(sentence)[:60]!r}")
    found: list[Condition] = []
    ancestors = [_ancestors(heads, token) for token in range(len(heads))] if lineage else []
    for token, tag in enumerate(tags):
        if modifier and tag in MODIFIERS and heads[token] >= 0:
            found.append((token, [heads[token]]))
        elif lineage and tag in PREPOSITIONS:
            below = [other for other, above in enumerate(ancestors) if token in above]
            if ancestors[token] or below:
                found.append((token, [*ancestors[token], *below]))
    return found


def _ancestors(heads: Sequence[int], token: int) -> list[int]:
    out: list[int] = []
    head = heads[token]
    while head >= 0 and head not in out and head != token:  # a parse may be no tree
        out.append(head)
        head = heads[head]
    return out


def decode_under(gains: np.ndarray, source: Spans, target: Spans, asked: Sequence[Condition]) -> list[Edit]:
    """The best edits that meet the conditions.

    Where the best of all meet them, they are the answer. Else a good answer is found first, and the programme is
    asked about those edits alone that could be in a better one.
    """
    free = decode(gains, source, target)
    good = _without_broken(free, gains, source, target, asked)
    if good == free:
        return free
    least = _worth(gains, good)
    possible = _bounds(gains, source, target, free) > least - _SLACK
    s, t = np.nonzero(possible)
    gain = gains[s, t].astype(np.float64)
    covers = cover(source, target, s, t)
    conditional = {token for token, _ in asked if covers[token, gain > 0].any()}
    supporters = sorted({other for token, others in asked if token in conditional for other in others})
    useful = (gain > 0) | covers[supporters].any(axis=0)  # a loss is only ever taken to support something
    s, t = s[useful], t[useful]
    chosen = maximise(gain[useful], source, target, s, t, asked)
    return sorted(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def _bounds(gains: np.ndarray, source: Spans, target: Spans, free: Sequence[Edit]) -> np.ndarray:
    """[S, T] what an alignment with each edit is worth at most, conditions or not.

    Every token has a price, and no edit is worth more than its tokens' prices together (a solution of the dual
    programme): so no alignment is worth more than all prices, and with an edit that falls short of its tokens'
    prices, less by as much.
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
    return price.sum() + gains - paid


def _worth(gains: np.ndarray, edits: Sequence[Edit]) -> float:
    return sum(float(gains[edit]) for edit in edits)


def _without_broken(
    edits: list[Edit], gains: np.ndarray, source: Spans, target: Spans, asked: Sequence[Condition]
) -> list[Edit]:
    """The best edits when tokens that break a condition may not be aligned at all, until none does."""
    left = gains
    while edits:
        numbers = np.array(edits)
        active = set(np.flatnonzero(cover(source, target, numbers[:, 0], numbers[:, 1]).any(axis=1)).tolist())
        broken = [token for token, others in asked if token in active and active.isdisjoint(others)]
        if not broken:
            break
        left = left.copy() if left is gains else left
        for token in broken:
            if token < source.n:
                left[(source.start <= token) & (token < source.end)] = 0.0
            else:
                left[:, (target.start <= token - source.n) & (token - source.n < target.end)] = 0.0
        edits = decode(left, source, target)
    return edits
