"""Lemmas from tags: tokens and their Penn tags in, lower-case lemmas out, by WordNet's morphy.

A word that WordNet does not know, and one of a class that it does not cover, is its own lemma. What the Treebank
splits off ("n't", "'ll", "ca") is a form of a word that it does not look like, so a short list says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from .normalise import matching_form

if TYPE_CHECKING:
    from ..resources.wordnet_graph import WordNet

Words = Sequence[str]
_REMEMBERED = 1 << 14  # words with their tags

# By Penn tag (first letter of it): adverb particles (RP) are not adverbs, and modals not in WordNet.
_CLITICS = {
    ("n't", "RB"): "not",
    ("ca", "MD"): "can",
    ("wo", "MD"): "will",
    ("'ll", "MD"): "will",
    ("'d", "MD"): "would",
    ("'d", "VBD"): "have",
    ("'ve", "VBP"): "have",
    ("'ve", "VB"): "have",
    ("'m", "VBP"): "be",
    ("'re", "VBP"): "be",
    ("'s", "VBZ"): "be",
}


_POS = {"N": "n", "V": "v", "J": "a", "R": "r"}


def wordnet_pos(tag: str) -> str | None:
    """WordNet's letter for a Penn tag: n, v, a or r; None for the closed classes."""
    return None if tag == "RP" else _POS.get(tag[:1])


class Lemmatizer:
    """Remembers what it was asked; sentences come many at a time, so that WordNet is asked once for all."""

    def __init__(self, net: WordNet) -> None:
        self._net = net
        self._lemmas: dict[tuple[str, str], str] = {}

    def __call__(self, sentences: Sequence[Words], tags: Sequence[Words]) -> list[tuple[str, ...]]:
        tagged = [list(zip(words, own, strict=True)) for words, own in zip(sentences, tags, strict=True)]
        self._learn(set(chain.from_iterable(tagged)))
        return [tuple(map(self._lemmas.__getitem__, keys)) for keys in tagged]

    def _learn(self, wanted: set[tuple[str, str]]) -> None:
        if len(self._lemmas) > _REMEMBERED:
            self._lemmas.clear()
        asked: list[tuple[tuple[str, str], str, str]] = []
        for key in wanted.difference(self._lemmas):
            form, tag = matching_form(key[0]).lower(), key[1]
            pos = wordnet_pos(tag)
            self._lemmas[key] = _CLITICS.get((form, tag), form)
            if pos is not None and (form, tag) not in _CLITICS:
                asked.append((key, form, pos))
        found = self._net.morphy_all([form for _, form, _ in asked], [pos for *_, pos in asked])
        self._lemmas.update((key, base) for (key, *_), base in zip(asked, found, strict=True) if base)


@lru_cache(maxsize=2)
def _lemmatizer(net: WordNet) -> Lemmatizer:
    return Lemmatizer(net)


def lemmas(sentences: Sequence[Words], tags: Sequence[Words]) -> list[tuple[str, ...]]:
    """The lemmas of sentences with their tags. Raises MissingResource where WordNet is not on this machine."""
    from ..resources import wordnet

    return _lemmatizer(wordnet())(sentences, tags)


def lower_case(tokens: Sequence[str]) -> tuple[str, ...]:
    """What stands in for lemmas where there is no WordNet."""
    return tuple(matching_form(token).lower() for token in tokens)
