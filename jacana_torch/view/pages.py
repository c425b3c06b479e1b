"""One HTML page of many pairs, with their alignments and reasons, that needs no other file and no network.

The page may run its own script, known by its hash, and nothing else; the pairs are data to it. assets/pairs.js
reads this JSON:

    {"files": [gold, system, ...], "gold": whether gold is first, "confidence": whether any probability is known,
     "possible": whether any link is only possible, "explained": [system, ...], "groups": [...],
     "sentences": [...], "verdicts": [...],
     "pairs": [[id or 0, source, target, links, whys of one explained, ...], ...]}

Sentences are strings unless a token holds a space. Links are [i, j, says, probability of each system, ...], one
after the other: `says` adds up the alignments that have the link (gold 1 sure, 2 possible; the first system 4 and
8, the next 16 and 32, ...), a probability is per mille, -1 if unknown. There is a why for each link: it is 0, or
[sentence, verdict, group, amount, group, amount, ...] with amounts in hundredths; sentences, verdicts and groups
are indices into the tables.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import JacanaError
from ..version import __version__

if TYPE_CHECKING:
    from ..types import Alignment, Example, Link

SCRIPTS = ("draw.js", "curves.js", "matrix.js", "pairs.js", "window.js", "list.js", "about.js", "page.js")
MOST_SYSTEMS = 12  # the script's integers have 31 bits, two for each alignment
_SURE, _POSSIBLE, _BITS = 1, 2, 2
_EVERY_POSSIBLE = sum(_POSSIBLE << _BITS * place for place in range(MOST_SYSTEMS + 1))


class Why(NamedTuple):
    """The reasons for one link."""

    verdict: str  # how the directions were combined
    sentence: str = ""  # the reasons in words
    groups: Sequence[tuple[str, float]] = ()  # contributions by group; they add up to the difference of two paths
    probability: float | None = None  # for links that the alignment has no confidence of


class Explainer(Protocol):
    """Says why i and j are linked, or not; None if there is nothing to say."""

    def __call__(self, i: int, j: int, /) -> Why | None: ...


def page(
    examples: Iterable[Example],
    *predicted: Sequence[Alignment] | None,
    title: str = "Alignments",
    files: Sequence[str] = (),
    why: Iterable[Explainer] | Mapping[str, Iterable[Explainer]] | None = None,
) -> str:
    """The text of a page.

    Each of `predicted`, the alignments of a system, is compared with the examples' gold alignments; without gold,
    they are compared with each other. `files` names gold and the systems in the page. `why` gives the reasons for
    the links of each pair: those of one system, or of several by their names.
    """
    examples = list(examples)
    systems = [alignments for alignments in predicted if alignments is not None]
    for alignments in systems:
        _check(examples, alignments)
    data = payload(examples, systems, files, why)
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
    examples: Sequence[Example],
    systems: Sequence[Sequence[Alignment | None]],
    files: Sequence[str] = (),
    why: Iterable[Explainer] | Mapping[str, Iterable[Explainer]] | None = None,
) -> str:
    """The data of the page, as JSON that is safe within a script element.

    Gold alone is shown as a system.
    """
    gold = bool(systems) and any(example.gold is not None for example in examples)
    names = _names(files, gold, max(len(systems), 1))
    explainers = why if isinstance(why, Mapping) else {} if why is None else {names[-1]: why}
    groups, sentences, verdicts = _Table(), _Table(), _Table()
    confident = possible = False
    pairs = []
    of_pairs = zip(*explainers.values(), strict=False) if explainers else repeat(())
    for k, (example, explains) in enumerate(zip(examples, of_pairs, strict=False)):
        alignments = [system[k] for system in systems] if systems else [example.gold]
        links: list[int] = []
        whys: list[list[list[int] | int]] = [[] for _ in explains]
        for (i, j), says in _says(example.gold if gold else None, alignments):
            probabilities = [_per_mille(one.confidence.get((i, j)) if one else None) for one in alignments]
            for name, explain, packed in zip(explainers, explains, whys, strict=True):
                because = explain(i, j)
                packed.append(_packed(because, groups, sentences, verdicts))
                own = names.index(name) - gold if name in names else 0
                if because is not None and probabilities[own] < 0:
                    probabilities[own] = _per_mille(because.probability)
            links += [i, j, says, *probabilities]
            confident = confident or max(probabilities) >= 0
            possible = possible or bool(says & _EVERY_POSSIBLE)
        source, target = example.pair.source.tokens, example.pair.target.tokens
        pairs.append([example.pair.id or 0, _words(source), _words(target), links, *whys])
    tables = {"groups": list(groups), "sentences": list(sentences), "verdicts": list(verdicts)}
    known = {"confidence": confident, "possible": possible, "explained": list(explainers)}
    return embedded({"files": names, "gold": gold, **known, **tables, "pairs": pairs})


def _names(files: Sequence[str], gold: bool, systems: int) -> list[str]:
    if systems > MOST_SYSTEMS:
        raise JacanaError(f"a page shows at most {MOST_SYSTEMS} systems, and there are {systems}")
    usual = ["predicted"] if systems == 1 else [f"system {number + 1}" for number in range(systems)]
    names = list(files) or [*(["gold"] if gold else []), *usual]
    if len(names) != systems + gold:
        raise JacanaError(f"files names {len(names)} alignments, and there are {systems + gold} to show")
    return names


def _says(gold: Alignment | None, systems: Sequence[Alignment | None]) -> list[tuple[Link, int]]:
    """The links that any alignment has, in reading order, and which have them."""
    says: dict[Link, int] = {}
    for place, alignment in enumerate([gold, *systems]):
        if alignment is not None:
            for links, bit in ((alignment.sure, _SURE), (alignment.possible, _POSSIBLE)):
                for link in links:
                    says[link] = says.get(link, 0) | bit << _BITS * place
    return sorted(says.items())


def _per_mille(probability: float | None) -> int:
    return -1 if probability is None else min(max(round(1000 * probability), 0), 1000)


def _words(tokens: Sequence[str]) -> str | list[str]:
    return " ".join(tokens) if all(tokens) and not any(" " in token for token in tokens) else list(tokens)


def _packed(why: Why | None, groups: _Table, sentences: _Table, verdicts: _Table) -> list[int] | int:
    if why is None:
        return 0
    packed = [sentences(why.sentence), verdicts(why.verdict)]
    for name, amount in why.groups:
        packed += [groups(name), round(100 * amount)]
    return packed


def embedded(value: Any) -> str:
    """JSON without anything that could end a script element, and without lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
