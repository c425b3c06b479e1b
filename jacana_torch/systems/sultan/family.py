"""What the pipeline of Sultan et al. (2014) links, as a feature family: it decides one link by others, and weighs
evidence that no other family has.

In: a `Grid`, parsed. Out: for each cell whether the pipeline links its words, by kind of words, and what it makes
of the cell's row, column and neighbours; for NULL whether it links the token at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...features.api import Block, NodeBlocks
from ...features.families.kinds import KINDS, kind_of_words
from ...features.grid import Grid
from ...features.string_similarity import base_similarity
from .sultan import Sultan


@dataclass(frozen=True)
class SultanLinks:
    """The settings are the pipeline's (aligner.Sultan), which needs no training."""

    similarity: float = 0.9
    weight: float = 0.9
    paraphrases: str = "auto"
    names: str = "tags"
    name: str = "sultan"

    @cached_property
    def pipeline(self) -> Sultan:
        return Sultan(self.similarity, self.weight, self.paraphrases, self.names)

    @property
    def requires(self) -> tuple[str, ...]:
        return self.pipeline.requires

    @property
    def resources(self) -> tuple[str, ...]:
        return self.pipeline.resources

    def __call__(self, grid: Grid) -> NodeBlocks:
        flipped, linked = grid.shared(self, lambda: (grid.is_flipped, self._linked(grid)))
        if flipped != grid.is_flipped:
            linked = linked[grid.flipped().by_column]
        link = Block(*_columns(grid, linked)), _by_kind(grid, linked)
        some = np.bincount(grid.source_token[linked], minlength=len(grid.source_pair)) > 0
        null = np.column_stack([some, ~some]).astype(np.float64)
        return NodeBlocks(link, (Block(("null_linked", "null_unlinked"), null),))

    def _linked(self, grid: Grid) -> np.ndarray:
        """[C] whether the pipeline links the cell's words, which it does from either side alike."""
        out = np.zeros(grid.n_cells, dtype=bool)
        for k, alignment in enumerate(self.pipeline.align(grid.pairs)):
            for i, j in alignment.sure:
                out[grid.cell_start[k] + i * grid.n_target[k] + j] = True
        return out


def _columns(grid: Grid, linked: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    base = grid.figure(base_similarity)
    s, t = grid.source_token, grid.target_token
    in_row = np.bincount(s[linked], minlength=len(grid.source_pair))[s]
    in_column = np.bincount(t[linked], minlength=len(grid.target_pair))[t]
    padded = np.append(linked, False)  # outside is -1, the last
    left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
    columns = {
        "linked": linked,
        "linked_unlike": linked & (base == 0),
        "several": linked & ((in_row > 1) | (in_column > 1)),
        "row_linked": ~linked & (in_row > 0),
        "column_linked": ~linked & (in_column > 0),
        "both_linked": ~linked & (in_row > 0) & (in_column > 0),
        "identical_unlinked": ~linked & (base >= 1),
        "left_linked": left,
        "right_linked": right,
        "beside_linked": left & right,
    }
    return tuple(columns), np.column_stack(list(columns.values())).astype(np.float64)


def _by_kind(grid: Grid, linked: np.ndarray) -> Block:
    kind = grid.figure(kind_of_words).astype(np.int64)
    return Block(tuple(f"linked:{name}" for name in KINDS), None, np.where(linked, kind, -1))
