"""The attachment family: two words probably correspond if their heads do, in an approximate parse.

Columns compare heads, the heads' heads, and one word with the other's head; children and siblings; and similar
words elsewhere that depend on a better head. It replaces the dependency family for sentences without a parse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from ..api import Block, NodeBlocks
from ..approximate_parse import AUXILIARIES, MARKS, RELATIONS, Parse, approximate_parse, at, kinds_of_tags
from ..grid import Grid, Laid, Named
from ..padded_grid import Canvas, table_of
from ..string_similarity import FORM, base_similarity, lower_case_among
from .context import Columns
from .pos import TAG
from .wordnet import WordNet

_MOST = 3  # children or siblings; more are no better evidence
_LABELS = tuple(
    f"relation.{name}.{head}" for name in (*RELATIONS, "different") for head in ("head_unlike", "head_alike")
)


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
        laid = grid.laid_out()
        names, table = grid.from_either_side(self, partial(self._columns, grid, laid))
        head_alike = table[:, names.index("head_similar")] > 0
        label = grid.shared((self, "labels"), partial(_labels, grid, laid, head_alike))
        link = Block(names, table, laid.place), Block(_LABELS, None, label[laid.place])
        return NodeBlocks(link, (_null(grid),))

    def _columns(self, grid: Grid, laid: Laid) -> Named:
        """Over the padded grid; in the other direction, row and column, source and target swap in the names."""
        similarity = WordNet().similarity(grid) if self.related else grid.figure(base_similarity)
        canvas, (source, target), (no_row, no_column) = laid.canvas, parses(grid), laid.canvas.no_positions()
        rows = _lines(source, grid.source_position, laid.line, no_row)
        columns = _lines(target, grid.target_position, laid.column_line, no_column)
        similarity = canvas.near(canvas.field(similarity, laid.place), 0, 0)
        alike, identical = similarity > 0, similarity >= 1
        heads = _heads(canvas, similarity, rows, columns)
        heads["identical_head_same"] = heads["head_same"] & identical
        heads["identical_head_differs"] = heads["head_differs"] & identical
        family = _family(canvas, alike, rows, columns)
        return table_of(heads | family | _competition(canvas, alike, heads["head_similar"], family))


def parses(grid: Grid) -> tuple[Parse, Parse]:
    """The approximate parses of both sides."""
    flipped, source, target = grid.shared("approximate parse", partial(_parsed, grid))
    return (source, target) if flipped == grid.is_flipped else (target, source)


def _parsed(grid: Grid) -> tuple[bool, Parse, Parse]:
    tags, words = grid.meeting(TAG), grid.meeting(FORM)
    kind = tags.lexicon.attribute("parse.kind", _kinds)
    auxiliary = words.lexicon.attribute("parse.auxiliary", lower_case_among(AUXILIARIES))
    mark = words.lexicon.attribute("parse.mark", lower_case_among(MARKS))
    source = approximate_parse(kind[tags.source], auxiliary[words.source], mark[words.source], grid.source_pair)
    target = approximate_parse(kind[tags.target], auxiliary[words.target], mark[words.target], grid.target_pair)
    return grid.is_flipped, source, target


def _kinds(tags: Iterable[tuple[str]]) -> np.ndarray:
    return kinds_of_tags(chain.from_iterable(tags))


def _lines(tree: Parse, position: np.ndarray, line: np.ndarray, nowhere: np.ndarray) -> np.ndarray:
    """[4, lines] of one side: position, that of the head and of its head (-1 for none), number of children."""
    head = at(position, tree.head)
    found = np.tile(nowhere, (4, 1))
    children = np.bincount(tree.head[tree.head >= 0], minlength=len(position))
    found[:, line] = position, head, at(head, tree.head), children
    return found


def _heads(canvas: Canvas, similarity: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Columns:
    out: Columns = {}
    (row, row_head, row_above, _), (column, column_head, column_above, _) = rows, columns
    for name, first, second in (
        ("head", row_head, column_head),
        ("above_head", row_above, column_above),
        ("source_head", row_head, column),
        ("target_head", row, column_head),
    ):
        found, both = canvas.meet(similarity, first, second)
        out |= {f"{name}_same": found >= 0.9, f"{name}_similar": found > 0, f"{name}_differs": (found == 0) & both}
    return out


def _family(canvas: Canvas, alike: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Columns:
    """Similar children and siblings."""
    heads, both = canvas.meeting(rows[1], columns[1])
    children = np.bincount(heads[alike & both], minlength=canvas.size).astype(np.float32)
    siblings = np.where(both, children[heads] - alike, 0)
    counts = canvas.along_rows(np.maximum(rows[3], 0)), canvas.along_columns(np.maximum(columns[3], 0))
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


def _competition(canvas: Canvas, alike: np.ndarray, head_alike: np.ndarray, family: Columns) -> Columns:
    """Whether a similar word elsewhere in the row or the column depends on a better head."""
    place = 2 * head_alike + family["children_share"] + family["siblings"] / 2
    place = np.where(alike, place, -1).astype(np.float32)
    row, column = canvas.best_other(place)
    columns: Columns = {"alike_head_alike": alike & head_alike, "alike_nothing": place == 0}
    for name, other in (("row", row), ("column", column)):
        columns[f"{name}_best"] = alike & (other >= 0) & (place >= other)
        columns[f"{name}_beaten"] = np.clip(other - place, 0, 2) / 2 * (alike & (other >= 0))
    return columns


def _labels(grid: Grid, laid: Laid, head_alike: np.ndarray) -> np.ndarray:
    """[size] which of _LABELS: the relation of both words to their heads."""
    (source, target), (row, column) = parses(grid), laid.canvas.no_positions()
    row[laid.line], column[laid.column_line] = source.relation, target.relation
    row, column = laid.canvas.along_rows(row), laid.canvas.along_columns(column)
    return np.asarray(2 * np.where(row == column, row, len(RELATIONS)) + head_alike)


def _null(grid: Grid) -> Block:
    """Whether a word is similar to some word of the other side, and whether its head is."""
    tree = parses(grid)[0]
    found = grid.row_max(grid.figure(base_similarity)) > 0
    head_found = at(found.astype(np.int8), tree.head)  # -1 of a root
    columns = {
        "head_found": head_found > 0,
        "head_missing": head_found == 0,
        "found_head_missing": found & (head_found == 0),
        "missing_head_missing": ~found & (head_found == 0),
        "missing_head_found": ~found & (head_found > 0),
    }
    return Block(*table_of(columns))
