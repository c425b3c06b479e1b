"""Features of an aligned pair, for models of similarity, paraphrase and entailment.

Everything comes from the two sentences and the links between them: how much of either side is aligned and how
surely, which words are not, and what speaks against the same meaning: negations, other numbers, antonyms, another
order. Tags count if the pair has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..features.wordlists import NEGATIONS, number_value, stem, word_class
from ..types import Alignment, Sentence, SentencePair
from .content import content, lower, weight

_UNSURE = frozenset(
    """may might could would should if expected plan plans likely possible alleged accused suspected
    reportedly""".split()
)
_TAGS = {"verbs": ("V",), "names": ("NNP", "NNPS"), "nouns": ("NN", "NNS"), "modifiers": ("J", "R")}
_MOST = 3  # of a count: more say no more
_STRETCH = 2  # times as long as a sentence is the part of the other that may say the same


@dataclass(frozen=True)
class Side:
    """One sentence of a pair: its words in lower case, and where each is linked to."""

    sentence: Sentence
    links: Mapping[int, list[int]]
    confidence: Mapping[int, float]  # of the best link of each linked token

    @cached_property
    def words(self) -> list[str]:
        return [lower(token) for token in self.sentence.tokens]

    @cached_property
    def is_content(self) -> list[bool]:
        return [word is not None for word in content(self.sentence)]

    @cached_property
    def weights(self) -> list[float]:
        """The weight of each token, 0 for those that are no content words."""
        return [weight(word) if has else 0.0 for word, has in zip(self.words, self.is_content, strict=True)]

    @cached_property
    def numbers(self) -> set[float]:
        return {value for word in self.words if (value := number_value(word)) is not None}

    def share(self, of: Sequence[float]) -> float:
        """The linked share of weighted tokens; 1 if none has any weight."""
        total = sum(of)
        return sum(of[k] for k in self.links) / total if total else 1.0

    @cached_property
    def unaligned(self) -> list[int]:
        return [k for k, has in enumerate(self.is_content) if has and k not in self.links]


def sides_of(pair: SentencePair, alignment: Alignment) -> tuple[Side, Side]:
    found = []
    for sentence, turn in ((pair.source, 1), (pair.target, -1)):
        links: dict[int, list[int]] = {}
        confidence: dict[int, float] = {}
        for link in sorted(alignment.sure):
            own, other = link[::turn]
            links.setdefault(own, []).append(other)
            confidence[own] = max(confidence.get(own, 0.0), alignment.confidence.get(link, 1.0))
        found.append(Side(sentence, links, confidence))
    return found[0], found[1]


def features(pair: SentencePair, alignment: Alignment) -> dict[str, float]:
    """Return the features by name; every pair has the same ones, in the same order."""
    source, target = sides_of(pair, alignment)
    found = _coverage(source, target)
    for name, side in (("source", source), ("target", target)):
        for key, value in _unaligned(side).items():
            found[f"{name} {key}"] = value
    found |= _identity(source, target) | _contradiction(source, target, alignment)
    found |= _order(source, target) | _overlap(source, target)
    for name, side, other in (("source", source, target), ("target", target, source)):
        found |= {
            f"{name} in one place": _in_one_place(side, other),
            f"{name} same names": _same_names(side, other),
        }
    found["score"] = max(-10.0, alignment.score or 0.0)
    return found


def _coverage(source: Side, target: Side) -> dict[str, float]:
    found: dict[str, float] = {}
    both = []
    for name, side in (("source", source), ("target", target)):
        own = [float(has) for has in side.is_content]
        sure = [side.confidence.get(k, 0.0) * w for k, w in enumerate(side.weights)]
        share = side.share(own)
        both.append(share)
        found |= {
            f"{name} content": share,
            f"{name} content squared": share * share,
            f"{name} complete": float(share == 1),
            f"{name} tokens": len(side.links) / max(1, len(side.words)),
            f"{name} weighted": side.share(side.weights),
            f"{name} probable": sum(sure) / sum(side.weights) if sum(side.weights) else 1.0,
            f"{name} least": min((side.confidence.get(k, 0.0) for k, has in enumerate(own) if has), default=1.0),
        }
    mean = 2 * both[0] * both[1] / (both[0] + both[1]) if sum(both) else 0.0
    return {"similarity": mean, "similarity squared": mean * mean, **found}


def _unaligned(side: Side) -> dict[str, float]:
    """Which content words are not aligned, by class and tag; how long the side is."""
    tags = side.sentence.layers.get("pos")
    classes = [word_class(side.sentence.tokens[k]) for k in side.unaligned]
    found = {
        "unaligned": float(np.log1p(len(side.unaligned))),
        "unaligned names": float(
            min(_MOST, sum(c == "name" and k > 0 for c, k in zip(classes, side.unaligned, strict=True)))
        ),
        "unaligned numbers": float(min(_MOST, classes.count("number"))),
        "negations": float(min(_MOST, sum(word in NEGATIONS for word in side.words))),
        "numbers": float(min(_MOST, len(side.numbers))),
        "unsure": float(any(word in _UNSURE for word in side.words)),
        "length": float(np.log1p(len(side.words))),
    }
    for name, kinds in _TAGS.items():
        has = [0.0] * len(side.words)
        if tags:
            exact = len(kinds[0]) > 1
            for k, tag in enumerate(tags):
                has[k] = float((tag in kinds if exact else tag[:1] in kinds) and side.is_content[k])
        found[f"{name} aligned"] = side.share(has)
        found[f"{name} unaligned"] = float(min(_MOST, sum(has[k] for k in side.unaligned)))
    return found


def _identity(source: Side, target: Side) -> dict[str, float]:
    """How many of the aligned content words are the same word, or forms of one."""
    found: dict[str, float] = {}
    for name, side, other in (("source", source, target), ("target", target, source)):
        same, form = 0, 0
        for k, linked in side.links.items():
            if side.is_content[k]:
                same += any(side.words[k] == other.words[o] for o in linked)
                form += any(stem(side.words[k]) == stem(other.words[o]) for o in linked)
        total = max(1, sum(side.is_content))
        found |= {f"{name} identical": same / total, f"{name} same stem": form / total}
    return found


def _contradiction(source: Side, target: Side, alignment: Alignment) -> dict[str, float]:
    other_number = opposite = 0
    asked = []
    for i, j in sorted(alignment.sure):
        one, other = source.words[i], target.words[j]
        if one != other:
            values = number_value(one), number_value(other)
            other_number += None not in values and values[0] != values[1]
            if source.is_content[i] and target.is_content[j]:
                asked.append((one, other))
    opposite = sum(antonyms(asked))
    negated = [any(word in NEGATIONS for word in side.words) for side in (source, target)]
    return {
        "negated once": float(negated[0] != negated[1]),
        "negation unaligned": float(
            sum(side.words[k] in NEGATIONS and k not in side.links for side in (source, target)
                for k in range(len(side.words)))
        ),
        "other numbers linked": float(min(_MOST, other_number)),
        "numbers of target alone": float(min(_MOST, len(target.numbers - source.numbers))),
        "numbers of source alone": float(min(_MOST, len(source.numbers - target.numbers))),
        "same numbers": float(source.numbers == target.numbers),
        "numbers of one in the other": float(source.numbers <= target.numbers or target.numbers <= source.numbers),
        "antonyms": float(min(_MOST, opposite)),
    }  # fmt: skip


def antonyms(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Whether WordNet has the two words as antonyms, in any sense; without WordNet, none are."""
    from .. import resources

    if not pairs or not resources.available("wordnet"):
        return [False] * len(pairs)
    left, right = zip(*pairs, strict=True)
    related = resources.wordnet().related([(w, None) for w in left], [(w, None) for w in right], depth=1)
    return [bool(found) for found in related["antonym"]]


