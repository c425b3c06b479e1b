"""How much of a reference's content a text expresses: the weighted share of its content words that are aligned.

The measure is asymmetric and lies between 0 and 1. A content word weighs by the logarithm of its rank among
English words (`tasks.content`). A word counts fully if the text has the same word, by the probability of its link
if it has another one for it, and not at all if that is another number, an antonym or its negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JacanaError, PairTypeError
from ..features.wordlists import FUNCTION_WORDS, NEGATIONS, number_value, stem
from ..tasks.content import lower, weights
from ..tasks.features import antonyms
from ..types import Alignment, Sentence, SentencePair
from ..version import __version__
from .document import loaded
from .splitting import sentences

if TYPE_CHECKING:
    from ..model.model import Model

SIMILAR = 5  # sentences of the other text that each sentence is compared with


@dataclass(frozen=True)
class Word:
    """A content word that has no counterpart, and its place in its text. `instead`: what contradicts it."""

    text: str
    place: tuple[int, int]
    weight: float
    instead: str = ""


@dataclass(frozen=True)
class Coverage:
    """`value`: the share of the reference's content that the text expresses; 1 if there is no content.

    `support`: the share of the text's content that the reference has. `uncovered` words are the reference's,
    `unsupported` ones the text's; `weight` is what all content words of the reference weigh.
    """

    value: float
    support: float
    uncovered: Sequence[Word]
    unsupported: Sequence[Word]
    weight: float
    model: str = ""

    @property
    def signature(self) -> str:
        """What the value means."""
        return signature(self.model, 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = {"coverage": self.value, "support": self.support}
        for name, some in (("uncovered", self.uncovered), ("unsupported", self.unsupported)):
            found[name] = [
                {"word": w.text, "place": list(w.place), "weight": round(w.weight, 4)}
                | ({"instead": w.instead} if w.instead else {})
                for w in some
            ]
        return found


@dataclass(frozen=True)
class CorpusCoverage:
    """The mean coverage of several pairs, its 95% interval over resampled pairs, and that of support.

    `weighted` counts each pair by the weight of its reference.
    """

    each: Sequence[Coverage]
    value: float
    interval: tuple[float, float]
    support: float
    support_interval: tuple[float, float]
    weighted: float
    signature: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "coverage": self.value,
            "interval": list(self.interval),
            "support": self.support,
            "support_interval": list(self.support_interval),
            "weighted": self.weighted,
            "pairs": len(self.each),
            "signature": self.signature,
        }


def coverage(reference: str, text: str, model: Model | str | None = None) -> Coverage:
    """Return how much of the reference the text expresses. `model` as for `diff`."""
    return next(iter(coverages([(reference, text)], model)))


def coverages(pairs: Iterable[tuple[str, str]], model: Model | str | None = None) -> list[Coverage]:
    """Return the coverage of each pair (reference, text)."""
    aligner, name = loaded(model)
    found = []
    for reference, text in pairs:
        if not (isinstance(reference, str) and isinstance(text, str)):
            raise PairTypeError("coverage takes two strings: a reference and a text")
        left, right = sentences(reference), sentences(text)
        covered = _covered(left, right, aligner)
        sides = []
        for some, own in ((left, covered[0]), (right, covered[1])):
            sides.append(_share(some, own))
        found.append(Coverage(sides[0][0], sides[1][0], sides[0][1], sides[1][1], sides[0][2], name))
    return found


def corpus_coverage(
    pairs: Iterable[tuple[str, str]], model: Model | str | None = None, rounds: int = 10_000, seed: int = 1
) -> CorpusCoverage:
    """Return the mean coverage of the pairs (reference, text), with its interval."""
    each = coverages(pairs, model)
    if not each:
        raise JacanaError("coverage needs at least one pair")
    if rounds < 1:
        raise JacanaError(f"rounds={rounds}: intervals need at least one round")
    if seed < 0:
        raise JacanaError(f"seed={seed}: a whole number from 0")
    values, support = np.array([c.value for c in each]), np.array([c.support for c in each])
    weight = np.array([c.weight for c in each])
    total = float(weight.sum())
    weighted = float(values @ weight / total) if total else 1.0
    random = np.random.default_rng(seed)
    intervals = []
    for some in (values, support):
        means = [some[random.integers(0, len(some), len(some))].mean() for _ in range(rounds)]
        low, high = np.quantile(means, [0.025, 0.975])
        intervals.append((float(low), float(high)))
    said = signature(each[0].model, len(each), rounds, seed)
    return CorpusCoverage(
        each, float(values.mean()), intervals[0], float(support.mean()), intervals[1], weighted, said
    )


def signature(model: str, n: int, rounds: int | None = None, seed: int | None = None) -> str:
    """What a figure means: weights, model, pairs, and how the interval was drawn."""
    drawn = "" if rounds is None else f"|rounds:{rounds}|seed:{seed}"
    return f"coverage|weight:logrank10k|avg:macro|model:{model}|n:{n}{drawn}|v:{__version__}"


Found = list[list[tuple[float, str]]]  # by sentence and token: how far it is covered, and what contradicts it


def _covered(left: Sequence[Sentence], right: Sequence[Sentence], model: Model) -> tuple[Found, Found]:
    """How far each token of either text has a counterpart in the other."""
    found = tuple([[(0.0, "")] * len(sentence) for sentence in side] for side in (left, right))
    blocks = _similar(left, right)
    pairs = [SentencePair(_bare(left[i]), _bare(right[j])) for i, j in blocks]
    for (i, j), alignment in zip(blocks, model.align_stream(pairs, batch_size=256, on_error="yield"), strict=True):
        if isinstance(alignment, Alignment):
            _add(found, (i, j), left[i], right[j], alignment)
    return found[0], found[1]


def _add(
    found: tuple[Found, ...], numbers: tuple[int, int], source: Sentence, target: Sentence, alignment: Alignment
) -> None:
    """Note what the links of two sentences cover, if that is more than what is known."""
    words = [lower(w) for w in source.tokens], [lower(w) for w in target.tokens]
    opposed = _opposed(words[0], words[1], sorted(alignment.sure))
    negated = _negated(words[0], words[1], alignment)
    for link in sorted(alignment.sure):
        one, other = words[0][link[0]], words[1][link[1]]
        value = 1.0 if stem(one) == stem(other) else alignment.confidence.get(link, 1.0)
        against = link in opposed or link in negated
        for side, place, said in ((0, link[0], target.tokens[link[1]]), (1, link[1], source.tokens[link[0]])):
            row = found[side][numbers[side]]
            if against:
                row[place] = row[place] if row[place][0] else (0.0, said)
            elif value > row[place][0]:
                row[place] = (value, "")


def _opposed(
    source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Links of different numbers, and of antonyms."""
    out, asked = set(), []
    for i, j in links:
        values = number_value(source[i]), number_value(target[j])
        if None not in values and values[0] != values[1]:
            out.add((i, j))
        elif source[i] != target[j]:
            asked.append((i, j))
    found = antonyms([(source[i], target[j]) for i, j in asked])
    return out | {link for link, is_one in zip(asked, found, strict=True) if is_one}


