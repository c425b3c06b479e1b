"""WordNet relations between two words, by lemma and part of speech, or over all parts of speech without tags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..annotate.lemmas import wordnet_pos
from ..annotate.normalise import matching_form
from .base import Block, NodeBlocks
from .context import company_of
from .grid import Grid, Words
from .string import base_similarity, equal, forms


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

    def __call__(self, grid: Grid) -> NodeBlocks:
        words = self._words(grid)
        columns = self._relations(grid, words)
        names = tuple(columns)
        table = np.column_stack(list(columns.values())).astype(np.float64)
        base = base_similarity(grid)[forms(grid).cell]
        new = base < 0.9  # what spelling does not tell already
        any_relation = table[:, names.index("any")][words.cell] * new
        padded = np.append(any_relation, 0.0)
        best_row = grid.row_max(any_relation)
        near = np.column_stack(
            [
                padded[grid.shift(-1, -1)],
                padded[grid.shift(1, 1)],
                (1 - any_relation) * best_row[grid.source_token],
                (1 - any_relation) * grid.column_max(any_relation)[grid.target_token],
            ]
        )
        same_lemma = columns["lemma"][words.cell]
        similar = np.maximum(base, np.maximum(0.9 * same_lemma, 0.8 * any_relation))
        company, rivals, null = company_of(grid, similar)
        link = (
            Block(names, table, np.where(new, words.cell, -1)),
            company,
            rivals,
            Block(("left_related", "right_related", "row_related", "column_related"), near),
        )
        return NodeBlocks(link, (Block(("null_related",), best_row[:, None]), null))

    def _words(self, grid: Grid) -> Words:
        if self.tags:
            return grid.words(matching_form, "lemma", "pos")
        return grid.words(matching_form)

    def _relations(self, grid: Grid, words: Words) -> dict[str, np.ndarray]:
        """Named columns [U] over the distinct word pairs."""
        from ..resources import wordnet

        net = wordnet()
        if self.tags:
            keys = [(lemma.lower(), _looked_up_as(tag)) for _, lemma, tag in words.values]
            known = np.array([pos is not None for _, pos in keys], dtype=bool)
        else:
            keys = [(w.lower(), None) for w in words.values]
            known = np.array([w[:1].isalpha() for w, _ in keys], dtype=bool)
        ask = np.flatnonzero(known[words.left] & known[words.right])
        number: dict[tuple[str, str | None], int] = {}
        query = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)

        def both_ways() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
            left, right = (words.right, words.left) if grid.is_flipped else (words.left, words.right)
            return net.related_both_ways(list(number), query[left[ask]], query[right[ask]], self.depth)

        found = grid.shared(("wordnet.related", self.tags, self.depth), both_ways)[int(grid.is_flipped)]
        columns: dict[str, np.ndarray] = {}
        for name, values in found.items():
            columns[name] = np.zeros(len(words.left), dtype=bool)
            columns[name][ask] = values
        related = np.logical_or.reduce([v for k, v in columns.items() if k not in ("antonym", "sister")])
        columns["any"] = related
        columns["lemma"] = equal([lemma for lemma, _ in keys], words)
        return columns
