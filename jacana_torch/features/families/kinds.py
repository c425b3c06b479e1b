"""Kinds of two words that meet: the same company means one thing for two commas, another for two unlike verbs.

In: a `Grid`. Out: columns of the context family once more for each kind, and pins, so that a linear model weighs
what they say for every kind apart: `comma=comma.right_anchor_same`, say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..anchors import COLUMNS as PINS
from ..anchors import pinned
from ..api import Block, Grouped, NodeBlocks
from ..grid import Grid
from ..string_similarity import FORM, base_of
from ..word_pairs import Signal, WordPairs
from ..wordlists import FUNCTION_KINDS, WORD_CLASSES, word_class
from .context import Context

_STOPS = frozenset(".!?;:")
# In this order: two identical words of different kinds (`US` and `us`) count as the first of them.
WORD_KINDS = ("comma", "stop", *FUNCTION_KINDS, *WORD_CLASSES)
_NUMBER = {name: number for number, name in enumerate(WORD_KINDS)}
_OF_FUNCTION_WORD = {word: _NUMBER[name] for name, words in FUNCTION_KINDS.items() for word in words}
_IS_FUNCTION = np.array([name == "function" or name in FUNCTION_KINDS for name in WORD_KINDS])
_IS_PUNCT = np.array([name in ("comma", "stop", "punct") for name in WORD_KINDS])
ALIKE = (*(f"{name}={name}" for name in WORD_KINDS), "name~name", "word~word")
UNLIKE = ("punct|any", "function|function", "function|any", "name|name", "number|any", "word|word")
KINDS = (*ALIKE, *UNLIKE)

_COMMON = (
    "diagonal", "left1_similar", "right1_similar", "left_anchor_same", "right_anchor_same", "both_anchors",
    "no_anchor", "window", "window_content", *PINS,
)  # fmt: skip
# What is weighed by kind where words are the same or look alike, and where they do not.
OF_ALIKE = (
    *_COMMON, "run", "left1_identical", "right1_identical", "both_identical", "wins_row", "wins_column",
    "wins_both", "loses_both", "row_margin", "column_margin",
)  # fmt: skip
OF_UNLIKE = (*_COMMON, "row_better", "column_better", "row_free", "column_free")


@dataclass(frozen=True)
class Kinds:
    """`window`: that of the context family, which computes once what both say. `unlike`: also of unlike words, as
    most are."""

    window: int = 3
    unlike: bool = True
    name: str = "kinds"
    requires: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        column = {
            name: (block, k) for block in Context(self.window)(grid).link for k, name in enumerate(block.names)
        }
        kind, alike, *unlike = cells_by_kind(grid)
        run, k = column["run>=3"]
        weighed = None if self.unlike else alike
        pins = pinned(grid, run.table[run.index, k] > 0, weighed)  # type: ignore[index]
        pinned_at = Block(PINS, pins, None if weighed is None else _rows(grid.n_cells, weighed))
        column |= {name: (pinned_at, k) for k, name in enumerate(PINS)}
        link = [_side_by_side(kind, alike, _values(column, OF_ALIKE, alike))]
        for name, own in zip(UNLIKE, unlike, strict=True) if self.unlike else ():
            names = tuple(f"{name}.{column}" for column in OF_UNLIKE)
            link.append(Block(names, _values(column, OF_UNLIKE, own), _rows(len(kind), own)))
        return NodeBlocks(tuple(link))


def word_kind(word: str) -> int:
    """Which of WORD_KINDS a word is of."""
    lower = word.lower()
    if lower in _OF_FUNCTION_WORD:
        return _OF_FUNCTION_WORD[lower]
    return _NUMBER["comma" if word == "," else "stop" if word in _STOPS else word_class(word)]


def _word_kinds(words: Sequence) -> np.ndarray:
    return np.array([word_kind(word) for word in words], dtype=np.int64)


def _kinds(pairs: WordPairs) -> np.ndarray:
    """[U] which of KINDS: by the words where they are identical, by their classes where they are less."""
    of_word = pairs.lexicon.attribute("kinds", _word_kinds)
    left, right, base = of_word[pairs.left], of_word[pairs.right], base_of(pairs)
    function = _IS_FUNCTION[left].astype(np.int64) + _IS_FUNCTION[right]
    names = (left == _NUMBER["name"]) & (right == _NUMBER["name"])
    numbers = (left == _NUMBER["number"]) | (right == _NUMBER["number"])
    cases = {
        "name~name": names & (base > 0),
        "word~word": base > 0,
        "punct|any": _IS_PUNCT[left] | _IS_PUNCT[right],
        "function|function": function == 2,
        "function|any": function == 1,
        "name|name": names,
        "number|any": numbers,
    }
    less = np.select(list(cases.values()), [KINDS.index(name) for name in cases], KINDS.index("word|word"))
    return np.where(base >= 1, np.minimum(left, right), less)


kind_of_words = Signal("kinds", FORM, _kinds)


def cells_by_kind(grid: Grid) -> tuple[np.ndarray, ...]:
    """[C] the kind of each cell; the cells of words that are alike, and those of each kind of unlike ones."""
    kind = grid.figure(kind_of_words).astype(np.int8)
    group = np.maximum(kind, len(ALIKE) - 1)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(KINDS)))
    return kind, *np.split(order, ends[len(ALIKE) - 1 : -1])


def _values(column: Mapping[str, tuple[Block, int]], names: Sequence[str], cells: np.ndarray) -> np.ndarray:
    """[cells, names] the columns' values in some cells; a row of zeros where there are none."""
    out = np.zeros((len(names), max(len(cells), 1)), dtype=np.float32)
    rows: dict[int, np.ndarray] = {}
    for line, name in zip(out, names, strict=True):
        block, k = column[name]
        if id(block) not in rows:
            rows[id(block)] = cells if block.index is None else block.index[cells]
        line[: len(cells)] = block.table[:, k][rows[id(block)]]  # type: ignore[index]
    return out.T


def _rows(size: int, cells: np.ndarray) -> np.ndarray:
    index = np.full(size, -1, dtype=np.int64)
    index[cells] = np.arange(len(cells))
    return index


def _side_by_side(kind: np.ndarray, cells: np.ndarray, values: np.ndarray) -> Block:
    """One block for all kinds of words that are alike: their cells are few."""
    names = tuple(f"{name}.{column}" for name in ALIKE for column in OF_ALIKE)
    group = kind[cells] if len(cells) else np.zeros(len(values), kind.dtype)
    return Block(names, Grouped(values, group, len(ALIKE)), _rows(len(kind), cells))
