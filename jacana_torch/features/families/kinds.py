"""The kinds family: word-class conjunctions. The same context means one thing for commas, another for verbs.

Columns of the context family and of anchors appear once for each class of word pair, for example
`comma=comma.right_anchor_same`, so that a linear model learns a weight per class. Anchors are word pairs without a
competitor; the other words are placed by the nearest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL
from ...util.geometry import nearest
from ..api import Block, Grouped, NodeBlocks, prefixed
from ..grid import ColumnTable, Grid
from ..string_similarity import FORM, base_of, base_similarity, of_lower_case
from ..wordlists import FUNCTION_KINDS, IS_CONTENT, WORD_CLASSES, word_classes
from ..words import Signal, WordPairs
from .context import Context, Window

_STOPS = frozenset(".!?;:")
# In this order: two identical words of different classes (`US` and `us`) count as the first of them.
WORD_KINDS = ("comma", "stop", *FUNCTION_KINDS, *WORD_CLASSES)
_LISTED: dict[str, int] = {}
for _name, _words in {"comma": ",", "stop": _STOPS, **FUNCTION_KINDS}.items():
    _LISTED.update(dict.fromkeys(_words, WORD_KINDS.index(_name)))
_IS_FUNCTION = np.isin(WORD_KINDS, ("function", *FUNCTION_KINDS))
_IS_PUNCT = np.isin(WORD_KINDS, ("comma", "stop", "punct"))
ALIKE = (*map("{0}={0}".format, WORD_KINDS), "name~name", "word~word")
UNLIKE = ("punct|any", "function|function", "function|any", "name|name", "number|any", "word|word")
KINDS = (*ALIKE, *UNLIKE)

ANCHOR_COLUMNS = (
    "left_pin", "right_pin", "either_pin", "both_pins", "between_pins", "out_of_order", "same_occurrence",
)  # fmt: skip
_COMMON = (
    "diagonal", "left1_similar", "right1_similar", "left_anchor_same", "right_anchor_same", "both_anchors",
    "no_anchor", "window", "window_content", *ANCHOR_COLUMNS,
)  # fmt: skip
# The columns that have a weight per class: for words that are identical or similar, and for the others.
OF_ALIKE = (
    *_COMMON, "run", "left1_identical", "right1_identical", "both_identical", "wins_row", "wins_column",
    "wins_both", "loses_both", "row_margin", "column_margin",
)  # fmt: skip
OF_UNLIKE = (*_COMMON, "row_better", "column_better", "row_free", "column_free")
Column = tuple[np.ndarray, np.ndarray]  # its values by row, and the row of each cell
_ALIKE_NAMES = tuple(map(".".join, product(ALIKE, OF_ALIKE)))


@dataclass(frozen=True)
class Kinds:
    """`window`: as in the context family, which computes the shared columns once. `unlike`: also for dissimilar
    words, which are the majority."""

    window: Window = 3
    unlike: bool = True
    name: str = "kinds"
    requires: Annotated[tuple[str, ...], INTERNAL] = ()
    resources: Annotated[tuple[str, ...], INTERNAL] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        column: dict[str, Column] = {}
        for block in Context(self.window)(grid).link:
            assert isinstance(block.table, ColumnTable) and block.index is not None
            for name, values in zip(block.names, block.table.columns, strict=True):
                column[name] = values, block.index
        kind = grid.per_cell(kind_of_words).astype(np.int8)
        group = np.maximum(kind, len(ALIKE) - 1)  # all similar words, and each class of dissimilar ones
        ends = np.cumsum(np.bincount(group, minlength=len(KINDS)))
        alike, *unlike = np.split(np.argsort(group, kind="stable"), ends[len(ALIKE) - 1 : -1])
        everything = np.arange(grid.n_cells)
        run, place = column["run>=3"]
        cells = everything if self.unlike else alike
        index = _index_of(cells, grid.n_cells)
        for name, values in zip(ANCHOR_COLUMNS, anchor_columns(grid, run[place], cells).T, strict=True):
            column[name] = values, index
        values = _values(column, OF_ALIKE, alike)
        group = kind[alike] if len(alike) else np.zeros(len(values), kind.dtype)
        grouped = Grouped(values, group, len(ALIKE))  # one block: these cells are few
        link = [Block(_ALIKE_NAMES, grouped, _index_of(alike, grid.n_cells))]
        for name, own in zip(UNLIKE, unlike, strict=True) if self.unlike else ():
            names = prefixed(f"{name}.", OF_UNLIKE)
            link.append(Block(names, _values(column, OF_UNLIKE, own), _index_of(own, grid.n_cells)))
        return NodeBlocks(tuple(link))


def _values(column: Mapping[str, Column], names: Sequence[str], cells: np.ndarray) -> np.ndarray:
    """[cells, names] the columns' values in some cells; one row of zeros if there are no cells."""
    out = np.zeros((len(names), max(len(cells), 1)), dtype=np.float32)
    rows: dict[int, np.ndarray] = {}
    for line, name in zip(out, names, strict=True):
        values, index = column[name]
        if id(index) not in rows:
            rows[id(index)] = index[cells]
        line[: len(cells)] = values.take(rows[id(index)])
    return np.asarray(out.T)


