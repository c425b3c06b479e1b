"""Lemmas from tags: tokens and their Penn tags in, lower-case lemmas out, by WordNet's morphy.

A word that WordNet does not know, and one of a class that it does not cover, is its own lemma. What the Treebank
splits off ("n't", "'ll", "ca") is a form of a word that it does not look like, so a short list says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .normalise import matching_form

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


def wordnet_pos(tag: str) -> str | None:
    """WordNet's letter for a Penn tag: n, v, a or r; None for the closed classes."""
    if tag == "RP":
        return None
    return {"N": "n", "V": "v", "J": "a", "R": "r"}.get(tag[:1])


@lru_cache(maxsize=1 << 17)
def lemma(token: str, tag: str) -> str:
    """The lemma of one token with its tag. Raises MissingResource where WordNet is not on this machine."""
    form = matching_form(token).lower()
    if (form, tag) in _CLITICS:
        return _CLITICS[form, tag]
    pos = wordnet_pos(tag)
    if pos is None:
        return form
    from ..resources import wordnet

    return wordnet().morphy(form, pos) or form


def lemmas(tokens: Sequence[str], tags: Sequence[str]) -> tuple[str, ...]:
    """The lemmas of a sentence."""
    return tuple(map(lemma, tokens, tags))


def lower_case(tokens: Sequence[str]) -> tuple[str, ...]:
    """What stands in for lemmas where there is no WordNet."""
    return tuple(matching_form(token).lower() for token in tokens)
