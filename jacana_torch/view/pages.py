"""One HTML page of many pairs, with their alignments and reasons, that needs no other file and no network.

The page may run its own script, known by its hash, and nothing else; the pairs are data to it. assets/pairs.js
reads this JSON:

    {"files": [gold, predicted], "pairs": [[id or 0, source, target, [i, j, says, chance, ...], [why, ...]?], ...],
     "features": [...], "verdicts": [...]}

Sentences are strings unless a token holds a space. Every link appears once: `says` adds up the alignments that
have it (gold 1 sure, 2 possible; predicted 4 and 8), `chance` is its probability per mille, -1 if unknown. A `why`
is 0, or [verdict, side, competitor, margin, feature, amount, feature, amount, ...] with margin and amounts in
hundredths; verdicts and features are indices into the tables.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import JacanaError
from ..version import __version__

if TYPE_CHECKING:
    from ..types import Alignment, Example, Link

SCRIPTS = ("draw.js", "pairs.js", "list.js", "page.js")
_GOLD, _PREDICTED = (1, 2), (4, 8)
_NO_LINK = -1
Shown = tuple[int, int, int, int]  # i, j, says, chance


class Why(NamedTuple):
    """The reasons for one link."""

    verdict: str
    reasons: Sequence[tuple[str, float]] = ()  # the features with the largest contributions
    by_target: bool = False  # whether the target word chose a source word
    rival: int | None = None  # the competitor: the position of the next best word, None for no link
    margin: float | None = None  # its distance in score, None if there is none
    chance: float | None = None  # the probability, for links that the alignment has no confidence of


class Explainer(Protocol):
    """Says why i and j are linked, or not; None if there is nothing to say."""

    def __call__(self, i: int, j: int, /) -> Why | None: ...


def page(
    examples: Iterable[Example],
    predicted: Sequence[Alignment] | None = None,
    *,
    title: str = "Alignments",
    files: Sequence[str] = ("gold", "predicted"),
    why: Iterable[Explainer] | None = None,
) -> str:
    """The text of a page.

    `predicted` is compared with the examples' gold alignments. `files` names the two in the page. `why` gives the
    reasons for the links of each pair.
    """
    examples = list(examples)
    if predicted is not None:
        _check(examples, predicted)
    comparing = predicted is not None and any(example.gold is not None for example in examples)
    data = payload(examples, predicted, files[: 2 if comparing else 1], why)
    style, script = asset("page.css"), "\n".join(asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": escape(title.encode("utf-8", "replace").decode()),
        "version": escape(__version__),
        "policy": policy,
        "style": style,
        "script": script,
        "data": data,
    }
    # One pass, so that placeholders within the data stay as they are.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], asset("page.html"))


def asset(name: str) -> str:
    """The text of a file of the page."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _check(examples: Sequence[Example], predicted: Sequence[Alignment]) -> None:
    if len(examples) != len(predicted):
        raise JacanaError(
            f"there are {len(examples)} pairs and {len(predicted)} predictions: they must match one to one"
        )
    for number, (example, alignment) in enumerate(zip(examples, predicted, strict=True), start=1):
        sizes = len(example.pair.source), len(example.pair.target)
        if (alignment.n_source, alignment.n_target) != sizes:
            raise JacanaError(
                f"pair {number} has {sizes[0]} x {sizes[1]} tokens and its prediction {alignment.n_source} x "
                f"{alignment.n_target}: both must be of the same tokens, in the same direction"
            )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


class _Table(dict[str, int]):
    """Numbers names in the order of their first use."""

    def __call__(self, name: str) -> int:
        return self.setdefault(name, len(self))


def payload(
    examples: Iterable[Example],
    predicted: Iterable[Alignment] | None,
    files: Sequence[str],
    why: Iterable[Explainer] | None = None,
) -> str:
    """The data of the page, as JSON that is safe within a script element."""
    features, verdicts = _Table(), _Table()
    pairs = []
    others: Iterator[Alignment | None] = repeat(None) if predicted is None else iter(predicted)
    explainers: Iterator[Explainer | None] = repeat(None) if why is None else iter(why)
    for example, other, explain in zip(examples, others, explainers, strict=False):
        links, packed = [], []
        for i, j, says, chance in _shown(example.gold, other):
            because = explain(i, j) if explain is not None else None
            if because is not None and chance < 0:
                chance = _per_mille(because.chance)
            links += [i, j, says, chance]
            packed.append(_packed(because, features, verdicts))
        source, target = example.pair.source.tokens, example.pair.target.tokens
        pair = [example.pair.id or 0, _words(source), _words(target), links]
        pairs.append(pair if explain is None else [*pair, packed])
    return embedded({"files": list(files), "pairs": pairs, "features": list(features), "verdicts": list(verdicts)})


def _shown(gold: Alignment | None, predicted: Alignment | None) -> list[Shown]:
    """The links of both alignments in reading order. A single alignment is shown as a prediction."""
    sides = [(predicted if gold is None else gold, _PREDICTED)]
    if gold is not None and predicted is not None:
        sides = [(gold, _GOLD), (predicted, _PREDICTED)]
    says: dict[Link, int] = {}
    for alignment, (sure, possible) in sides:
        if alignment is not None:
            for links, bit in ((alignment.sure, sure), (alignment.possible, possible)):
                for link in links:
                    says[link] = says.get(link, 0) | bit
    last = sides[-1][0]
    known = {} if last is None else last.confidence
    return [(i, j, bits, _per_mille(known.get((i, j)))) for (i, j), bits in sorted(says.items())]


def _per_mille(probability: float | None) -> int:
    return -1 if probability is None else min(max(round(1000 * probability), 0), 1000)


def _words(tokens: Sequence[str]) -> str | list[str]:
    return " ".join(tokens) if all(tokens) and not any(" " in token for token in tokens) else list(tokens)


def _packed(why: Why | None, features: _Table, verdicts: _Table) -> list[int | None] | int:
    if why is None:
        return 0
    competitor = _NO_LINK if why.rival is None else why.rival
    margin = None if why.margin is None else round(100 * why.margin)
    packed: list[int | None] = [verdicts(why.verdict), int(why.by_target), competitor, margin]
    for name, amount in why.reasons:
        packed += [features(name), round(100 * amount)]
    return packed


def embedded(value: Any) -> str:
    """JSON without anything that could end a script element, and without lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
