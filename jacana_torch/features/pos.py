"""Parts of speech: whether the tags match, which pair of tags it is (`vbz2nn`), and the neighbours' tags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Block, NodeBlocks
from .grid import Grid
from .string import base_similarity, forms


def _coarse(tag: str) -> str:
    """Word class of a Penn tag: VBZ and VBD are both verbs."""
    return tag[:2] if tag[:1].isalpha() else "."


@dataclass(frozen=True)
class Pos:
    name: str = "pos"
    requires: tuple[str, ...] = ("pos",)

    def __call__(self, grid: Grid) -> NodeBlocks:
        source, target = grid.source_layer("pos"), grid.target_layer("pos")
        tags: dict[str, int] = {}
        source_tag = np.array([tags.setdefault(t, len(tags)) for t in source], dtype=np.int64)
        target_tag = np.array([tags.setdefault(t, len(tags)) for t in target], dtype=np.int64)
        coarse: dict[str, int] = {}
        coarse_of = np.array([coarse.setdefault(_coarse(t), len(coarse)) for t in tags], dtype=np.int64)
        n_tags = max(len(tags), 1)
        pair_of_cell = source_tag[grid.source_token] * n_tags + target_tag[grid.target_token]
        distinct, index = np.unique(pair_of_cell, return_inverse=True)
        left, right = distinct // n_tags, distinct % n_tags
        names = [t.lower() for t in tags]
        pair_names = tuple(f"{names[a]}2{names[b]}" for a, b in zip(left, right, strict=True))
        match = np.column_stack([left == right, coarse_of[left] == coarse_of[right], left != right]).astype(float)
        base = base_similarity(grid)[forms(grid).cell]
        identical = base >= 1.0
        same_tag = np.where(identical, source_tag[grid.source_token], -1)
        link = (
            Block(("match", "coarse_match", "no_match"), match, index),
            Block(pair_names, None, index),
            Block(tuple(f"identical:{t}" for t in names), None, same_tag),
            Block(NEIGHBOUR_COLUMNS, self._neighbours(grid, match[index], identical)),
        )
        matched = grid.row_max(base) >= 0.9
        null = (
            Block(tuple(f"null:{t}" for t in names), None, source_tag),
            Block(tuple(f"null_matched:{t}" for t in names), None, np.where(matched, source_tag, -1)),
        )
        return NodeBlocks(link, null)

    @staticmethod
    def _neighbours(grid: Grid, match: np.ndarray, identical: np.ndarray) -> np.ndarray:
        """[C, 5] whether the tags to the left and right match, and both while the words do."""
        padded = np.vstack([match, np.zeros((1, match.shape[1]))])
        left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
        both = left[:, 0] * right[:, 0]
        return np.column_stack([left[:, 0], right[:, 0], both, both * match[:, 0], both * identical])


NEIGHBOUR_COLUMNS = ("left_match", "right_match", "both_match", "all_match", "identical_both_match")
