"""How similar two words are, in the paper's three levels: the same, a paraphrase, or neither.

The paper takes words with equal forms or lemmas for the same. Here, as in the original's code, so are words with
one stem, or spelt alike except for dots and hyphens; also two ways to write a number. A name that is misspelt by
one letter, or any longer word, counts as a paraphrase. Days, months and numbers that differ never do.

Paraphrases come from PPDB, as in the paper, or else from WordNet and word vectors.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...annotate.tokens import wordnet_pos
from ...features.wordlists import number_value, stem, variant
from .parsed_sentence import PROPER, ParsedSentence

log = logging.getLogger(__name__)

NEITHER, PARAPHRASE, SAME = 0, 1, 2
_SHORTEST_MISSPELT = {True: 5, False: 7}  # letters, of names and of other words
_ORDINAL = re.compile(r".*(?:st|nd|rd|th)(?<!thousand)")
_SHORT_YEAR = re.compile(r"'(\d\d)")
_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)
PPDB, VECTORS = "mwa-ppdb", "glove-840b"
RESOURCES = MappingProxyType({"ppdb": (PPDB,), "wordnet": (VECTORS, "wordnet"), "none": ()})
SOURCES = ("auto", *RESOURCES)
# WordNet relations that count as paraphrases, and the least cosine of vectors that does: chosen on MSR's dev set.
RELATIONS = ("synonym", "derived", "pertainym", "similar", "hypernym", "hyponym")
CLOSE = 0.7


class WordType(NamedTuple):
    """All that the similarity of two words depends on."""

    form: str
    lemma: str
    tag: str
    stop: bool
    punctuation: bool


# Whether the words left[k] and right[k] of a list mean the same.
Paraphrases = Callable[[Sequence[WordType], np.ndarray, np.ndarray], np.ndarray]


def similarity_tables(
    pairs: Sequence[tuple[ParsedSentence, ParsedSentence]], paraphrases: Paraphrases
) -> list[np.ndarray]:
    """Return the level of similarity of every two words: an int8 array [M, N] for each pair of sentences.

    Distinct word pairs are looked up once.
    """
    if not pairs:
        return []
    number: dict[WordType, int] = {}
    sides = [[_numbered(side, number) for side in pair] for pair in pairs]
    size = max(len(number), 1)
    codes = [(source[:, None] * size + target).ravel() for source, target in sides]
    distinct, where = np.unique(np.concatenate(codes), return_inverse=True)
    found = levels(list(number), distinct // size, distinct % size, paraphrases)[where]
    ends = np.cumsum([len(code) for code in codes])[:-1]
    return [
        level.reshape(len(source), len(target))
        for level, (source, target) in zip(np.split(found, ends), sides, strict=True)
    ]


def _numbered(words: ParsedSentence, number: dict[WordType, int]) -> np.ndarray:
    stop, punctuation = words.stop.tolist(), words.punctuation.tolist()
    types = map(WordType, words.forms, words.lemmas, words.tags, stop, punctuation)
    return np.array([number.setdefault(word, len(number)) for word in types], dtype=np.int64)


def levels(words: Sequence[WordType], left: np.ndarray, right: np.ndarray, paraphrases: Paraphrases) -> np.ndarray:
    """[P] int8, the level of the words left[k] and right[k]."""
    stop = np.array([word.stop for word in words], dtype=bool)
    punctuation = np.array([word.punctuation for word in words], dtype=bool)
    amounts = [_amount(word.form) for word in words]
    exact = [a is not None or word.form in _CALENDAR for a, word in zip(amounts, words, strict=True)]
    distinctive = np.array(exact, dtype=bool)
    same = np.zeros(len(left), dtype=bool)
    for names in (
        [_plain(word.form) for word in words],
        [word.lemma for word in words],
        [stem(word.form) for word in words],
        [word.form if amount is None else amount for word, amount in zip(words, amounts, strict=True)],
    ):
        number: dict[str, int] = {}
        ids = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
        same |= ids[left] == ids[right]
    # Punctuation, numbers and days that differ mean something else, whatever the source of paraphrases holds.
    never = punctuation[left] | punctuation[right] | (distinctive[left] & distinctive[right])
    rest = np.flatnonzero((stop[left] == stop[right]) & ~same & ~never)
    found = np.where(same, SAME, NEITHER).astype(np.int8)
    meant = paraphrases(words, left[rest], right[rest]) | misspelt(words, left[rest], right[rest])
    found[rest[meant]] = PARAPHRASE
    return found


def _amount(form: str) -> str | None:
    """A name for the number that a word is, however written: `1,000`, `two`, `2`, `'98`; `third` is another."""
    short = _SHORT_YEAR.fullmatch(form)
    if short:
        form = ("19" if short[1] >= "30" else "20") + short[1]
    value = number_value(form)
    if value is None:
        return None
    return f"{'ordinal' if _ORDINAL.fullmatch(form) else 'number'} {value}"


def _plain(form: str) -> str:
    """One spelling for `U.S.` and `US`, `e-mail` and `email`, `1,000` and `1000`."""
    if any(c.isdigit() for c in form):
        return form.replace(",", "")
    return variant(form.replace("-", "").replace(",", "") or form)


def misspelt(words: Sequence[WordType], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[P] whether two words are long enough and one edit apart: a letter added, lost, changed or swapped."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import cpdist

    long = np.array([len(word.form) >= _SHORTEST_MISSPELT[word.tag in PROPER] for word in words], dtype=bool)
    found = np.zeros(len(left), dtype=bool)
    some = np.flatnonzero(long[left] & long[right]) if len(words) else np.zeros(0, dtype=np.int64)
    if len(some):
        one, other = ([words[k].form for k in side[some].tolist()] for side in (left, right))
        found[some] = cpdist(one, other, scorer=OSA.distance, score_cutoff=1) <= 1
    return found


# Paraphrases


def available_source(source: str) -> str:
    """What `auto` stands for on this machine. A path in JACANA_PPDB is always used, so that errors in it show."""
    from ...resources import available

    if source != "auto":
        return source
    return "ppdb" if available(PPDB) or os.environ.get("JACANA_PPDB") else "wordnet"


def paraphrase_function(source: str) -> Paraphrases:
    return {"ppdb": in_ppdb, "wordnet": in_wordnet, "none": nowhere}[source]


def in_ppdb(words: Sequence[WordType], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether PPDB pairs the two forms or the two lemmas."""
    from ...resources import ppdb

    found = np.zeros(len(left), dtype=bool)
    for names in ([word.form for word in words], [word.lemma for word in words]):
        found |= ppdb().contains([names[k] for k in left.tolist()], [names[k] for k in right.tolist()])
    return found


def in_wordnet(words: Sequence[WordType], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether WordNet relates the two lemmas, or the two forms' vectors are close; of content words alone."""
    from ...resources import vectors, wordnet

    found = np.zeros(len(left), dtype=bool)
    stop = np.array([word.stop for word in words], dtype=bool)
    some = np.flatnonzero(~stop[left]) if len(words) else np.zeros(0, dtype=np.int64)
    if not len(some):
        return found
    one, other = left[some], right[some]
    lemmas = [(word.lemma, wordnet_pos(word.tag)) for word in words]
    related = wordnet().related([lemmas[k] for k in one.tolist()], [lemmas[k] for k in other.tolist()])
    embedded = vectors(VECTORS)
    rows = embedded.rows(embedded.lookup([word.form for word in words]))
    found[some] = np.logical_or.reduce([related[name] for name in RELATIONS])
    found[some] |= np.einsum("kd,kd->k", rows[one], rows[other]) >= CLOSE
    return found


def nowhere(words: Sequence[WordType], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """No paraphrases."""
    return np.zeros(len(left), dtype=bool)
