"""The attachment family: two words probably correspond if their heads do, in an approximate parse.

Columns compare heads, the heads' heads, and one word with the other's head; children and siblings; and similar
words elsewhere that depend on a better head. It replaces the dependency family for sentences without a parse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from ...types import SentencePair
from ...util.geometry import COLUMN, ROW, PaddedGrid
from ..api import Block, NodeBlocks
from ..approximate_parse import AUXILIARIES, MARKS, RELATIONS, approximate_parse, at, kinds_of_tags
from ..grid import ColumnTable, Grid, Named, table_of
from ..string_similarity import FORM, base_similarity, of_lower_case
from .context import Columns
from .pos import TAG
from .wordnet import WordNet

_MOST = 3  # children or siblings; more are no better evidence
_HEADS = ("head_unlike", "head_alike")
_LABELS = tuple(map(".".join, product(("relation",), (*RELATIONS, "different"), _HEADS)))


@dataclass(frozen=True)
class Attachment:
    """`related`: words that WordNet relates are similar too, not only those that look it."""

    related: bool = True
    name: str = "attachment"

    @property
    def requires(self) -> tuple[str, ...]:
        return ("pos", "lemma") if self.related else ("pos",)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("wordnet",) if self.related else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        padded = grid.padded()
        source, target = grid.per_token("approximate parse", _parsed)
        names, table = grid.shared_columns(self, partial(self._columns, grid, padded, source[:4], target[:4]))
        assert isinstance(table, ColumnTable)
        head_alike = table.columns[names.index("head_similar")]
        label = grid.shared((self, "labels"), partial(_labels, padded, source[4], target[4], head_alike))
        link = Block(names, table, padded.place), Block(_LABELS, None, label[padded.place])
        found = grid.row_max(grid.per_cell(base_similarity)) > 0
        head = np.where(source[1] < 0, -1, np.arange(grid.n_tokens) + source[1] - source[0])
        head_found = at(found.astype(np.int8), head)  # -1 of a root
        null = {
            "head_found": head_found > 0,
            "head_missing": head_found == 0,
            "found_head_missing": found & (head_found == 0),
            "missing_head_missing": ~found & (head_found == 0),
            "missing_head_found": ~found & (head_found > 0),
        }
        return NodeBlocks(link, (Block(*table_of(null)),))

    def _columns(self, grid: Grid, padded: PaddedGrid, source: np.ndarray, target: np.ndarray) -> Named:
        """Over the padded grid; in the other direction, row and column, source and target swap in the names."""
        similarity = WordNet().similarity(grid) if self.related else grid.per_cell(base_similarity)
        rows, columns = padded.lines(source, ROW), padded.lines(target, COLUMN)
        similarity = padded.near(padded.field(similarity, padded.place), 0, 0)
        alike, identical = similarity > 0, similarity >= 1
        (row, row_head, row_above, _), (column, column_head, column_above, _) = rows, columns
        heads: Columns = {}
        for name, first, second in (
            ("head", row_head, column_head),
            ("above_head", row_above, column_above),
            ("source_head", row_head, column),
            ("target_head", row, column_head),
        ):
            place, both = padded.crossing(first, second)
            found = similarity[place]
            heads |= {f"{name}_same": found >= 0.9, f"{name}_similar": found > 0}
            heads[f"{name}_differs"] = (found == 0) & both
        heads["identical_head_same"] = heads["head_same"] & identical
        heads["identical_head_differs"] = heads["head_differs"] & identical
        family = _family(padded, alike, rows, columns)
        return table_of(heads | family | _competition(padded, alike, heads["head_similar"], family))


def _parsed(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[5, T] of each side: position, that of the head and of its head (-1 for none), children, relation."""
    tags, words = grid.words(TAG), grid.words(FORM)
    kind = tags.lexicon.attribute("parse.kind", kinds_of_tags)
    auxiliary = words.lexicon.attribute(
        "parse.auxiliary", partial(of_lower_case, AUXILIARIES.__contains__, dtype=bool)
    )
    mark = words.lexicon.attribute("parse.mark", partial(of_lower_case, MARKS.__contains__, dtype=bool))
    sides = []
    for tag, word, pair, position in (
        (tags.source, words.source, grid.source_pair, grid.source_position),
        (tags.target, words.target, grid.target_pair, grid.target_position),
    ):
        heads, relation = approximate_parse(kind[tag], auxiliary[word], mark[word], pair)
        head = at(position, heads)
        children = np.bincount(heads[heads >= 0], minlength=len(position))
        sides.append(np.array((position, head, at(head, heads), children, relation)))
    return sides[0], sides[1]


def parsed_heads(pair: SentencePair) -> tuple[list[int], list[int]]:
    """Return the position of each word's head in the approximate parse, -1 for a root, of source and target."""
    source, target = _parsed(Grid([pair]))
    return source[1].tolist(), target[1].tolist()


def _family(padded: PaddedGrid, alike: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Columns:
    """Similar children and siblings."""
    heads, both = padded.crossing(rows[1], columns[1])
    children = np.bincount(heads[alike & both], minlength=padded.size).astype(np.float32)
    siblings = np.where(both, children[heads] - alike, 0)
    counts = padded.along(np.maximum(rows[3], 0), ROW), padded.along(np.maximum(columns[3], 0), COLUMN)
    fewer, more = np.minimum(*counts), np.maximum(*counts)
    share = np.minimum(children / np.maximum(fewer, 1), 1)
    siblings = np.minimum(siblings, _MOST) / _MOST
    return {
        "children_share": share,
        "children_of_more": np.minimum(children / np.maximum(more, 1), 1),
        "children_alike": np.minimum(children, _MOST) / _MOST,
        "children_unlike": (children == 0) & (fewer > 0),
        "siblings": siblings,
        "alike_children_share": share * alike,
        "alike_siblings": siblings * alike,
    }


def _competition(padded: PaddedGrid, alike: np.ndarray, head_alike: np.ndarray, family: Columns) -> Columns:
    """Whether a similar word elsewhere in the row or the column depends on a better head."""
    place = 2 * head_alike + family["children_share"] + family["siblings"] / 2
    place = np.where(alike, place, -1).astype(np.float32)
    row, column = padded.best_other(place, ROW), padded.best_other(place, COLUMN)
    columns: Columns = {"alike_head_alike": alike & head_alike, "alike_nothing": place == 0}
    for name, other in (("row", row), ("column", column)):
        columns[f"{name}_best"] = alike & (other >= 0) & (place >= other)
        columns[f"{name}_beaten"] = np.clip(other - place, 0, 2) / 2 * (alike & (other >= 0))
    return columns


def _labels(padded: PaddedGrid, source: np.ndarray, target: np.ndarray, head_alike: np.ndarray) -> np.ndarray:
    """[size] which of _LABELS: the relation of both words to their heads."""
    row, column = padded.along(padded.lines(source, ROW), ROW), padded.along(padded.lines(target, COLUMN), COLUMN)
    return np.asarray(2 * np.where(row == column, row, len(RELATIONS)) + head_alike)
