"""The pos family: whether the tags match, which pair of tags it is (`vbz2nn`), and the neighbours' tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from ...util.build import INTERNAL
from ...util.geometry import PaddedGrid
from ..api import Block, NodeBlocks, prefixed
from ..grid import Grid, Named, table_of
from ..string_similarity import base_similarity, of_lower_case
from ..words import WordKey, WordPairs

TAG = WordKey(None, ("pos",))  # tokens with the same tag are the same word
_LOWER = partial(of_lower_case, str, part=0)


@dataclass(frozen=True)
class Pos:
    name: str = "pos"
    requires: Annotated[tuple[str, ...], INTERNAL] = ("pos",)
    resources: Annotated[tuple[str, ...], INTERNAL] = ()
    key: ClassVar[WordKey] = TAG

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        names, number = pairs.lexicon.named("pos", _LOWER)
        seen: dict[str, int] = {}
        index = np.empty(len(pairs), dtype=np.int64)
        for u, (a, b) in enumerate(zip(number[pairs.left].tolist(), number[pairs.right].tolist(), strict=True)):
            index[u] = seen.setdefault(f"{names[a]}2{names[b]}", len(seen))
        tags = np.array(pairs.lexicon.words, dtype=str).reshape(-1)
        coarse = np.where(np.char.isalpha(tags.astype("<U1")), tags.astype("<U2"), ".")  # VBZ and VBD are verbs
        match = np.empty((len(pairs), 3))
        match[:, 0] = pairs.left == pairs.right
        match[:, 1] = coarse[pairs.left] == coarse[pairs.right]
        match[:, 2] = pairs.left != pairs.right
        return Block(("match", "coarse_match", "no_match"), match), Block(tuple(seen), None, index)

    def __call__(self, grid: Grid) -> NodeBlocks:
        words, padded, base = grid.words(TAG), grid.padded(), grid.per_cell(base_similarity)
        names, number = words.lexicon.named("pos", _LOWER)
        tag = number[words.source]
        neighbours = grid.shared("pos.neighbours", partial(_neighbours, grid, padded))
        identical = np.where(base >= 1.0, tag[grid.source_token], -1)
        matched = np.where(grid.row_max(base) >= 0.9, tag, -1)
        link = Block(prefixed("identical:", names), None, identical), Block(*neighbours, padded.place)
        null = Block(prefixed("null:", names), None, tag), Block(prefixed("null_matched:", names), None, matched)
        return NodeBlocks(link, null)


def _neighbours(grid: Grid, padded: PaddedGrid) -> Named:
    """Over the padded grid: whether the tags to the left and right match, and both while the words do."""
    words = grid.words(TAG)
    same_tag = words.source[grid.source_token] == words.target[grid.target_token]
    match = padded.field(same_tag, padded.place)
    identical = padded.field(grid.per_cell(base_similarity) >= 1.0, padded.place)
    left, right = padded.near(match, -1, -1), padded.near(match, 1, 1)
    both = left & right
    return table_of(
        {
            "left_match": left,
            "right_match": right,
            "both_match": both,
            "all_match": both & padded.near(match, 0, 0),
            "identical_both_match": both & padded.near(identical, 0, 0),
        }
    )
