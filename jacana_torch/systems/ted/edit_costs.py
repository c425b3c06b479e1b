"""Which words of many pairs count as the same node: equal forms or lemmas, or one sense in WordNet.

In: pairs. Out: `Words`, which say of any source token and any target token, numbered through, how alike they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ...annotate.normalise import matching_form, wordnet_pos
from ...types import Sentence, SentencePair

OTHER, RELATED, EQUAL = 0, 1, 2
_DERIVED = ("derived", "pertainym")
Word = tuple[str, str, str]  # token, lemma, tag


@dataclass(frozen=True)
class Words:
    """Numbers of each source and target token's form and lemma, and its row (column) in `related`, of which the
    first is for words that are related to none."""

    form: tuple[np.ndarray, np.ndarray]
    lemma: tuple[np.ndarray, np.ndarray]
    row: tuple[np.ndarray, np.ndarray]
    related: np.ndarray

    def alike(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[K] how alike tokens source[k] and target[k] are: OTHER, RELATED or EQUAL."""
        equal = self.form[0][source] == self.form[1][target]
        equal |= self.lemma[0][source] == self.lemma[1][target]
        out = equal.astype(np.int8)
        out *= EQUAL
        if self.related.size > 1:
            related = self.related[self.row[0][source], self.row[1][target]]
            np.maximum(out, related.view(np.int8), out=out)  # True is RELATED
        return out


def words_of(pairs: Sequence[SentencePair], wordnet: bool) -> Words:
    number: dict[Word, int] = {}
    word = (
        _numbers([pair.source for pair in pairs], number, wordnet),
        _numbers([pair.target for pair in pairs], number, wordnet),
    )
    distinct = list(number)
    form = _codes([matching_form(token).lower() for token, _, _ in distinct])
    lemma = _codes([str(lemma).lower() for _, lemma, _ in distinct])
    pairs_of = _related(distinct, word) if wordnet else np.zeros((2, 0), dtype=np.int64)
    rows, places = zip(*(_rows(len(distinct), some) for some in pairs_of), strict=True)
    related = np.zeros([int(row.max(initial=0)) + 1 for row in rows], dtype=bool)
    related[places] = True
    left, right = word
    return Words((form[left], form[right]), (lemma[left], lemma[right]), (rows[0][left], rows[1][right]), related)


def _rows(n: int, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[n] a row for each word that occurs in `some`, 0 for the others; and `some` as rows."""
    row = np.zeros(n, dtype=np.int64)
    distinct = np.unique(some)
    row[distinct] = np.arange(len(distinct)) + 1
    return row, row[some]


def _numbers(sentences: Sequence[Sentence], number: dict[Word, int], tags: bool) -> np.ndarray:
    tokens = chain.from_iterable(sentence.tokens for sentence in sentences)
    lemmas = chain.from_iterable(sentence.layer("lemma") for sentence in sentences)
    if tags:
        pos = chain.from_iterable(sentence.layer("pos") for sentence in sentences)
    else:
        pos = chain.from_iterable(("",) * len(sentence) for sentence in sentences)
    found = [number.setdefault(word, len(number)) for word in zip(tokens, lemmas, pos, strict=True)]
    return np.array(found, dtype=np.int64)


def _codes(values: Sequence[str]) -> np.ndarray:
    number: dict[str, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)


def _related(distinct: Sequence[Word], sides: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """[2, K] source and target words that share a synset, or are derived of one another and begin alike."""
    from ...resources import wordnet

    net = wordnet()
    asked = [(str(lemma).lower(), wordnet_pos(tag)) for _, lemma, tag in distinct]
    left, right = (np.array([k for k in np.unique(s).tolist() if asked[k][1]], dtype=np.int64) for s in sides)
    synsets, other = (
        net.incidence([asked[k] for k in side.tolist()])[0].astype(np.int32) for side in (left, right)
    )
    shared = (synsets @ other.T).tocoo()
    one, two = _beginning_alike(asked, left, right)
    found = net.related([asked[k] for k in one.tolist()], [asked[k] for k in two.tolist()], depth=1)
    derived = np.logical_or.reduce([found[name] for name in _DERIVED])
    return np.concatenate([[left[shared.row], right[shared.col]], [one[derived], two[derived]]], axis=1)


def _beginning_alike(
    asked: Sequence[tuple[str, str | None]], left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different words with the first three letters in common: what WordNet says of all others costs more
    time than it finds links."""
    stems = _codes([lemma[:3] for lemma, _ in asked])
    order = right[np.argsort(stems[right], kind="stable")]
    begin = np.searchsorted(stems[order], stems[left])
    count = np.searchsorted(stems[order], stems[left], side="right") - begin
    one = np.repeat(left, count)
    two = order[np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)]
    lemma = _codes([lemma for lemma, _ in asked])
    differ = lemma[one] != lemma[two]
    return one[differ], two[differ]
