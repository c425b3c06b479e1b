"""Cheap likeness of two words, for families that look at a word's neighbours in a tree or a phrase.

In: a `Grid`. Out: a small table with one row per distinct word pair, and where each cell finds its row. This is
no family: it says whether two heads, two children, two parts of a phrase might be the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..annotate.normalise import matching_form
from .grid import Grid, Words


@dataclass(frozen=True)
class Lexical:
    """`table` [U, K] of 0/1 under `names`, `cell` [C] the row of each cell, `alike` [U] any of them.

    The last column is always "similar", which holds wherever another one does.
    """

    names: tuple[str, ...]
    table: np.ndarray
    cell: np.ndarray

    @property
    def alike(self) -> np.ndarray:
        return self.table[:, -1] > 0

    def column(self, name: str) -> np.ndarray:
        return self.table[:, self.names.index(name)] > 0


def lower_form(token: str) -> str:
    """What two tokens are compared by here: PTB escapes and typography undone, lower case."""
    return matching_form(token).lower()


def lexical(grid: Grid, lemma: bool = False, ppdb: bool = False, threshold: float = 0.85) -> Lexical:
    """Identical ignoring case, the same lemma, a paraphrase in PPDB, and any of these or close in spelling."""
    words = grid.words(lower_form, "lemma") if lemma else grid.words(lower_form)
    tokens = [value[0] for value in words.values] if lemma else words.values
    names, columns = ["identical"], [equal(tokens, words)]
    if lemma:
        names.append("lemma")
        columns.append(equal([str(value[1]).lower() for value in words.values], words))
    if ppdb:
        names.append("ppdb")
        columns.append(paraphrases(tokens, words))
    spelling = jaro_winkler(tokens, words) >= threshold
    columns.append(np.logical_or.reduce([*columns, spelling]))
    names.append("similar")
    return Lexical(tuple(names), np.stack(columns, axis=1).astype(np.float64), words.cell)


def equal(keys: list[str], words: Words) -> np.ndarray:
    number: dict[str, int] = {}
    ids = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    return ids[words.left] == ids[words.right]


def jaro_winkler(tokens: list[str], words: Words) -> np.ndarray:
    """[U] the Jaro-Winkler similarity of each distinct pair of words."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cpdist

    if not len(words.left):
        return np.zeros(0)
    left, right = [tokens[i] for i in words.left], [tokens[i] for i in words.right]
    return cpdist(left, right, scorer=JaroWinkler.similarity, dtype=np.float64)


def paraphrases(tokens: list[str], words: Words) -> np.ndarray:
    """[U] whether PPDB's lexical part holds the two words."""
    from .. import resources

    left, right = [tokens[i] for i in words.left], [tokens[i] for i in words.right]
    return np.asarray(resources.ppdb().contains(left, right), dtype=bool)
