"""Modifier and lineage constraints over a dependency parse (Thadani & McKeown §5), and decoding under them.

A token of some tags may only be aligned where a token that it belongs to is: a modifier's parent, or anything that
is above or below a preposition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ConfigError
from ...types import Sentence, SentencePair
from .features import Edit
from .packing import decode
from .phrases import Spans
from .programme import Condition, cover, maximise

MODIFIERS = frozenset(("CC", "CD", "MD", "DT", "PDT", "WDT"))
PREPOSITIONS = frozenset(("IN", "TO", "RP"))


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
    for token, tag in enumerate(tags):
        if modifier and tag in MODIFIERS and heads[token] >= 0:
            found.append((token, [heads[token]]))
        elif lineage and tag in PREPOSITIONS:
            above = _ancestors(heads, token)
            below = [other for other in range(len(heads)) if token in _ancestors(heads, other)]
            if above or below:
                found.append((token, [*above, *below]))
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

    Where the best of all meet them, they are the answer. Else what meeting them costs at most says which edits can be
    in the answer: one that loses more than that cannot, however it supports others.
    """
    free = decode(gains, source, target)
    kept = _repaired(free, source, target, asked)
    if len(kept) == len(free):
        return free
    price = sum(float(gains[edit]) for edit in free) - sum(float(gains[edit]) for edit in kept)
    s, t = np.divmod(np.flatnonzero(gains > min(-price, 0.0)), gains.shape[1])
    gain = gains[s, t].astype(np.float64)
    covers = cover(source, target, s, t)
    conditional = [token for token, _ in asked if covers[token, gain > 0].any()]
    supporters = sorted({other for token, others in asked if token in set(conditional) for other in others})
    useful = (gain > 0) | covers[supporters].any(axis=0)  # a loss is only ever taken to support something
    s, t = s[useful], t[useful]
    chosen = maximise(gain[useful], source, target, s, t, asked)
    return sorted(zip(s[chosen].tolist(), t[chosen].tolist(), strict=True))


def _repaired(
    edits: Sequence[Edit], source: Spans, target: Spans, asked: Sequence[Condition]
) -> list[Edit]:
    """The edits without those that break a condition, and without those that break one then."""
    kept = list(edits)
    while kept:
        numbers = np.array(kept)
        covers = cover(source, target, numbers[:, 0], numbers[:, 1])
        active = covers.any(axis=1)
        broken = [token for token, others in asked if active[token] and not active[list(others)].any()]
        if not broken:
            break
        bad = covers[broken].any(axis=0)
        kept = [edit for edit, is_bad in zip(kept, bad.tolist(), strict=True) if not is_bad]
    return kept
