"""All that the author of a feature family needs: what a family is, what it is given, and what it returns.

A family computes on a `Grid`, many sentence pairs at once, and returns `Block`s of features over its cells. What
two *words* say is computed once for each distinct pair of words, in `word_blocks` (`WordFamily`). What a *cell*
says, such as its place or its neighbours, is computed for every cell, in the call (`NodeFamily`). An example of
both tells whether two words have as many vowels, and whether the words to their left have:

>>> class Vowels:
...     name = "vowels"  # the prefix of its columns
...     requires = ("lemma",)  # the annotation layers that it reads
...     key = WordKey(None, ("lemma",))  # a word is its lemma alone
...
...     def word_blocks(self, pairs):
...         return (Block(("same",), self.same(pairs)[:, None]),)  # one row for each pair of words
...
...     def __call__(self, grid):
...         padded = grid.padded()  # here a neighbour is a fixed step away
...         same = grid.per_cell(Signal("vowels.same", self.key, self.same))  # [C]
...         left = padded.near(padded.field(same, padded.place), -1, -1)  # [places]
...         found = grid.row_max(same)  # [Ts]: over the cells of each source token
...         link = Block(("left_same",), left[:, None], padded.place)  # cell c has row place[c]
...         return NodeBlocks((link,), (Block(("found",), found[:, None]),))
...
...     def same(self, pairs):
...         count = pairs.lexicon.attribute("vowels", self.vowels)  # [W], computed once
...         return (count[pairs.left] == count[pairs.right]).astype(float)
...
...     def vowels(self, words):
...         return [sum(letter in "aeiou" for letter in lemma) for (lemma,) in words]
>>> from jacana_torch.features.featureset import FeatureSet
>>> from jacana_torch.types import Sentence, SentencePair
>>> pair = SentencePair(
...     Sentence(("Dogs", "run"), {"lemma": ("dog", "run")}),
...     Sentence(("A", "boat", "sank"), {"lemma": ("a", "boat", "sink")}),
... )
>>> features = FeatureSet({"vowels": Vowels()})([pair])
>>> for block in (*features.link, *features.null):
...     print(*block.names, block.dense()[:, 0].astype(int).tolist())
vowels.left_same [0, 0, 0, 0, 1, 0]
vowels.same [1, 0, 1, 1, 0, 1]
vowels.found [1, 1]

What a `Grid` offers (Ts source tokens, Tt target tokens, C cells):

- `pair`, `m`, `n`: [C] the pair of each cell, and its positions in source and target;
- `source_token`, `target_token`: [C] the tokens of each cell;
- `source_pair`, `source_position`, `target_pair`, `target_position`: [Ts], [Tt] coordinates of tokens;
- `source_tokens`, `source_layer(name)`, `target_tokens`, `target_layer(name)`: tokens and layers of all pairs;
- `words(key)`: a `WordTable`, the word of each token, the distinct pairs of words, and which one each cell has;
- `per_cell(signal)`: [C] a number for the two words of each cell, computed once for each pair of words;
- `padded()`: the `PaddedGrid`, with neighbours, maxima of rows and columns, and best competitors;
- `row_max`, `column_max`, `cell_at`, `shift`: maxima and neighbours without padding (`util.geometry.Geometry`);
- `memo(key, compute)`: a value that several families need, computed once;
- `shared(key, compute)`: the same for a value that does not depend on the direction.

Features of a pair may not depend on its batch, nor an attribute of a word on other words: it is computed of the
words that are new, and kept for later batches under its name. A family that reads linguistic resources names them
in a member `resources` (`types.ReadsResources`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .grid import ColumnTable, Grid, WordTable
from .words import Lexicon, Signal, WordKey, WordPairs

__all__ = [
    "Block", "EdgeFamily", "GapFamily", "Grid", "Grouped", "Lexicon", "NodeBlocks", "NodeFamily", "Signal",
    "WordFamily", "WordKey", "WordPairs", "WordTable",
]  # fmt: skip


@dataclass(frozen=True)
class Grouped:
    """A table with columns for `count` groups, where each row has values in one group and zeros in the others.

    `values` [R, K] are those of the columns of `group` [R]. NumPy takes it for the whole table [R, count * K].
    """

    values: np.ndarray
    group: np.ndarray
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.count * self.values.shape[1]

    def __getitem__(self, key: Any) -> np.ndarray:
        chosen = self
        if isinstance(key, np.ndarray):  # rows
            chosen, key = Grouped(self.values[key], self.group[key], self.count), slice(None)
        rows: np.ndarray = np.asarray(chosen)[key]
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        size = len(self.values)
        table = np.zeros((size, self.count, self.values.shape[1]), dtype=dtype or self.values.dtype)
        table[np.arange(size), self.group] = self.values
        return table.reshape(self.shape)

    def __matmul__(self, weights: np.ndarray) -> np.ndarray:
        of_row = weights.reshape(self.count, -1)[self.group]
        product: np.ndarray = np.einsum("rk,rk->r", self.values.astype(weights.dtype), of_row)
        return product


Table = np.ndarray | Grouped | ColumnTable


@dataclass(frozen=True)
class Block:
    """Feature values of every cell: row `index[c]` of `table`, or zeros where the index is -1.

    What depends on two words alone has one row for each pair of words, and a neighbour's features are the same
    table with another index. A linear model multiplies tables, not cells.

    `names`  K column names, without the family's prefix.
    `table`  [R, K] float (or `Grouped`, or `ColumnTable`), or None for one-hot columns (row r is column r, with
             value 1).
    `index`  [C] int, or None if row c belongs to cell c.
    """

    names: tuple[str, ...]
    table: Table | None
    index: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Block:
        """The block whose cell c is this one's cell `rows[c]`."""
        return Block(self.names, self.table, rows if self.index is None else self.index[rows])

    def dense(self) -> np.ndarray:
        """[C, K] the values of all cells, for tests and explanations."""
        table = np.eye(len(self.names)) if self.table is None else np.asarray(self.table)
        if self.index is None:
            return table
        padded: np.ndarray = np.vstack([table, np.zeros((1, table.shape[1]), table.dtype)])[self.index]
        return padded


