"""Pairs of WordNet's glosses that share a frame: two definitions that begin alike, or two uses of a word.

What they have in common in the same order is linked: the beginning, and other words beside content words that are
common. The rest means different things.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...annotate.tokens import matching_form, tokenize
from ...errors import ConfigError
from ...features.wordlists import word_class
from ...resources.wordnet_glosses import glosses
from ...types import Example, Link
from ...util.build import Count, Positive, Share
from . import made_pair

BEGINNING = 3  # words that definitions share
KEPT_OUT = 5  # one in so many beginnings is never trained on, and measures what was learnt from the others
MOST_OF_A_FRAME = 50  # glosses that a common beginning counts for at most
FUNCTION = 0.3  # of a function word that two sentences share, where a content word counts 1


@dataclass(frozen=True)
class Glosses:
    """Make `share` times as many pairs as there are training pairs, of definitions of at most `longest` words.

    The share `uses` of them are examples of two uses of a word instead, where that word alone must be common.
    """

    share: Positive = 0.5
    longest: Count = 14
    uses: Share = 0.0
    weight: Positive = 1.0
    requires: tuple[str, ...] = ()
    resources: tuple[str, ...] = ("wordnet",)

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        count = round(self.share * len(examples))
        n_uses = round(self.uses * count)
        yield from drawn(frames(self.longest), count - n_uses, rng)
        yield from drawn(two_uses(self.longest), n_uses, rng)


def drawn(groups: Sequence[tuple[str, Sequence[str]]], n: int, rng: random.Random) -> Iterator[Example]:
    """Draw n pairs of sentences of the same group: a larger group is drawn from more often."""
    if not n:
        return
    if not groups:
        raise ConfigError("WordNet has no glosses that make pairs: raise data.augment.makers.glosses.longest")
    sizes = [min(len(texts), MOST_OF_A_FRAME) for _, texts in groups]
    for name, texts in rng.choices(groups, sizes, k=n):
        source, target = map(tokenize, rng.sample(texts, 2))
        yield made_pair(source, target, common_links(source, target), f"gloss {name}")


@lru_cache(maxsize=4)
def frames(longest: int, kept_out: bool = False) -> list[tuple[str, tuple[str, ...]]]:
    """The beginnings that several definitions share, and these; with `kept_out`, those that no pair is made of."""
    groups: dict[str, dict[str, None]] = {}
    for gloss in glosses():
        words = gloss.definition.split()
        if BEGINNING < len(words) <= longest:
            groups.setdefault(" ".join(words[:BEGINNING]), {})[gloss.definition] = None
    found = []
    for name, texts in sorted(groups.items()):
        if len(texts) > 1 and (zlib.crc32(name.encode()) % KEPT_OUT == 0) == kept_out:
            found.append((name, tuple(sorted(texts))))
    return found


@lru_cache(maxsize=4)
def two_uses(longest: int) -> list[tuple[str, tuple[str, ...]]]:
    """The words with several example sentences, and these."""
    groups: dict[str, dict[str, None]] = {}
    for gloss in glosses():
        for text in gloss.examples:
            tokens = set(map(str.lower, tokenize(text)))
            for word in tokens.intersection(gloss.words) if len(tokens) <= longest else ():
                groups.setdefault(word, {})[text] = None
    return [(word, tuple(sorted(texts))) for word, texts in sorted(groups.items()) if len(texts) > 1]


def common_links(source: Sequence[str], target: Sequence[str]) -> list[Link]:
    """Link the same words in the same order: as many as possible, content words rather than function words.

    A run of links is kept if it begins or ends both sentences, or has a content word.
    """
    one, other = ([matching_form(token).lower() for token in side] for side in (source, target))
    content = [word_class(token) in ("number", "name", "content") for token in source]
    best = np.zeros((len(one) + 1, len(other) + 1))
    for i in range(len(one) - 1, -1, -1):
        for j in range(len(other) - 1, -1, -1):
            best[i, j] = max(best[i + 1, j], best[i, j + 1])
            if one[i] == other[j]:
                best[i, j] = max(best[i, j], best[i + 1, j + 1] + (1 if content[i] else FUNCTION))
    runs, i, j = list[list[Link]](), 0, 0
    while i < len(one) and j < len(other):
        if best[i, j] == best[i + 1, j]:
            i += 1
        elif best[i, j] == best[i, j + 1]:
            j += 1
        else:
            if not runs or runs[-1][-1] != (i - 1, j - 1):
                runs.append([])
            runs[-1].append((i, j))
            i, j = i + 1, j + 1
    links = []
    for run in runs:
        at_end = run[0] == (0, 0) or run[-1] == (len(one) - 1, len(other) - 1)
        if at_end or any(content[i] for i, _ in run):
            links += run
    return links
