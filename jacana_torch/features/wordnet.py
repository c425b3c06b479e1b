"""WordNet relations between two words, by lemma and part of speech, or over all parts of speech without tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..annotate.lemmas import wordnet_pos
from ..annotate.normalise import matching_form
from .base import Block, NodeBlocks
from .canvas import table_of
from .context import company_of
from .grid import Grid
from .meeting import Signal, WordKey, WordPairs
from .string import FORM, base_of, base_similarity

Query = tuple[str, str | None]


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
        columns, new = self._relations(pairs), np.flatnonzero(self._new(pairs))
        table = np.column_stack([values[new] for values in columns.values()]).astype(np.float64)
        index = np.full(len(pairs), -1, dtype=np.int64)
        index[new] = np.arange(len(new))
        return (Block(tuple(columns), table, index),)

    def __call__(self, grid: Grid) -> NodeBlocks:
        laid = grid.laid_out()
        # Some relations hold one way only (Swedish to Sweden), so each side has its own.
        side = (self, grid.is_flipped)
        related = grid.figure(self._any, directed=True)
        best_row = grid.row_max(related)
        link, null = company_of(grid, ("wordnet", side), lambda: self._similar(grid, related))
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
        """[U] pairs that WordNet or their lemma relates, and spelling does not already."""

        def found() -> np.ndarray:
            there, back = self._found(pairs)
            related = np.logical_or.reduce([self._same_lemma(pairs), *there.values(), *back.values()])
            rows = np.flatnonzero(related)
            some = WordPairs(pairs.lexicon, pairs.left[rows], pairs.right[rows])
            related[rows] = base_of(some.part(0) if self.tags else some) < 0.9
            return related

        return pairs.shared(("wordnet.new", self), found)

    def _related(self, pairs: WordPairs) -> np.ndarray:
        return self._relations(pairs)["any"] & self._new(pairs)

    def _same_lemma(self, pairs: WordPairs) -> np.ndarray:
        return pairs.equal("wordnet.lemma", lambda words: [lemma for lemma, _ in self._queries(words)])

    def _queries(self, words: Sequence) -> list[Query]:
        if self.tags:
            return [(lemma.lower(), _looked_up_as(tag)) for _, lemma, tag in words]
        return [(w.lower(), None) for w in words]

    def _are_known(self, words: Sequence) -> list[bool]:
        if self.tags:
            return [pos is not None for _, pos in self._queries(words)]
        return [w[:1].isalpha() for w in words]

    def _relations(self, pairs: WordPairs) -> dict[str, np.ndarray]:
        """Named columns [U]."""
        columns = dict(self._found(pairs)[int(pairs.swapped)])
        columns["any"] = np.logical_or.reduce([v for k, v in columns.items() if k not in ("antonym", "sister")])
        columns["lemma"] = self._same_lemma(pairs)
        return columns

    def _found(self, pairs: WordPairs) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        return pairs.shared(("wordnet", self), lambda: self._both_ways(pairs))

    def _both_ways(self, pairs: WordPairs) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        from ..resources import wordnet

        left, right = (pairs.right, pairs.left) if pairs.swapped else (pairs.left, pairs.right)
        ask = np.flatnonzero(pairs.both(("wordnet.known", self.tags), self._are_known))
        used, place = np.unique(np.concatenate([left[ask], right[ask]]), return_inverse=True)
        queries = self._queries([pairs.lexicon.words[w] for w in used.tolist()])
        found = wordnet().related_both_ways(queries, place[: len(ask)], place[len(ask) :], self.depth)
        there, back = ({name: _spread(values, ask, len(pairs)) for name, values in way.items()} for way in found)
        return there, back


def _spread(values: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros(size, dtype=bool)
    out[at] = values
    return out


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
