"""Spelling similarity of word pairs: identity, stems, shared n-grams and the usual string measures.

Each function takes the U distinct word pairs of some sentences and returns an array over them. Words are compared
in lower case. The result does not depend on the order of the two words, so both alignment directions share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, wraps
from operator import itemgetter
from typing import Any

import numpy as np

from ..annotate.tokens import matching_form
from .wordlists import stem, variant
from .words import Signal, WordKey, WordPairs

FORM = WordKey(matching_form)  # the word as features compare it: PTB escapes and typographic variants undone
MEASURES = (
    "jaro_winkler", "dice", "hamming", "jaccard", "levenshtein", "ngram3", "ngram4", "prefix", "suffix",
)  # fmt: skip
SAME = 2.0
_LONG = 40  # letters; longer words would widen the rows of all others
_HYPHEN = re.compile(".-.", re.DOTALL)  # inside a word
_FIRST, _LAST = itemgetter(slice(None, 1)), itemgetter(slice(-1, None))

OfPairs = Callable[[WordPairs], np.ndarray]


def of_lower_case(
    function: Callable[[str], Any], words: Sequence[Any], dtype: type | None = None, part: int | None = None
) -> list[Any] | np.ndarray:
    """[W] `function` of each word in lower case, or of one `part` of words that are tuples.

    As an array if a dtype is given; with `partial`, of a lexicon.
    """
    values = list(map(function, map(str.lower, words if part is None else map(itemgetter(part), words))))
    return values if dtype is None else np.array(values, dtype=dtype)


def computed_once(compute: OfPairs) -> OfPairs:
    """Keep the result with the word pairs, for other families and for the other alignment direction."""

    @wraps(compute)
    def kept(pairs: WordPairs) -> np.ndarray:
        return pairs.shared(compute, partial(compute, pairs))

    return kept


# Identity and similarity in one number


def identical(pairs: WordPairs) -> np.ndarray:
    """[U] whether the words are identical, ignoring case."""
    return pairs.equal("lower", partial(of_lower_case, str))


@computed_once
def same_word(pairs: WordPairs) -> np.ndarray:
    """[U] Algorithm 1's "identical ignoring case": equal stems, a stem that begins the other, hyphenated parts."""
    words, left, right = pairs.lexicon.words, pairs.left, pairs.right
    same = pairs.equal("stem", partial(of_lower_case, stem))
    stems = pairs.lexicon.attribute("stem", partial(of_lower_case, stem, dtype=object))
    may_begin = ~same & pairs.equal("stem.start", partial(of_lower_case, _start_of_stem))
    for u in np.flatnonzero(may_begin).tolist():  # few
        a, b = stems[left[u]], stems[right[u]]
        same[u] = a.startswith(b) or b.startswith(a)
    hyphenated = pairs.lexicon.attribute("hyphen", partial(of_lower_case, _HYPHEN.search, dtype=bool))
    for u in np.flatnonzero(~same & (hyphenated[left] | hyphenated[right])).tolist():
        # A part of a hyphenated word against a word, or part by part.
        one, other = words[left[u]].lower().split("-"), words[right[u]].lower().split("-")
        if len(one) > 1 and len(other) > 1:
            alike = [bool(a and b) and stem(a) == stem(b) for a, b in zip(one, other, strict=False)]
            same[u] = all(alike)
            continue
        parts, whole = (one, other[0]) if len(one) > 1 else (other, one[0])
        for part in filter(None, parts):
            same[u] |= stem(part) == stem(whole)
    return same


def _start_of_stem(lower: str) -> str | None:
    """The first three letters of the stem; no shorter stem begins another."""
    start = stem(lower)[:3]
    return start if len(start) == 3 else None


@computed_once
def base_of(pairs: WordPairs) -> np.ndarray:
    """[U] similarity in 0..1: 1 identical, 0.95 a variant, 0.9 the same stem; else 0.7 * Jaro-Winkler above 0.85.

    Families that look at neighbours or competitors use it.
    """
    spelling = jaro_winkler(pairs)
    score = np.where(spelling > 0.85, 0.7 * spelling, 0.0)
    score = np.where(same_word(pairs), 0.9, score)
    score = np.where(pairs.equal("variant", partial(of_lower_case, variant)), 0.95, score)
    return np.where(identical(pairs), 1.0, score)


