"""WordNet relations between two words, by lemma and part of speech, or over all parts of speech without tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...annotate.normalise import matching_form, wordnet_pos
from ..api import Block, NodeBlocks
from ..grid import Grid
from ..padded_grid import table_of
from ..string_similarity import FORM, base_of, base_similarity
from ..word_pairs import Signal, WordKey, WordPairs
from .context import context_of

Query = tuple[str, str | None]
Relations = dict[str, np.ndarray]


@lru_cache(maxsize=256)
def _looked_up_as(tag: str) -> str | None:
    """WordNet's part of speech of a Penn tag; particles too, for WordNet has them ("up") among its adverbs."""
    return "r" if tag == "RP" else wordnet_pos(tag)


@dataclass(frozen=True)
class WordNet:
    """`tags`: by the pos layer, not every part of speech. `depth`: how many hypernym steps count."""

    tags: bool = True
    depth: int = 3
    name: str = "wordnet"

    @property
    def requires(self) -> tuple[str, ...]:
        return ("pos", "lemma") if self.tags else ()

    @property
    def resources(self) -> tuple[str, ...]:
        return ("wordnet",)

    @property
    def key(self) -> WordKey:
        return WordKey(matching_form, ("lemma", "pos")) if self.tags else FORM

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        (asked, columns), new = self._relations(pairs), np.flatnonzero(self._new(pairs))
        table = np.column_stack([values[new] for values in columns.values()]).astype(np.float64)
        index = np.full(len(pairs), -1, dtype=np.int64)
        index[asked[new]] = np.arange(len(new))
        return (Block(tuple(columns), table, index),)

    def __call__(self, grid: Grid) -> NodeBlocks:
        laid = grid.laid_out()
        # Some relations hold one way only (Swedish to Sweden), so each side has its own.
        side = (self, grid.is_flipped)
        related = grid.figure(self._any, directed=True)
        best_row = grid.row_max(related)
        link, null = context_of(grid, ("wordnet", side), lambda: self._similar(grid, related))
        names, table = grid.from_either_side(("wordnet.near", side), lambda: _near(grid, related))
        return NodeBlocks(
            (*link, Block(names, table, laid.place)), (Block(("null_related",), best_row[:, None]), null)
        )

    @property
    def _any(self) -> Signal:
        return Signal(("wordnet.any", self), self.key, self._related)

    def likeness(self, grid: Grid) -> np.ndarray:
        """[C] how alike two words are by spelling, lemma and WordNet, in whichever direction that relates them."""
        either = np.maximum(grid.figure(self._any), grid.figure(self._any.from_the_other_side))
        return self._similar(grid, either)

    def _similar(self, grid: Grid, related: np.ndarray) -> np.ndarray:
        same_lemma = grid.figure(Signal(("wordnet.lemma", self), self.key, self._same_lemma))
        return np.maximum(grid.figure(base_similarity), np.maximum(0.9 * same_lemma, 0.8 * related))

    def _new(self, pairs: WordPairs) -> np.ndarray:
        """[A] those that WordNet or their lemma relates, and spelling does not already."""

        def found() -> np.ndarray:
            asked, there, back = self._found(pairs)
            related = np.logical_or.reduce([self._same_lemma(pairs)[asked], *there.values(), *back.values()])
            rows = asked[related]
            some = WordPairs(pairs.lexicon, pairs.left[rows], pairs.right[rows])
            related[related] = base_of(some.part(0) if self.tags else some) < 0.9
            return related

        return pairs.shared(("wordnet.new", self), found)

    def _related(self, pairs: WordPairs) -> np.ndarray:
        out, (asked, columns) = np.zeros(len(pairs), dtype=bool), self._relations(pairs)
        out[asked] = columns["any"] & self._new(pairs)
        return out

    def _same_lemma(self, pairs: WordPairs) -> np.ndarray:
        return pairs.equal("wordnet.lemma", lambda words: [lemma for lemma, _ in self._queries(words)])

    def _queries(self, words: Sequence) -> list[Query]:
        if self.tags:
            return [(lemma.lower(), _looked_up_as(tag)) for _, lemma, tag in words]
        return [(w.lower(), None) for w in words]

    def _are_known(self, words: Sequence) -> np.ndarray:
        from ...resources import wordnet

        queries = self._queries(words)
        looked_up = [pos is not None for _, pos in queries] if self.tags else [w[:1].isalpha() for w in words]
        known = np.array(looked_up, dtype=bool)
        known[known] = wordnet().knows([query for query, yes in zip(queries, looked_up, strict=True) if yes])
        return known

    def _relations(self, pairs: WordPairs) -> tuple[np.ndarray, Relations]:
        """[A] which pairs may be related, and named columns of these."""
        asked, *ways = self._found(pairs)
        columns = dict(ways[int(pairs.swapped)])
        columns["any"] = np.logical_or.reduce([v for k, v in columns.items() if k not in ("antonym", "sister")])
        columns["lemma"] = self._same_lemma(pairs)[asked]
        return asked, columns

    def _found(self, pairs: WordPairs) -> tuple[np.ndarray, Relations, Relations]:
        return pairs.shared(("wordnet", self), lambda: self._both_ways(pairs))

    def _both_ways(self, pairs: WordPairs) -> tuple[np.ndarray, Relations, Relations]:
        """[A] the pairs of one lemma or of words that WordNet knows, and their relations in either direction: of
        words that were never met before, most are unknown to it."""
        from ...resources import wordnet

        known = pairs.both(("wordnet.known", self.tags), self._are_known)
        asked = np.flatnonzero(known | self._same_lemma(pairs))
        left, right = (pairs.right, pairs.left) if pairs.swapped else (pairs.left, pairs.right)
        used, place = np.unique(np.concatenate([left[asked], right[asked]]), return_inverse=True)
        queries = self._queries([pairs.lexicon.words[w] for w in used.tolist()])
        there, back = wordnet().related_both_ways(queries, place[: len(asked)], place[len(asked) :], self.depth)
        return asked, there, back


def _near(grid: Grid, related: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    laid = grid.laid_out()
    canvas, field = laid.canvas, laid.canvas.field(related, laid.place)
    here = canvas.near(field, 0, 0)
    return table_of(
        {
            "left_related": canvas.near(field, -1, -1),
            "right_related": canvas.near(field, 1, 1),
            "row_related": (1 - here) * canvas.along_rows(canvas.row_max(here)),
            "column_related": (1 - here) * canvas.along_columns(canvas.column_max(here)),
        }
    )