def _order(source: Side, target: Side) -> dict[str, float]:
    """Whether linked words come in the same order, next to each other, and in one part of the source."""
    places = [min(target.links[j]) for j in sorted(target.links)]
    steps = list(zip(places, places[1:], strict=False))
    joined = 0
    for j in range(len(target.words) - 1):
        if j in target.links and j + 1 in target.links:
            joined += any(i + 1 in target.links[j + 1] for i in target.links[j])
    span = max(places) - min(places) + 1 if places else len(source.words)
    return {
        "forward steps": sum(b > a for a, b in steps) / len(steps) if steps else 1.0,
        "single steps": sum(b == a + 1 for a, b in steps) / len(steps) if steps else 1.0,
        "aligned bigrams": joined / max(1, len(target.words) - 1),
        "span": min(10.0, span / max(1, len(target.words))),
        "density": len(set(places)) / max(1, span),
    }


def _in_one_place(side: Side, other: Side) -> float:
    """The largest share of the side, by weight, that is linked into one stretch of the other sentence.

    A long text may have all words of a short one, and say nothing of the kind in any one place.
    """
    total, length = sum(side.weights), _STRETCH * len(side.words)
    if not total:
        return 1.0
    reached = np.zeros(len(other.words) + 1)  # by the stretch that begins at each word
    for k, linked in side.links.items():
        inside = np.zeros(len(reached), dtype=bool)
        for place in linked:
            inside[max(0, place - length + 1) : place + 1] = True
        reached += side.weights[k] * inside
    return float(reached.max()) / total


def _same_names(side: Side, other: Side) -> float:
    """The share of capitalised content words, but for the first word, that the other sentence has as well."""
    names = [
        word in other.words
        for word, token, has in list(zip(side.words, side.sentence.tokens, side.is_content, strict=True))[1:]
        if has and token[:1].isupper()
    ]
    return sum(names) / len(names) if names else 1.0


def _overlap(source: Side, target: Side) -> dict[str, float]:
    """N-grams of words and letters in both sentences, as shares of either."""
    found: dict[str, float] = {}
    for unit, sides, sizes in (
        ("words", (source.words, target.words), (1, 2, 3, 4)),
        ("letters", (" ".join(source.words), " ".join(target.words)), (3, 4, 5)),
    ):
        for n in sizes:
            one, other = ({tuple(side[k : k + n]) for k in range(len(side) - n + 1)} for side in sides)
            both = len(one & other)
            found |= {
                f"{n} {unit} of source": both / max(1, len(one)),
                f"{n} {unit} of target": both / max(1, len(other)),
                f"{n} {unit} of both": 2 * both / max(1, len(one) + len(other)),
            }
    ratio = float(np.log((len(target.words) + 1) / (len(source.words) + 1)))
    return found | {"length ratio": ratio, "length difference": abs(ratio)}


def matrix(pairs: Sequence[SentencePair], alignments: Sequence[Alignment]) -> tuple[np.ndarray, list[str]]:
    """[pairs, features] and the names of the features."""
    rows = [features(pair, alignment) for pair, alignment in zip(pairs, alignments, strict=True)]
    if not rows:
        nothing = Sentence(())
        return np.zeros((0, len(features(SentencePair(nothing, nothing), Alignment(0, 0))))), []
    return np.array([list(row.values()) for row in rows]), list(rows[0])