def best_of(pairs: WordPairs) -> np.ndarray:
    """[U] the largest of the MEASURES; SAME, which is more than 1, for the same word."""
    return np.where(same_word(pairs), SAME, similarities(pairs).max(axis=1, initial=0.0))


base_similarity = Signal("string.base", FORM, base_of)
best_measure = Signal("string.best", FORM, best_of)


# String measures


@computed_once
def similarities(pairs: WordPairs) -> np.ndarray:
    """[U, 9] the MEASURES of each pair, all between 0 and 1.

    Jaro is symmetric too: the leftmost free match in a window of the longer word's length is the same either way.
    """
    from rapidfuzz.distance import Hamming, Levenshtein, Postfix, Prefix

    shared2, a2, b2 = shared_ngrams(pairs, 2)
    shared3, a3, b3 = shared_ngrams(pairs, 3)
    shared4, a4, b4 = shared_ngrams(pairs, 4)
    same_first, same_last = (
        pairs.equal("first", partial(of_lower_case, _FIRST)),
        pairs.equal("last", partial(of_lower_case, _LAST)),
    )
    columns = (
        jaro_winkler(pairs),
        2 * shared2 / (a2 + b2),
        _scored(pairs, Hamming.normalized_similarity, _common_letter(pairs)),
        shared2 / (a2 + b2 - shared2),
        _scored(pairs, Levenshtein.normalized_similarity, _common_letter(pairs)),
        shared3 / np.minimum(a3, b3),
        shared4 / np.minimum(a4, b4),
        _scored(pairs, Prefix.normalized_similarity, np.flatnonzero(same_first)),
        _scored(pairs, Postfix.normalized_similarity, np.flatnonzero(same_last)),
    )
    return np.asarray(np.array(columns).T)


@computed_once
def jaro_winkler(pairs: WordPairs) -> np.ndarray:
    """[U] the Jaro-Winkler similarity."""
    from rapidfuzz.distance import JaroWinkler

    return _scored(pairs, JaroWinkler.normalized_similarity, _common_letter(pairs))


def _scored(pairs: WordPairs, scorer: Callable[..., Any], rows: np.ndarray) -> np.ndarray:
    """[U] rapidfuzz's scores of the pairs `rows`; 0 for the others."""
    from rapidfuzz.process import cpdist

    lower = pairs.lexicon.attribute("lower", partial(of_lower_case, str, dtype=object))
    left, right = lower[pairs.left[rows]].tolist(), lower[pairs.right[rows]].tolist()
    out = np.zeros(len(pairs))
    out[rows] = cpdist(left, right, scorer=scorer, dtype=np.float32)
    return out


@computed_once
def _common_letter(pairs: WordPairs) -> np.ndarray:
    """The pairs that may share a letter, fewer than half: every measure is 0 for the others."""
    letters = pairs.lexicon.attribute("letters", _letters)
    return np.flatnonzero(letters[pairs.left] & letters[pairs.right])


def _letters(words: Sequence[str]) -> np.ndarray:
    """[W] 64 bits that the letters of a word set; those of a large alphabet share bits."""
    lower = list(map(str.lower, words))
    length = np.array(list(map(len, lower)), dtype=np.int64)
    letters = np.array(lower, dtype=f"<U{_LONG}").view(np.uint32).reshape(-1, _LONG)
    bits = np.uint64(1) << (letters & np.uint32(63)).astype(np.uint64)
    bits[np.arange(_LONG) >= length[:, None]] = 0
    return np.where(length > _LONG, ~np.uint64(0), np.asarray(np.bitwise_or.reduce(bits, axis=1)))


# Shared n-grams. An n-gram is a number: its characters hashed into 63 bits. Most pairs share no n-gram, which one
# comparison of bit masks shows.