def _index_of(cells: np.ndarray, size: int) -> np.ndarray:
    """[size] the place of each cell among `cells`, -1 for the others."""
    index = np.full(size, -1, dtype=np.int64)
    index[cells] = np.arange(len(cells))
    return index


# Classes of word pairs


def _kinds(pairs: WordPairs) -> np.ndarray:
    """[U] which of KINDS: by the words if they are identical, by their classes if not."""
    listed = pairs.lexicon.attribute("kinds", partial(of_lower_case, _LISTED.get, dtype=float))
    of_word = WORD_KINDS.index(WORD_CLASSES[0]) + pairs.lexicon.attribute("class", word_classes)
    of_word = np.where(np.isnan(listed), of_word, listed).astype(np.int64)
    left, right, base = of_word[pairs.left], of_word[pairs.right], base_of(pairs)
    function = _IS_FUNCTION[left].astype(np.int64) + _IS_FUNCTION[right]
    name, number = WORD_KINDS.index("name"), WORD_KINDS.index("number")
    names = (left == name) & (right == name)
    cases = {
        "name~name": names & (base > 0),
        "word~word": base > 0,
        "punct|any": _IS_PUNCT[left] | _IS_PUNCT[right],
        "function|function": function == 2,
        "function|any": function == 1,
        "name|name": names,
        "number|any": (left == number) | (right == number),
    }
    less = np.select(list(cases.values()), list(map(KINDS.index, cases)), KINDS.index("word|word"))
    return np.where(base >= 1, np.minimum(left, right), less)


kind_of_words = Signal("kinds", FORM, _kinds)


# Anchors


def anchor_columns(grid: Grid, in_run: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """[cells, ANCHOR_COLUMNS] whether a word is as far from an anchor as the other is, between two anchors, out
    of order; whether repeated words are the same occurrence.

    `in_run` [C]: the cells of runs of matches that are long enough for any word to be an anchor.
    """
    base = grid.per_cell(base_similarity)
    # [Ts] the position of the word that each source token is anchored to, -1 if it is not an anchor.
    alike, words = np.flatnonzero(base >= 0.9), grid.words(FORM)
    s, t = grid.source_token[alike], grid.target_token[alike]
    content = IS_CONTENT[words.lexicon.attribute("class", word_classes)]
    telling = (content[words.source[s]] & content[words.target[t]]) | in_run[alike]
    alone = (np.bincount(s, minlength=1)[s] == 1) & (np.bincount(t, minlength=1)[t] == 1)
    partner = np.full(len(grid.source_pair), -1)
    partner[s[telling & alone]] = grid.n[alike[telling & alone]]
    table = np.zeros((len(ANCHOR_COLUMNS), len(cells)), dtype=bool)
    token, n = grid.source_token[cells], grid.n[cells]
    shift = n - grid.source_position[token]
    left = nearest(partner >= 0, grid.source_pair, -1)
    right = nearest(partner >= 0, grid.source_pair, 1)
    far = int(grid.n_target.max(initial=0)) + len(partner)  # further than any word or shift
    for column, anchor in ((table[0], left), (table[1], right)):
        own_shift = np.where(anchor < 0, far, partner[anchor] - grid.source_position[anchor])
        column[:] = shift == own_shift[token]
    np.logical_or(table[0], table[1], out=table[2])
    np.logical_and(table[0], table[1], out=table[3])
    after, before = np.where(left < 0, -1, partner[left])[token], np.where(right < 0, far, partner[right])[token]
    table[4] = (n > after) & (n < before) & ((left >= 0) & (right >= 0))[token]
    table[5] = (n < after) | (n > before)
    # Of identical words that a sentence repeats: whether both are the k-th from the left, and from the right.
    identical = np.flatnonzero(base[cells] >= 1)
    s, t = grid.source_token[cells[identical]], grid.target_token[cells[identical]]
    (before_s, after_s), (before_t, after_t) = grid.per_token("occurrences", _occurrences)
    repeated = (before_s + after_s)[s] + (before_t + after_t)[t] > 0
    table[6, identical] = repeated & (before_s[s] == before_t[t]) & (after_s[s] == after_t[t])
    return np.asarray(table.T)


def _occurrences(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[2, T] of each side: how many of the same word precede each token in its sentence, and follow it."""
    words, sides = grid.words(FORM), []
    for word, pair in ((words.source, grid.source_pair), (words.target, grid.target_pair)):
        order = np.lexsort((word, pair))  # stable: the same words of a sentence stay in order
        word, pair = word[order], pair[order]
        new = np.ones(len(word), dtype=bool)
        new[1:] = (word[1:] != word[:-1]) | (pair[1:] != pair[:-1])
        start = np.flatnonzero(new)
        size = np.diff(np.append(start, len(word)))
        rank = np.arange(len(word)) - np.repeat(start, size)
        side = np.empty((2, len(word)), dtype=np.int64)
        side[:, order] = rank, np.repeat(size, size) - 1 - rank
        sides.append(side)
    return sides[0], sides[1]
