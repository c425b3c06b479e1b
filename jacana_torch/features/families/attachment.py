"""Attachment: two words are likely to be the same where what they hang on is, as far as tags tell (guess.py).

In: a `Grid` with tags. Out: the likeness of heads, of their heads, and of one word with the other's head; of
children and siblings; whether a like word elsewhere hangs in a better place. It stands in for the family
`dependency` where nobody parses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..api import Block, NodeBlocks
from ..approximate_parse import RELATIONS, Guess, Words, are_auxiliaries, are_marks, guess, kinds_of_tags
from ..grid import Grid, Laid, Named
from ..padded_grid import Canvas, table_of
from ..string_similarity import FORM, base_similarity
from .context import Columns
from .pos import TAG
from .wordnet import WordNet

_MOST = 3  # children or siblings; more say no more
_LABELS = tuple(
    f"relation.{name}.{head}" for name in (*RELATIONS, "different") for head in ("head_unlike", "head_alike")
)


@dataclass(frozen=True)
class Attachment:
    """`related`: words that WordNet relates are alike, not only those that look so."""

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
        names, table = grid.from_either_side(self, lambda: self._columns(grid, laid))
        head_alike = table[:, names.index("head_similar")] > 0
        label = grid.shared((self, "labels"), lambda: _labels(grid, laid, head_alike))
        return NodeBlocks(
            (Block(names, table, laid.place), Block(_LABELS, None, label[laid.place])), (_null(grid),)
        )

    def _columns(self, grid: Grid, laid: Laid) -> Named:
        """Over the canvas; from the other side, rows and columns, source and target have changed places."""
        likeness = WordNet().similarity(grid) if self.related else grid.figure(base_similarity)
        canvas, (source, target), nowhere = laid.canvas, trees(grid), laid.canvas.no_positions()
        row = _Line.of(source, grid.source_position, laid.line, nowhere[0])
        column = _Line.of(target, grid.target_position, laid.column_line, nowhere[1])
        likeness = canvas.near(canvas.field(likeness, laid.place), 0, 0)
        alike, identical = likeness > 0, likeness >= 1
        heads = _heads(canvas, likeness, row, column)
        heads["identical_head_same"] = heads["head_same"] & identical
        heads["identical_head_differs"] = heads["head_differs"] & identical
        family = _family(canvas, alike, row, column)
        return table_of(heads | family | _rivals(canvas, alike, heads["head_similar"], family))


def trees(grid: Grid) -> tuple[Guess, Guess]:
    """The guesses of both sides."""
    flipped, source, target = grid.shared("guess", lambda: (grid.is_flipped, *_guessed(grid)))
    return (source, target) if flipped == grid.is_flipped else (target, source)


def _guessed(grid: Grid) -> tuple[Guess, Guess]:
    tags, words = grid.meeting(TAG), grid.meeting(FORM)
    kind = tags.lexicon.attribute("guess.kind", lambda met: kinds_of_tags([tag for (tag,) in met]))
    auxiliary = words.lexicon.attribute("guess.auxiliary", are_auxiliaries)
    mark = words.lexicon.attribute("guess.mark", are_marks)

    def side(tag: np.ndarray, word: np.ndarray, pair: np.ndarray) -> Guess:
        return guess(Words(kind[tag], auxiliary[word], mark[word], pair))

    return side(tags.source, words.source, grid.source_pair), side(tags.target, words.target, grid.target_pair)


@dataclass(frozen=True)
class _Line:
    """Positions in their sentences of the words of all lines of one side, -1 for none, and how many children."""

    own: np.ndarray
    head: np.ndarray
    above: np.ndarray
    children: np.ndarray

    @staticmethod
    def of(tree: Guess, position: np.ndarray, line: np.ndarray, nowhere: np.ndarray) -> _Line:
        head = _at(position, tree.head)
        children = np.bincount(tree.head[tree.head >= 0], minlength=len(position))
        found = np.tile(nowhere, (4, 1))
        found[:, line] = position, head, _at(head, tree.head), children
        return _Line(*found)


def _at(values: np.ndarray, token: np.ndarray) -> np.ndarray:
    return np.where(token >= 0, values[token], -1) if len(values) else values


def _heads(canvas: Canvas, likeness: np.ndarray, row: _Line, column: _Line) -> Columns:
    columns: Columns = {}
    meetings = {
        "head": (row.head, column.head), "above_head": (row.above, column.above),
        "source_head": (row.head, column.own), "target_head": (row.own, column.head),
    }  # fmt: skip
    for name, meeting in meetings.items():
        found, both = canvas.meet(likeness, *meeting)
        columns |= {f"{name}_same": found >= 0.9, f"{name}_similar": found > 0}
        columns[f"{name}_differs"] = (found == 0) & both
    return columns


def _family(canvas: Canvas, alike: np.ndarray, row: _Line, column: _Line) -> Columns:
    """Children and siblings that look alike."""
    heads, both = canvas.meeting(row.head, column.head)
    children = np.bincount(heads[alike & both], minlength=canvas.size).astype(np.float32)
    siblings = np.where(both, children[heads] - alike, 0)
    counts = canvas.along_rows(np.maximum(row.children, 0)), canvas.along_columns(np.maximum(column.children, 0))
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


def _rivals(canvas: Canvas, alike: np.ndarray, head_alike: np.ndarray, family: Columns) -> Columns:
    """Whether a like word elsewhere in the row or the column hangs in a better place."""
    place = 2 * head_alike + family["children_share"] + family["siblings"] / 2
    place = np.where(alike, place, -1).astype(np.float32)
    row, column = canvas.best_other(place)
    columns: Columns = {"alike_head_alike": alike & head_alike, "alike_nothing": place == 0}
    for name, other in (("row", row), ("column", column)):
        columns[f"{name}_best"] = alike & (other >= 0) & (place >= other)
        columns[f"{name}_beaten"] = np.clip(other - place, 0, 2) / 2 * (alike & (other >= 0))
    return columns


def _labels(grid: Grid, laid: Laid, head_alike: np.ndarray) -> np.ndarray:
    """[size] which of _LABELS: what both words are to their heads."""
    (source, target), (row, column) = trees(grid), laid.canvas.no_positions()
    row[laid.line], column[laid.column_line] = source.relation, target.relation
    row, column = laid.canvas.along_rows(row), laid.canvas.along_columns(column)
    return 2 * np.where(row == column, row, len(RELATIONS)) + head_alike


def _null(grid: Grid) -> Block:
    """Whether a word looks like some word of the other side, and whether its head does."""
    tree = trees(grid)[0]
    found = grid.row_max(grid.figure(base_similarity)) > 0
    head_found = _at(found.astype(np.int8), tree.head)  # -1 of a root
    return Block(
        *table_of(
            {
                "head_found": head_found > 0,
                "head_missing": head_found == 0,
                "found_head_missing": found & (head_found == 0),
                "missing_head_missing": ~found & (head_found == 0),
                "missing_head_found": ~found & (head_found > 0),
            }
        )
    )