_WIDTH = 16  # distinct n-grams that are kept of a word; words with more are compared as sets
_HALF = 8  # most words have no more
_ABSENT = np.int64(-1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_PAIRS_AT_ONCE = 1 << 12
_RECORD = np.dtype([("mask", np.uint64), ("count", np.int64), ("codes", np.int64, (_WIDTH,))])


def shared_ngrams(pairs: WordPairs, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[U] each: shared distinct n-grams, the left word's, the right word's.

    A word of fewer than n letters is one n-gram.
    """
    grams = pairs.lexicon.attribute(("ngrams", n), partial(_ngram_records, n=n))
    mask, count, codes = grams["mask"], grams["count"], grams["codes"]
    left, right = pairs.left, pairs.right
    shared = np.zeros(len(pairs))
    rows = np.flatnonzero(mask[left] & mask[right])
    longest = np.maximum(count[left[rows]], count[right[rows]])
    for some, width in ((rows[longest <= _HALF], _HALF), (rows[longest > _HALF], _WIDTH)):
        for first in range(0, len(some), _PAIRS_AT_ONCE):
            u = some[first : first + _PAIRS_AT_ONCE]
            a, b = codes[left[u], :width], codes[right[u], :width]
            same = a[:, :, None] == np.where(b == _ABSENT, _ABSENT - 1, b)[:, None, :]
            shared[u] = np.count_nonzero(same.reshape(len(u), width * width), axis=1)
    words = pairs.lexicon.words
    for u in rows[longest > _WIDTH].tolist():
        shared[u] = len(_ngram_set(words[left[u]].lower(), n) & _ngram_set(words[right[u]].lower(), n))
    return shared, count[left].astype(np.float64), count[right].astype(np.float64)


def _ngram_set(word: str, n: int) -> set[str]:
    return {word[i : i + n] for i in range(max(len(word) - n + 1, 1))}


def _ngram_records(words: Sequence[str], n: int) -> np.ndarray:
    """[W] of each word: 64 bits that its n-grams set, the number of distinct ones, the first of them."""
    out = np.zeros(len(words), dtype=_RECORD)
    words = list(map(str.lower, words))
    lengths = np.array(list(map(len, words)), dtype=np.int64)
    long = lengths > _LONG
    if long.any() and len(words) > 1:
        for some in (np.flatnonzero(~long), *np.flatnonzero(long)[:, None]):  # each long word by itself
            out[some] = _ngram_records([words[k] for k in some.tolist()], n)
        return out
    width = max(int(lengths.max(initial=0)), n)
    letters = np.array(words, dtype=f"<U{width}").view(np.uint32).reshape(len(words), width).astype(np.uint64)
    letters += np.arange(width) < lengths[:, None]  # 0 stands for no letter
    codes = np.zeros((len(words), width - n + 1), dtype=np.uint64)
    for k in range(n):  # a short word's only n-gram ends in zeros
        codes = (codes ^ letters[:, k : k + codes.shape[1]]) * _MIX
        codes ^= codes >> np.uint64(29)
    present = np.arange(codes.shape[1]) < np.maximum(lengths - n + 1, 1)[:, None]
    codes = np.where(present, codes & np.uint64(0x7FFFFFFFFFFFFFFF), np.uint64(1) << np.uint64(63))
    codes.sort(axis=1)  # absent ones last
    present = codes < np.uint64(1) << np.uint64(63)
    present[:, 1:] &= codes[:, 1:] != codes[:, :-1]
    bits = np.where(present, np.uint64(1) << (codes >> np.uint64(57)), np.uint64(0))
    out["mask"] = np.bitwise_or.reduce(bits, axis=1)
    out["count"] = present.sum(axis=1)
    out["codes"] = _ABSENT
    row, column = np.nonzero(present)
    rank = (np.cumsum(present, axis=1) - 1)[row, column]
    fits = rank < _WIDTH
    out["codes"][row[fits], rank[fits]] = codes[row[fits], column[fits]].view(np.int64)
    return out
