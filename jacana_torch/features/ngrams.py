"""How many n-grams two words share, for many pairs of words at once.

In: pairs of words. Out: shared distinct n-grams, and how many each word has. An n-gram is a number, its characters
mixed into 63 bits, so that two are the same by a chance that nobody will see. Most pairs share none, which one
comparison of bit masks tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .word_pairs import WordPairs

_WIDTH = 16  # distinct n-grams of a word that are kept; longer words are compared one by one
_HALF = 8  # most words have no more
_LONG = 40  # letters; longer words would make everybody's row long
_NONE = np.int64(-1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_AT_ONCE = 1 << 12


def shared_ngrams(pairs: WordPairs, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[U] each: shared distinct n-grams, the left word's, the right word's; in lower case. A word shorter than
    that counts as one."""
    grams = pairs.lexicon.attribute(("ngrams", n), lambda words: _table([w.lower() for w in words], n))
    mask, count, codes = grams["mask"], grams["count"], grams["codes"]
    left, right = pairs.left, pairs.right
    shared = np.zeros(len(pairs))
    ask = np.flatnonzero(mask[left] & mask[right])
    longest = np.maximum(count[left[ask]], count[right[ask]])
    for some, width in ((ask[longest <= _HALF], _HALF), (ask[longest > _HALF], _WIDTH)):
        for first in range(0, len(some), _AT_ONCE):
            u = some[first : first + _AT_ONCE]
            a, b = codes[left[u], :width], codes[right[u], :width]
            same = a[:, :, None] == np.where(b == _NONE, _NONE - 1, b)[:, None, :]
            shared[u] = np.count_nonzero(same.reshape(len(u), width * width), axis=1)
    long = ask[longest > _WIDTH]
    words = pairs.lexicon.words
    for u in long.tolist():
        shared[u] = len(_grams(words[left[u]].lower(), n) & _grams(words[right[u]].lower(), n))
    return shared, count[left].astype(np.float64), count[right].astype(np.float64)


def _grams(word: str, n: int) -> set[str]:
    return {word[i : i + n] for i in range(max(len(word) - n + 1, 1))}


_RECORD = np.dtype([("mask", np.uint64), ("count", np.int64), ("codes", np.int64, (_WIDTH,))])


def _table(words: Sequence[str], n: int) -> np.ndarray:
    """A record for each word: 64 bits that its n-grams light, how many distinct ones it has, the first of them."""
    out = np.zeros(len(words), dtype=_RECORD)
    lengths = np.array([len(w) for w in words], dtype=np.int64)
    usual = np.flatnonzero(lengths <= _LONG)
    if len(usual):
        out[usual] = _records([words[k] for k in usual.tolist()], lengths[usual], n)
    for k in np.flatnonzero(lengths > _LONG).tolist():
        out[k : k + 1] = _records([words[k]], lengths[k : k + 1], n)
    return out


def _records(words: Sequence[str], lengths: np.ndarray, n: int) -> np.ndarray:
    out = np.zeros(len(words), dtype=_RECORD)
    width = max(int(lengths.max()), n)
    letters = np.array(words, dtype=f"<U{width}").view(np.uint32).reshape(len(words), width).astype(np.uint64)
    letters += np.arange(width) < lengths[:, None]  # no letter is what stands after a word
    codes = np.zeros((len(words), width - n + 1), dtype=np.uint64)
    for k in range(n):  # a short word's only n-gram ends in zeros
        codes = (codes ^ letters[:, k : k + codes.shape[1]]) * _MIX
        codes ^= codes >> np.uint64(29)
    here = np.arange(codes.shape[1]) < np.maximum(lengths - n + 1, 1)[:, None]
    codes = np.where(here, codes & np.uint64(0x7FFFFFFFFFFFFFFF), np.uint64(1) << np.uint64(63))
    codes.sort(axis=1)  # absent ones last
    first = np.ones(codes.shape, dtype=bool)
    first[:, 1:] = codes[:, 1:] != codes[:, :-1]
    here = first & (codes < np.uint64(1) << np.uint64(63))
    bits = np.where(here, np.uint64(1) << (codes >> np.uint64(57)), np.uint64(0))
    out["mask"] = np.bitwise_or.reduce(bits, axis=1)
    out["count"] = here.sum(axis=1)
    out["codes"] = _NONE
    row, column = np.nonzero(here)
    rank = (np.cumsum(here, axis=1) - 1)[row, column]
    fits = rank < _WIDTH
    out["codes"][row[fits], rank[fits]] = codes[row[fits], column[fits]].view(np.int64)
    return out
