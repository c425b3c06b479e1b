"""How alike two words are, in the paper's three levels: the same, a paraphrase, neither.

In: the two sentences of many pairs as `Words`. Out: a table [M, N] of levels a pair. Whether two words are
paraphrases is asked once for all pairs, and once for words that occur several times.

The paper takes words or lemmas that are equal for the same. As in the original's code so are here words of one
stem, or of one spelling but for dots and hyphens; besides, two ways to write a number. A name that is misspelt by
a letter, or any longer word, counts as a paraphrase. Days, months and numbers that differ never do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...features.wordlists import number_value, stem, variant
from .word_tables import PROPER, Words

NEITHER, PARAPHRASE, SAME = 0, 1, 2
_SHORTEST_MISSPELT = {True: 5, False: 7}  # letters, of names and of others
_ORDINAL = re.compile(r".*(?:st|nd|rd|th)(?<!thousand)")
_SHORT_YEAR = re.compile(r"'(\d\d)")
_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)


class Key(NamedTuple):
    """All that likeness is made of."""

    form: str
    lemma: str
    tag: str
    stop: bool
    punctuation: bool


# For words left[k] and right[k] of a list of words, whether they mean the same.
Paraphrases = Callable[[Sequence[Key], np.ndarray, np.ndarray], np.ndarray]


def tables(pairs: Sequence[tuple[Words, Words]], paraphrases: Paraphrases) -> list[np.ndarray]:
    """[M, N] int8 for each pair, the level of every two words."""
    if not pairs:
        return []
    number: dict[Key, int] = {}
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


def _numbered(words: Words, number: dict[Key, int]) -> np.ndarray:
    stop, punctuation = words.stop.tolist(), words.punctuation.tolist()
    keys = map(Key, words.forms, words.lemmas, words.tags, stop, punctuation)
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def levels(keys: Sequence[Key], left: np.ndarray, right: np.ndarray, paraphrases: Paraphrases) -> np.ndarray:
    """[P] int8, the level of the words left[k] and right[k]."""
    stop, punctuation = (np.array([getattr(key, name) for key in keys], bool) for name in ("stop", "punctuation"))
    told_apart = np.array([_amount(key.form) is not None or key.form in _CALENDAR for key in keys], dtype=bool)
    alike = stop[left] == stop[right]
    same = np.zeros(len(left), dtype=bool)
    for names in _names(keys):
        ids = _ids(names)
        same |= ids[left] == ids[right]
    # Marks, numbers and days that differ mean something else, whoever pairs them.
    never = punctuation[left] | punctuation[right] | (told_apart[left] & told_apart[right])
    rest = np.flatnonzero(alike & ~same & ~never)
    found = np.where(same, SAME, NEITHER).astype(np.int8)
    meant = paraphrases(keys, left[rest], right[rest]) | misspelt(keys, left[rest], right[rest])
    found[rest[meant]] = PARAPHRASE
    return found


def _names(keys: Sequence[Key]) -> list[list[str]]:
    """What words are called: two are the same where they agree in any of these."""
    amounts = [_amount(key.form) for key in keys]
    numbers = [key.form if amount is None else amount for key, amount in zip(keys, amounts, strict=True)]
    return [
        [_plain(key.form) for key in keys],
        [key.lemma for key in keys],
        [stem(key.form) for key in keys],
        numbers,
    ]


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


def _ids(names: Sequence[str]) -> np.ndarray:
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)


def misspelt(keys: Sequence[Key], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[P] whether two words are long enough and one letter added, lost, changed or swapped with the next apart."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import cpdist

    long = np.array([len(key.form) >= _SHORTEST_MISSPELT[key.tag in PROPER] for key in keys], dtype=bool)
    found = np.zeros(len(left), dtype=bool)
    some = np.flatnonzero(long[left] & long[right]) if len(keys) else np.zeros(0, dtype=np.int64)
    if len(some):
        one, other = ([keys[k].form for k in side[some].tolist()] for side in (left, right))
        found[some] = cpdist(one, other, scorer=OSA.distance, score_cutoff=1) <= 1
    return found
