"""The words that makers put into sentences: those of training pairs by tag, and whether two words are related."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from ... import resources
from ...features.wordlists import IS_CONTENT, stem, word_class, word_classes
from ...features.words import Lexicon, WordPairs
from ...types import Example, Sentence

Kind = tuple[str, bool, str]  # tag, capitalised, class of the word
PREFIX = 4  # letters; words that share them may be forms of one word


def is_content(word: str) -> bool:
    return bool(IS_CONTENT[word_classes([word])[0]])


def kind(token: str, tag: str) -> Kind:
    """What a word that takes the token's place must have in common with it."""
    return tag, token[:1].isupper(), word_class(token)


class Vocabulary:
    """The content words of training pairs, by kind, as often as they occur."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._words: dict[Kind, list[str]] = {}
        for example in examples:
            for side in (example.pair.source, example.pair.target):
                for token, tag in zip(side.tokens, side.layer("pos"), strict=True):
                    if is_content(token):
                        self._words.setdefault(kind(token, tag), []).append(token)

    def draw(self, like: Kind, n: int, rng: random.Random) -> list[str]:
        """Return up to n words of a kind; none if there is no other."""
        words = self._words.get(like, [])
        return rng.choices(words, k=n) if words else []


def related(left: Sequence[str], right: Sequence[str], vectors: str | None, most: float) -> np.ndarray:
    """[pairs] whether two words may mean the same: by spelling, by a relation of WordNet, or by their vectors.

    Antonyms and words with a common hypernym count as unrelated; a cosine of `most` or more as related.
    """
    one, other = ([word.lower() for word in side] for side in (left, right))
    found = np.zeros(len(one), dtype=bool)
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        found[k] = a[:PREFIX] == b[:PREFIX] or stem(a) == stem(b)
    queries = [(word, None) for word in one], [(word, None) for word in other]
    for name, holds in resources.wordnet().related(*queries).items():
        if name not in ("antonym", "sister"):
            found |= holds
    return found if vectors is None else found | (cosines(one, other, vectors) >= most)


def cosines(left: Sequence[str], right: Sequence[str], vectors: str) -> np.ndarray:
    """[pairs] cosines of two words' vectors; 0 if one has none."""
    from ...features.families.distsim import raw_cosine

    words = list(dict.fromkeys([*left, *right]))
    number = dict(zip(words, range(len(words)), strict=True))
    one, other = (np.array([number[word] for word in side], np.int64) for side in (left, right))
    return raw_cosine(resources.vectors(vectors), WordPairs(Lexicon(words), one, other))


def lower_content(sentence: Sentence) -> list[str]:
    """The content words of a sentence in lower case."""
    return [token.lower() for token in sentence.tokens if is_content(token)]
