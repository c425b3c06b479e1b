"""Pairs with one side edited: phrases inserted and deleted, words exchanged, negations added.

The links of what stays are those of the pair; what comes or goes has none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...features.wordlists import FUNCTION_KINDS, NEGATIONS, word_class
from ...types import Example, Link, Sentence
from ...util.build import Count, Positive, Share
from . import sides, with_side

SHORTEST = 6  # tokens of a side that loses or gets a phrase
SHARE_OF_SIDE = 3  # a phrase is at most one third of it


@dataclass(frozen=True)
class Phrases:
    """Insert a phrase of another sentence into one side, or delete one from it.

    Phrases have at most `longest` tokens and no punctuation, and inserted ones no content word of the other side.
    """

    longest: Count = 5
    insertions: Share = 0.5
    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        for example in examples:
            side = rng.randrange(2)
            tokens = sides(example)[side].tokens
            if len(tokens) < SHORTEST:
                continue
            length = rng.randint(1, min(self.longest, len(tokens) // SHARE_OF_SIDE))
            if rng.random() >= self.insertions:
                at = rng.randrange(len(tokens) - length + 1)
                yield _spliced(example, side, at, length, ())
                continue
            donor = sides(rng.choice(examples))[rng.randrange(2)].tokens
            first = rng.randrange(max(len(donor) - length, 0) + 1)
            phrase = donor[first : first + length]
            if not _shares_words(phrase, sides(example)[1 - side]):
                yield _spliced(example, side, rng.randrange(len(tokens) + 1), 0, phrase)


@dataclass(frozen=True)
class Exchange:
    """Exchange two names or two numbers of one side. Links follow the words."""

    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        for example in examples:
            side = rng.randrange(2)
            tokens = list(sides(example)[side].tokens)
            places: dict[str, list[int]] = {"name": [], "number": []}
            for k, token in enumerate(tokens):
                places.setdefault(word_class(token), []).append(k)
            able = [own for own in (places["name"], places["number"]) if len({tokens[k] for k in own}) > 1]
            if not able:
                continue
            one, other = rng.sample(rng.choice(able), 2)
            if tokens[one] == tokens[other]:
                continue
            tokens[one], tokens[other] = tokens[other], tokens[one]
            moved = {one: other, other: one}
            assert example.gold is not None
            links = [_at(link, side, moved.get(link[side], link[side])) for link in example.gold.sure]
            yield with_side(example, side, tokens, links)


@dataclass(frozen=True)
class Negation:
    """Put `not` behind an auxiliary of one side, or take a negation out."""

    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        for example in examples:
            side = rng.randrange(2)
            tokens = list(map(str.lower, sides(example)[side].tokens))
            negations = [k for k, token in enumerate(tokens) if token in ("not", "n't", "never")]
            auxiliaries = [k for k, token in enumerate(tokens) if token in FUNCTION_KINDS["auxiliary"] - NEGATIONS]
            if negations:
                yield _spliced(example, side, rng.choice(negations), 1, ())
            elif auxiliaries:
                yield _spliced(example, side, rng.choice(auxiliaries) + 1, 0, ("not",))


def _shares_words(phrase: Sequence[str], other: Sentence) -> bool:
    """Whether a phrase has punctuation, or content words of the other sentence."""
    there = set(map(str.lower, other.tokens))
    for token in phrase:
        kind = word_class(token)
        if kind == "punct" or (kind != "function" and token.lower() in there):
            return True
    return False


def _spliced(example: Example, side: int, at: int, removed: int, inserted: Sequence[str]) -> Example:
    """Return the example with tokens of one side removed, and others inserted in their place."""
    tokens = sides(example)[side].tokens
    assert example.gold is not None
    links = []
    for link in example.gold.sure:
        if link[side] < at:
            links.append(link)
        elif link[side] >= at + removed:
            links.append(_at(link, side, link[side] - removed + len(inserted)))
    return with_side(example, side, [*tokens[:at], *inserted, *tokens[at + removed :]], links)


def _at(link: Link, side: int, place: int) -> Link:
    return (place, link[1]) if side == 0 else (link[0], place)
