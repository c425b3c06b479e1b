"""Scores of a grid under a model's weights, where nothing is trained: features live as long as they are scored.

A grid and a layout in, the flat score vectors of the lattices out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat

import numpy as np

from ..features.api import Block, WordFamily
from ..features.featureset import FeatureSet, checked
from ..features.grid import Grid
from ..features.word_pairs import Memory, Signal, WordPairs
from .layout import Layout
from .linear import RawBlock, add_scores

MOST_NAMES = 1 << 12  # of columns whose numbers are kept, list by list
LONGEST_KEPT = 128  # target tokens; edge scores of longer ones are many and seldom needed twice


def node_scores(grid: Grid, scorer: Scorer, back: Scorer | None = None) -> list[np.ndarray]:
    """Scores of NULLs and links and a padding entry, as a layout of the grid's pairs takes them; with `back` also
    those of the flipped pairs. The grid is done a part at a time, so that features never pile up."""
    grid.remember(scorer.memory)
    sides = [(grid, scorer)] if back is None else [(grid, scorer), (grid.flipped(), back)]
    scores = [np.zeros(len(whole.source_pair) + whole.n_cells + 1) for whole, _ in sides]
    for pairs, part in grid.parts():
        for (whole, of), total, seen in zip(sides, scores, (part, part.flipped()), strict=False):
            source, _, cells = whole.spans(pairs)
            null, link = total[: len(whole.source_pair)], total[len(whole.source_pair) :]
            null[source], link[cells] = of.nodes(seen)
    return scores


class Scorer:
    """Scores of grids under one set of weights; what pairs of words say, and edges of each length, is kept."""

    def __init__(self, features: FeatureSet, names: Sequence[str], weights: np.ndarray) -> None:
        self._features, self.names, self.weights = features, names, weights.copy()
        self._or_nothing = np.append(weights, 0.0)  # what has no number takes the last
        self._number = {name: i for i, name in enumerate(names)}
        self._columns: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
        self._tables: dict[int, dict[str, np.ndarray]] = {}
        self._signals = [
            Signal(("score", id(self), number), key, partial(self._word_scores, families), np.float64)
            for number, (key, families) in enumerate(features.by_word_key().items())
        ]
        self.memory = Memory()

    def has(self, names: Sequence[str], weights: np.ndarray) -> bool:
        """Whether these are still its weights; they change in place where a model is being trained."""
        return names is self.names and np.array_equal(weights, self.weights)

    def edges(self, layout: Layout) -> list[np.ndarray]:
        """Scores of edges, starts and ends of the layout's lengths, each with a padding entry."""
        tables = [self._edge_scores(n) for n in layout.distinct.tolist()]
        return [np.concatenate([*(t[space] for t in tables), np.zeros(1)]) for space in ("edge", "start", "end")]

    def nodes(self, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """Scores of NULL [Ts] and of links [C]: what words alone say is remembered, the rest is worked out."""
        null, link = np.zeros(len(grid.source_pair)), np.zeros(grid.n_cells)
        for signal in self._signals:
            link += grid.figure(signal, directed=True)
        for family in self._features.node:
            blocks = family(grid)
            for total, part in ((null, blocks.null), (link, blocks.link)):
                for block in part:
                    self._add(total, family.name, checked(family.name, block, len(total)))
        return null, link

    def _word_scores(self, families: Sequence[WordFamily], pairs: WordPairs) -> np.ndarray:
        """[U] what the families say of two words."""
        total = np.zeros(len(pairs))
        for family in families:
            for block in family.word_blocks(pairs):
                self._add(total, family.name, checked(family.name, block, len(pairs)))
        return total

    def _add(self, total: np.ndarray, family: str, block: Block) -> None:
        columns = self._numbers(family, block)
        if (columns >= 0).any():  # taking single columns out of a table would take longer than multiplying it
            add_scores(total, (columns, block.table, block.index), self._or_nothing)

    def known(self, family: str, block: Block) -> RawBlock:
        """A family's block under weight numbers."""
        return known_columns(block, self._numbers(family, block))

    def _numbers(self, family: str, block: Block) -> np.ndarray:
        columns = self._columns.get((family, block.names))
        if columns is None:
            columns = numbered([f"{family}.{name}" for name in block.names], self._number)
            if sum(map(len, self._columns.values())) > MOST_NAMES:  # words and tags are new in every batch
                self._columns.clear()
            self._columns[family, block.names] = columns
        return columns

    def _edge_scores(self, n: int) -> dict[str, np.ndarray]:
        if n not in self._tables:
            scores = {space: np.zeros(size) for space, size in self._features.step_sizes(n).items()}
            for family in self._features.edge:
                for space, blocks in self._features.step_blocks(family, n).items():
                    for block in blocks:
                        self._add(scores[space], family.name, block)
            if n > LONGEST_KEPT:
                return scores
            self._tables[n] = scores
        return self._tables[n]


def known_columns(block: Block, columns: np.ndarray) -> RawBlock:
    """A block under weight numbers; columns that the model never met (-1) have no say."""
    keep = columns >= 0
    if keep.all():
        return columns, block.table, block.index
    if block.table is not None:
        return columns[keep], block.table[:, keep], block.index
    renumber = np.where(keep, np.cumsum(keep) - 1, -1)  # one-hot: rows are columns, so they go together
    index = np.arange(len(keep)) if block.index is None else block.index
    return columns[keep], None, np.where(index < 0, -1, renumber[index])


def numbered(names: Sequence[str], number: Mapping[str, int]) -> np.ndarray:
    """The weight number of each name, -1 where there is none."""
    return np.fromiter(map(number.get, names, repeat(-1)), np.int64, len(names))
