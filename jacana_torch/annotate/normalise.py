"""Normalise tokens for comparison: matching forms, and lemmas by WordNet's morphy.

Corpora spell the same word `-LRB-`, `-lrb-` or `(`, and a quote as two backticks, `“` or `"`. The tokens
themselves stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..resources.wordnet_graph import WordNet

Words = Sequence[str]

_BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
}  # fmt: skip
_WHOLE_TOKENS = {**_BRACKETS, "``": '"', "''": '"', "`": "'"}
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‘’‚‛′ʼ´＇", "'"),
        **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
        "…": "...",
        "\u00a0": " ",
        "\u202f": " ",
    }
)
# Soft hyphen, zero-width space, word joiner, byte-order mark. A zero-width joiner stays: one sees what it does.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_ESCAPED = re.compile(r"\\+(?=[/*])")  # the Penn Treebank writes 1\/2 and \*
_DASHES = re.compile(r"-+\Z")  # `-`, `--` and a dash that became `-` are the same punctuation mark

# What the Treebank splits off does not look like its lemma. The tag decides between several lemmas.
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
_WORDNET_POS = {"N": "n", "V": "v", "J": "a", "R": "r"}  # by the first letter of a Penn tag
_CACHED_LEMMAS = 1 << 14  # words with their tags


@lru_cache(maxsize=1 << 13)
def matching_form(token: str) -> str:
    """Undo Penn escapes and write typographic quotes and dashes in ASCII. Case stays; a token never becomes empty.

    >>> [matching_form(token) for token in ("-LRB-", "``", "don’t", "—", "1\\\\/2")]
    ['(', '"', "don't", '-', '1/2']
    """
    if token.isascii():
        form = token
    else:
        form = unicodedata.normalize("NFC", _INVISIBLE.sub("", token)).translate(_CHARACTERS) or token
    if form in _WHOLE_TOKENS:
        return _WHOLE_TOKENS[form]
    if _DASHES.match(form):
        return "-"
    return _ESCAPED.sub("", form) if "\\" in form else form


@lru_cache(maxsize=1 << 13)
def unescaped(token: str) -> str:
    """Write brackets and apostrophes as running text does, for taggers that were trained without escapes."""
    if token in _BRACKETS:
        return _BRACKETS[token]
    return token if token.isascii() else token.replace("’", "'")


def lower_case(tokens: Words) -> tuple[str, ...]:
    """Return the matching forms in lower case, which stand in for lemmas without WordNet."""
    return tuple(matching_form(token).lower() for token in tokens)


def wordnet_pos(tag: str) -> str | None:
    """Map a Penn tag to WordNet's part of speech: n, v, a or r. Particles and closed classes map to None."""
    return None if tag == "RP" else _WORDNET_POS.get(tag[:1])


def lemmas(sentences: Sequence[Words], tags: Sequence[Words]) -> list[tuple[str, ...]]:
    """Lemmatise tagged sentences with WordNet; lemmas are in lower case.

    A word that WordNet does not know, or whose class it does not cover, is its own lemma. Raises MissingResource
    without WordNet.
    """
    from ..resources import wordnet

    net = wordnet()
    known = _known_lemmas(net)
    if len(known) > _CACHED_LEMMAS:
        known.clear()
    tagged = list(zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True))
    new: list[tuple[str, str]] = []
    forms: list[str] = []
    letters: list[str] = []
    for key in set(tagged).difference(known):
        form, tag = matching_form(key[0]).lower(), key[1]
        known[key] = _CLITICS.get((form, tag), form)
        letter = wordnet_pos(tag)
        if letter is not None and (form, tag) not in _CLITICS:
            new.append(key)
            forms.append(form)
            letters.append(letter)
    for key, lemma in zip(new, net.morphy_all(forms, letters), strict=True):
        if lemma:
            known[key] = lemma
    found = map(known.__getitem__, tagged)
    return [tuple(islice(found, len(words))) for words in sentences]


@lru_cache(maxsize=2)
def _known_lemmas(net: WordNet) -> dict[tuple[str, str], str]:
    """The lemmas that `lemmas` has looked up in this WordNet, by token and tag."""
    return {}
