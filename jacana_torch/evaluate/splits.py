"""Break scores down by type of link (identical words, part of speech, 1-1 or phrase) or by sentence length.

The type of a gold link depends on the gold alignment, that of a predicted link on the prediction. Figures of types
are micro averages over links; figures of lengths are macro averages over pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ..types import Alignment, Link, SentencePair
from .scores import Score, count, harmonic_mean, links_of

Kind = Callable[[Link], str]
Split = Callable[[SentencePair, frozenset[Link]], Kind]

CLASSES = (
    ("noun", "NN"), ("verb", "VB|MD"), ("adjective", "JJ"), ("adverb", "RB|WRB"), ("number", "CD"),
    ("punctuation", r"[^A-Za-z]|-LRB-|-RRB-|HYPH|NFP|SYM"), ("function word", ""),
)  # fmt: skip
LENGTHS = (10, 20, 30)


@dataclass(frozen=True)
class Group:
    """The links of one type, or the pairs of one range of lengths, with their figures."""

    name: str
    gold: int
    predicted: int
    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def by_identity(pair: SentencePair, links: frozenset[Link]) -> Kind:
    """Whether the two words are equal, ignoring case."""
    source, target = ([token.casefold() for token in side.tokens] for side in (pair.source, pair.target))
    return lambda link: "identical" if source[link[0]] == target[link[1]] else "other"


def by_pos(pair: SentencePair, links: frozenset[Link]) -> Kind:
    """The word class of the source token, by its Penn tag."""
    classes = [word_class(tag) for tag in pair.source.layer("pos")]
    return lambda link: classes[link[0]]


def by_type(pair: SentencePair, links: frozenset[Link]) -> Kind:
    """The size of the group of words that a link belongs to: 1-1, 1-n (or n-1), or phrase (m-n)."""
    root: dict[tuple[int, int], tuple[int, int]] = {}

    def find(node: tuple[int, int]) -> tuple[int, int]:
        while root.setdefault(node, node) != node:
            root[node] = node = root[root[node]]
        return node

    for i, j in links:
        root[find((0, i))] = find((1, j))
    sizes = Counter((find(node), node[0]) for node in list(root))

    def kind(link: Link) -> str:
        group = find((0, link[0]))
        n_source, n_target = sizes[group, 0], sizes[group, 1]
        return "1-1" if n_source == n_target == 1 else "1-n" if 1 in (n_source, n_target) else "phrase"

    return kind


SPLITS: Mapping[str, Split] = MappingProxyType({"identical": by_identity, "pos": by_pos, "type": by_type})
ORDER = ("identical", "other", *(name for name, _ in CLASSES), "1-1", "1-n", "phrase")


def word_class(tag: str) -> str:
    return next(name for name, pattern in CLASSES if re.match(pattern, tag))


def groups(
    split: str,
    pairs: Sequence[SentencePair],
    gold: Sequence[Alignment],
    predicted: Sequence[Alignment],
    links: str = "sure",
) -> list[Group]:
    """The figures of each type of link in the data, or of each range of lengths. Types partition the links."""
    if split == "length":
        return by_length(pairs, gold, predicted, links)
    totals: dict[str, Counter[str]] = {name: Counter() for name in ("gold", "predicted", "recalled", "correct")}
    for pair, right, found in zip(pairs, gold, predicted, strict=True):
        in_gold, in_found = links_of(right, links), links_of(found, links)
        for whole, part, own, other in (
            ("gold", "recalled", in_gold, in_found), ("predicted", "correct", in_found, in_gold)
        ):  # fmt: skip
            kind = SPLITS[split](pair, own)
            kinds = {link: kind(link) for link in own}
            totals[whole].update(kinds.values())
            totals[part].update(kinds[link] for link in own & other)
    return [_group(name, totals) for name in ORDER if totals["gold"][name] or totals["predicted"][name]]


def _group(name: str, totals: Mapping[str, Counter[str]]) -> Group:
    gold, predicted = totals["gold"][name], totals["predicted"][name]
    precision = totals["correct"][name] / predicted if predicted else 0.0
    recall = totals["recalled"][name] / gold if gold else 0.0
    return Group(name, gold, predicted, precision, recall, harmonic_mean(precision, recall))


def by_length(
    pairs: Sequence[SentencePair], gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str
) -> list[Group]:
    """Macro figures by the number of words in the longer sentence."""
    counts = count(gold, predicted, links)
    longest = np.array([max(len(pair.source), len(pair.target)) for pair in pairs])
    out = []
    for low, high in zip((0, *LENGTHS), (*LENGTHS, None), strict=True):
        rows = np.flatnonzero((longest > low) & (longest <= high) if high else longest > low)
        if low == 0:
            rows = np.union1d(rows, np.flatnonzero(longest == 0))
        if len(rows):
            score = Score.of(counts.take(rows))
            name = f"{'up to ' if not low else f'{low + 1} to ' if high else 'over '}{high or low} words"
            name += f", {len(rows)} pairs"
            found = (score.gold_links, score.predicted_links, score.precision, score.recall, score.f1)
            out.append(Group(name, *found))
    return out
