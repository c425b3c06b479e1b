"""The wordnet family: WordNet relations between two words, by lemma and part of speech, or by the word alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Annotated, Any

import numpy as np

from ...annotate.tokens import matching_form, wordnet_pos
from ...util.build import INTERNAL, Within
from ...util.geometry import COLUMN, ROW
from ..api import Block, NodeBlocks
from ..grid import Grid, Named, table_of
from ..string_similarity import FORM, base_of, base_similarity, of_lower_case
from ..words import Lexicon, Signal, WordKey, WordPairs
from .context import context_of

Query = tuple[str, str | None]  # what is looked up: a lemma, and one of WordNet's parts of speech or None for all
Relations = dict[str, np.ndarray]


@dataclass(frozen=True)
class WordNet:
    """`tags`: by the pos layer, not every part of speech. `depth`: how many hypernym steps count."""

    tags: bool = True
    depth: Annotated[int, Within(0, 30)] = 3
    name: str = "wordnet"
    resources: Annotated[tuple[str, ...], INTERNAL] = ("wordnet",)

    requires: tuple[str, ...] = field(init=False, compare=False, repr=False)
    key: WordKey = field(init=False, compare=False, repr=False)
    _any: Signal = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requires", ("pos", "lemma") if self.tags else ())
        object.__setattr__(self, "key", WordKey(matching_form, ("lemma", "pos")) if self.tags else FORM)
        object.__setattr__(self, "_any", Signal(("wordnet.any", self), self.key, self._related))

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        rows, new, columns = self._relations(pairs)
        table = np.column_stack(list(columns.values()))[new].astype(np.float64)
        index = np.full(len(pairs), -1, dtype=np.int64)
        index[rows[new]] = np.arange(len(table))
        return (Block(tuple(columns), table, index),)

    def __call__(self, grid: Grid) -> NodeBlocks:
        # Some relations hold one way only (Swedish to Sweden), so each direction has its own.
        direction = (self, grid.is_flipped)
        related = grid.per_cell(self._any, directed=True)
        link, null = context_of(grid, ("wordnet", direction), partial(self.similarity, grid, directed=True))
        names, table = grid.shared_columns(("wordnet.near", direction), partial(_near, grid, related))
        best = Block(("null_related",), grid.row_max(related)[:, None])
        return NodeBlocks((*link, Block(names, table, grid.padded().place)), (best, null))

    def similarity(self, grid: Grid, directed: bool = False) -> np.ndarray:
        """[C] by spelling, lemma and WordNet; also of words related from target to source unless `directed`."""
        related = grid.per_cell(self._any, directed)
        if not directed:
            related = np.maximum(related, grid.per_cell(replace(self._any, flipped=True)))
        same_lemma = grid.per_cell(Signal(("wordnet.lemma", self), self.key, self._same_lemma))
        by_relation: np.ndarray = np.maximum(0.9 * same_lemma, 0.8 * related)
        return np.asarray(np.maximum(grid.per_cell(base_similarity), by_relation))

    def _related(self, pairs: WordPairs) -> np.ndarray:
        """[U] whether any relation holds."""
        out, (rows, new, columns) = np.zeros(len(pairs), dtype=bool), self._relations(pairs)
        out[rows] = columns["any"] & new
        return out

    def _relations(self, pairs: WordPairs) -> tuple[np.ndarray, np.ndarray, Relations]:
        """The rows of pairs that may be related, which of them spelling does not show, and their columns."""
        rows, new, same_lemma, *directions = pairs.shared(("wordnet", self), partial(self._look_up, pairs))
        columns: Relations = {**directions[pairs.swapped], "any": np.zeros(len(rows), dtype=bool)}
        for name in columns.keys() - {"antonym", "sister", "any"}:
            columns["any"] |= columns[name]
        return rows, new, {**columns, "lemma": same_lemma}

    def _look_up(self, pairs: WordPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray, Relations, Relations]:
        """Rows of pairs with one lemma or of words that WordNet knows. For each: whether it is new, whether it has
        one lemma, and its relations from left to right and from right to left."""
        from ...resources import wordnet

        same_lemma, asked = self._same_lemma(pairs), pairs.mapped(("wordnet.query", self.tags), self._query)
        rows = np.flatnonzero(asked.both("wordnet.known", self._are_known) | same_lemma)
        queries, (left, right) = (asked.flipped() if pairs.swapped else asked).some(rows)
        there, back = wordnet().related_both_ways(queries, left, right, self.depth)
        new = np.logical_or.reduce([same_lemma[rows], *there.values(), *back.values()])
        words, some = pairs.some(rows[new])
        forms = list(map(itemgetter(0), words)) if self.tags else words
        new[new] = base_of(WordPairs(Lexicon(forms), *some)) < 0.9
        return rows, new, same_lemma[rows], there, back

    def _same_lemma(self, pairs: WordPairs) -> np.ndarray:
        return pairs.equal("wordnet.lemma", partial(of_lower_case, str, part=1 if self.tags else None))

    def _query(self, word: Any) -> Query:
        if not self.tags:
            return word.lower(), None
        _, lemma, tag = word
        return lemma.lower(), "r" if tag == "RP" else wordnet_pos(tag)  # WordNet has particles among its adverbs

    def _are_known(self, queries: Sequence[Query]) -> np.ndarray:
        """[W] whether WordNet has the word; most words are unknown to it."""
        from ...resources import wordnet

        words, letters = np.array(queries, dtype=object).reshape(-1, 2).T
        known = letters.astype(bool) if self.tags else np.char.isalpha(words.astype("<U1"))
        known[known] = wordnet().knows(list(compress(queries, known)))
        return known


def _near(grid: Grid, related: np.ndarray) -> Named:
    """Whether the neighbours are related, or the word is to another one of the row or the column."""
    padded = grid.padded()
    field = padded.field(related, padded.place)
    here = padded.near(field, 0, 0)
    return table_of(
        {
            "left_related": padded.near(field, -1, -1),
            "right_related": padded.near(field, 1, 1),
            "row_related": (1 - here) * padded.along(padded.max(here, ROW), ROW),
            "column_related": (1 - here) * padded.along(padded.max(here, COLUMN), COLUMN),
        }
    )
