"""What the page holds: pairs, alignments and reasons in, compact JSON out. assets/pairs.js is its reader.

    {"files": [gold, predicted], "pairs": [[id or 0, source, target, [i, j, says, chance, ...], [why, ...]?], ...],
     "features": [...], "verdicts": [...]}

Sentences are strings unless a token holds a space. Every link stands once: `says` adds up who has it (gold 1 sure,
2 possible; predicted 4 and 8), `chance` is per mille, -1 where nobody said. A `why` is 0, or [verdict, side,
rival, margin, feature, amount, feature, amount, ...]: amounts are hundredths, verdicts and features places in the
tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..types import Alignment, Example, Link

GOLD, PREDICTED = (1, 2), (4, 8)
NO_LINK = -1
Shown = tuple[int, int, int, int]  # i, j, says, chance


class Why(NamedTuple):
    """Reasons for one link: what was decided, and the features that weighed most.

    `by_target` says that the target word chose a source word; `rival` is the place that would have been next, None
    for no link, and `margin` the distance to it, None where there is none to tell. `chance` is told of links that
    the alignment holds no confidence of.
    """

    verdict: str
    reasons: Sequence[tuple[str, float]] = ()
    by_target: bool = False
    rival: int | None = None
    margin: float | None = None
    chance: float | None = None


class Explainer(Protocol):
    """Why i and j are linked, or not; None where there is nothing to say."""

    def __call__(self, i: int, j: int, /) -> Why | None: ...


@dataclass
class _Table:
    """Names that are written once."""

    places: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places))


def payload(
    examples: Iterable[Example],
    predicted: Iterable[Alignment] | None,
    files: Sequence[str],
    why: Iterable[Explainer] | None = None,
) -> str:
    """JSON that may stand in a script element."""
    features, verdicts = _Table(), _Table()
    pairs = []
    others: Iterator[Alignment | None] = repeat(None) if predicted is None else iter(predicted)
    explainers: Iterator[Explainer | None] = repeat(None) if why is None else iter(why)
    for example, other, explain in zip(examples, others, explainers, strict=False):
        shown = _shown(example.gold, other)
        pair: list[Any] = [
            example.pair.id or 0,
            _words(example.pair.source.tokens),
            _words(example.pair.target.tokens),
        ]
        because = None if explain is None else [explain(i, j) for i, j, _, _ in shown]
        pair.append([number for link in _with_chances(shown, because) for number in link])
        if because is not None:
            pair.append([_packed(why, features, verdicts) for why in because])
        pairs.append(pair)
    return embedded(
        {
            "files": list(files),
            "pairs": pairs,
            "features": list(features.places),
            "verdicts": list(verdicts.places),
        }
    )


def _shown(gold: Alignment | None, predicted: Alignment | None) -> list[Shown]:
    """(i, j, says, chance) in reading order. A single alignment is shown as a prediction is."""
    sides = [(predicted, PREDICTED)] if gold is None else [(gold, PREDICTED)]
    if gold is not None and predicted is not None:
        sides = [(gold, GOLD), (predicted, PREDICTED)]
    says: dict[Link, int] = {}
    for alignment, (sure, possible) in sides:
        if alignment is not None:
            for links, bit in ((alignment.sure, sure), (alignment.possible, possible)):
                for link in links:
                    says[link] = says.get(link, 0) | bit
    last = sides[-1][0]
    chances = {} if last is None else last.confidence
    return [(i, j, bits, _mille(chances.get((i, j)))) for (i, j), bits in sorted(says.items())]


def _with_chances(links: list[Shown], because: Sequence[Why | None] | None) -> list[Shown]:
    if because is None:
        return links
    return [
        (i, j, says, _mille(why.chance) if chance < 0 and why is not None else chance)
        for (i, j, says, chance), why in zip(links, because, strict=True)
    ]


def _mille(chance: float | None) -> int:
    return -1 if chance is None else min(max(round(1000 * chance), 0), 1000)


def _words(tokens: Sequence[str]) -> str | list[str]:
    return " ".join(tokens) if all(tokens) and not any(" " in token for token in tokens) else list(tokens)


def _packed(why: Why | None, features: _Table, verdicts: _Table) -> list[int | None] | int:
    if why is None:
        return 0
    rival = NO_LINK if why.rival is None else why.rival
    margin = None if why.margin is None else round(100 * why.margin)
    packed: list[int | None] = [verdicts(why.verdict), int(why.by_target), rival, margin]
    for name, amount in why.reasons:
        packed += [features(name), round(100 * amount)]
    return packed


def embedded(value: Any) -> str:
    """JSON without what could end a script element, and without halves of characters, which no file holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
