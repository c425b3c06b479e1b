"""Content words, and how much each weighs: the rarer a word, the more it says.

`common_words.txt` has the 10,000 most frequent words of English, most frequent first. They are those of the
vectors of GloVe 6B (public domain), which are sorted by frequency.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from ..annotate.tokens import matching_form
from ..types import Sentence

# No list of the features: what a model is measured on must not be what it reads.
STOP = frozenset(
    """a an the of in on at to for with by from as is are was were be been being and or not that which who whom
    whose it its this these those he she they them his her their i you we has have had do does did can could will
    would may might must should into than then there such""".split()
)
# Words that report, point, quantify, or are parts of contractions: they say little about what a sentence is about.
LIGHT = frozenset(
    """'s 're 've 'll 'd 'm n't ca wo cannot shall me my our your us him hers ours what where when how why
    say says said saying some any each every no all both either neither another other one""".split()
)
_RAREST = 20_000  # rank of a word that is not among the common ones


def lower(token: str) -> str:
    return matching_form(token).lower()


def content(sentence: Sentence, stop: Collection[str] = STOP | LIGHT) -> list[str | None]:
    """The tokens in lower case; None for punctuation and for words of the stop list."""
    words: list[str | None] = []
    for token in sentence.tokens:
        word = lower(token)
        words.append(word if word not in stop and any(map(str.isalnum, word)) else None)
    return words


@lru_cache(maxsize=1)
def ranks() -> Mapping[str, int]:
    """The rank of each common word by frequency, from 1."""
    text = (Path(__file__).parent / "common_words.txt").read_text(encoding="utf-8")
    return {word: rank for rank, word in enumerate(text.split(), start=1)}


def weight(word: str) -> float:
    """Return how much a word in lower case weighs, above 0 and at most 1: by the logarithm of its rank.

    >>> round(weight("the"), 2), round(weight("people"), 2), round(weight("zebra"), 2)
    (0.07, 0.46, 1.0)
    """
    return math.log(1 + ranks().get(word, _RAREST)) / math.log(1 + _RAREST)


def weights(sentence: Sentence) -> list[float]:
    """The weight of each token; 0 for those that are no content words."""
    return [0.0 if word is None else weight(word) for word in content(sentence)]