def _negated(source: Sequence[str], target: Sequence[str], alignment: Alignment) -> set[tuple[int, int]]:
    """Links of the first content word after a negation that the other side lacks."""
    out = set()
    has = [any(word in NEGATIONS for word in side) for side in (source, target)]
    if has[0] == has[1]:
        return set()
    side, words = (0, source) if has[0] else (1, target)
    for k, word in enumerate(words):
        if word in NEGATIONS:
            following = next((p for p in range(k + 1, len(words)) if words[p] not in FUNCTION_WORDS), None)
            out |= {link for link in alignment.sure if link[side] == following}
    return out


def _similar(left: Sequence[Sentence], right: Sequence[Sentence]) -> list[tuple[int, int]]:
    """The pairs of sentences worth aligning: for each, those of the other text that share most with it."""
    if len(left) <= SIMILAR and len(right) <= SIMILAR:
        return [(i, j) for i in range(len(left)) for j in range(len(right))]
    words = [[{stem(w): x for w, x in zip(map(lower, s.tokens), weights(s), strict=True) if x} for s in side]
             for side in (left, right)]  # fmt: skip
    table = np.zeros((len(left), len(right)))
    where: dict[str, list[int]] = {}
    for j, own in enumerate(words[1]):
        for word in own:
            where.setdefault(word, []).append(j)
    for i, own in enumerate(words[0]):
        for word, value in own.items():
            for j in where.get(word, ()):
                table[i, j] += value
    size = [np.array([max(sum(own.values()), 1e-9) for own in side]) for side in words]
    table = table / np.sqrt(size[0][:, None] * size[1])
    found: set[tuple[int, int]] = set()
    for i in range(len(left)):
        found.update((i, int(j)) for j in np.argsort(-table[i], kind="stable")[:SIMILAR])
    for j in range(len(right)):
        found.update((int(i), j) for i in np.argsort(-table[:, j], kind="stable")[:SIMILAR])
    return sorted(found)


def _share(side: Sequence[Sentence], covered: Found) -> tuple[float, list[Word], float]:
    """The covered share of a text, the content words that are not, and the weight of all."""
    total = reached = 0.0
    missing: list[Word] = []
    for sentence, own in zip(side, covered, strict=True):
        assert sentence.offsets is not None
        for k, weight in enumerate(weights(sentence)):
            total += weight
            reached += weight * own[k][0]
            if weight and own[k][0] < 0.5:
                missing.append(Word(sentence.tokens[k], sentence.offsets[k], weight, own[k][1]))
    return reached / total if total else 1.0, missing, total


def _bare(sentence: Sentence) -> Sentence:
    return Sentence(sentence.tokens)
