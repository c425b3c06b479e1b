"""Pairs of sentences of different pairs about the same topic, which mean different things."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...annotate.tokens import matching_form
from ...types import Example, Link, Sentence
from ...util.build import Count, Positive, Share
from . import made_pair
from .lexicon import is_content


@dataclass(frozen=True)
class Crossing:
    """Pair the source of a pair with the target of another one, and the other way round.

    Of `tried` pairs at random, the one is taken that shares the rarest content words, but at most the share `most`
    of the target's. Content words that both sentences have once are linked.
    """

    tried: Count = 50
    most: Share = 0.5
    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        words = [(_words(example.pair.source), _words(example.pair.target)) for example in examples]
        occurs = Counter(word for both in words for word in both[0] | both[1])
        free = list(range(len(examples)))
        rng.shuffle(free)
        while len(free) > 1:
            one = free.pop()
            others = rng.sample(free, min(self.tried, len(free)))
            worth = [self._worth(words[one], words[other], occurs, len(examples)) for other in others]
            if max(worth) < 0:
                continue
            other = others[worth.index(max(worth))]
            free.remove(other)
            for a, b in ((one, other), (other, one)):
                source, target = examples[a].pair.source, examples[b].pair.target
                yield made_pair(source.tokens, target.tokens, same_words(source, target), examples[one].group)

    def _worth(
        self, one: tuple[set[str], set[str]], other: tuple[set[str], set[str]], occurs: Counter[str], n: int
    ) -> float:
        total = 0.0
        for source, target in ((one[0], other[1]), (other[0], one[1])):
            if not target or len(source & target) > self.most * len(target):
                return -1.0
            total += sum(math.log(2 * n / occurs[word]) for word in source & target)
        return total


def _words(sentence: Sentence) -> set[str]:
    return {matching_form(token).lower() for token in sentence.tokens if is_content(token)}


def same_words(source: Sentence, target: Sentence) -> list[Link]:
    """Link the content words that both sentences have exactly once."""
    one, other = ([matching_form(token).lower() for token in side.tokens] for side in (source, target))
    links = []
    for i, word in enumerate(one):
        if is_content(source.tokens[i]) and one.count(word) == 1 == other.count(word):
            links.append((i, other.index(word)))
    return links