def prefixed(prefix: str, names: Iterable[str]) -> tuple[str, ...]:
    """Column names with a prefix."""
    return tuple(map(prefix.__add__, names))


@dataclass(frozen=True)
class NodeBlocks:
    """A family's blocks over the cells (`link`), and over the source tokens (`null`)."""

    link: tuple[Block, ...] = ()
    null: tuple[Block, ...] = ()


@runtime_checkable
class NodeFamily(Protocol):
    """A family of features of links and NULLs. It is stateless: models find columns by their names.

    `name`      the prefix of its columns, and its name in `drop=[...]`.
    `requires`  the annotation layers that it reads.
    """

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> tuple[str, ...]: ...

    def __call__(self, grid: Grid) -> NodeBlocks: ...


@runtime_checkable
class WordFamily(NodeFamily, Protocol):
    """A node family with features of two words alone, where `key` makes tokens words.

    `word_blocks` has a row for each pair of words, and the call has the other features.
    """

    @property
    def key(self) -> WordKey: ...

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]: ...


@runtime_checkable
class EdgeFamily(Protocol):
    """A family of features of transitions from one source token's state to the next one's, whatever the words.

    State 0 is NULL, and state n is target token n - 1. For a target of N tokens, S = N + 1: `edge(N)` is a block
    over the S * S transitions (from-state major), `start(N)` over the S first states, `end(N)` over the S last.
    """

    @property
    def name(self) -> str: ...

    def edge(self, n_target: int) -> Block: ...
    def start(self, n_target: int) -> Block: ...
    def end(self, n_target: int) -> Block: ...


@runtime_checkable
class GapFamily(EdgeFamily, Protocol):
    """An edge family for chains whose NULLs keep the last linked position.

    `gap(N)` is a block over the N * N jumps from a position, across NULLs, to the next one (from-position major).
    """

    def gap(self, n_target: int) -> Block: ...
