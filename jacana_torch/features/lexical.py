"""Cheap similarity of two words, for families that look at a word's neighbours in a tree or a phrase.

It answers whether two heads, two children, or two words of a phrase may be the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from ..annotate.tokens import matching_form
from ..util.geometry import Ints
from .grid import Grid
from .words import WordKey, WordPairs


def lower_form(token: str) -> str:
    """The form by which tokens are compared here: PTB escapes and typographic variants undone, in lower case."""
    return matching_form(token).lower()


LOWER = WordKey(lower_form)
LOWER_AND_LEMMA = WordKey(lower_form, ("lemma",))


@dataclass(frozen=True)
class Lexical:
    """`table` [U, K] of 0/1 under `names`, and `cell` [C] the row of each cell.

    The last column, "similar", holds wherever another one does.
    """

    names: tuple[str, ...]
    table: np.ndarray
    cell: Ints

    @property
    def alike(self) -> np.ndarray:
        """[U] whether words are similar in any way."""
        alike: np.ndarray = self.table[:, -1] > 0
        return alike

    def column(self, name: str) -> np.ndarray:
        column: np.ndarray = self.table[:, self.names.index(name)] > 0
        return column


def lexical(grid: Grid, lemma: bool = False, ppdb: bool = False, threshold: float = 0.85) -> Lexical:
    """Whether words are identical ignoring case, have the same lemma, are paraphrases in PPDB, or are similar: any
    of these, or a Jaro-Winkler similarity of at least `threshold`."""
    words = grid.words(LOWER_AND_LEMMA if lemma else LOWER)
    forms = words.pairs.mapped("form", itemgetter(0)) if lemma else words.pairs
    columns = {"identical": forms.left == forms.right}
    if lemma:
        lemmas = words.pairs.mapped("lower lemma", lambda word: str(word[1]).lower())
        columns["lemma"] = lemmas.left == lemmas.right
    if ppdb:
        columns["ppdb"] = paraphrases(forms)
    columns["similar"] = np.logical_or.reduce([*columns.values(), _jaro_winkler(forms) >= threshold])
    return Lexical(tuple(columns), np.stack(list(columns.values()), axis=1).astype(np.float64), words.cell)


def _jaro_winkler(forms: WordPairs) -> np.ndarray:
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cpdist

    if not len(forms):
        return np.zeros(0)
    return cpdist(*_sides(forms), scorer=JaroWinkler.similarity, dtype=np.float64)


def paraphrases(forms: WordPairs) -> np.ndarray:
    """[U] whether the lexical part of PPDB has the pair."""
    from .. import resources

    return np.asarray(resources.ppdb().contains(*_sides(forms)), dtype=bool)


def _sides(forms: WordPairs) -> tuple[list[str], list[str]]:
    words = forms.lexicon.words
    return [words[k] for k in forms.left.tolist()], [words[k] for k in forms.right.tolist()]
