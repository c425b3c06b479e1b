"""What a feature family is, and what it hands on.

A family looks at a `Grid` (many pairs at once, flattened) and returns `Block`s. A block is a table of distinct
rows and an index that says which row each cell takes: what depends on two words alone has one row per distinct
word pair, and a neighbour's features are the same table under a shifted index. Nothing is ever repeated per cell
unless it truly differs per cell, and a linear model multiplies tables, not cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from .grid import Grid
    from .words import WordKey, WordPairs


@dataclass(frozen=True)
class Grouped:
    """A table of which most is zero, unwritten: row r has `values[r]` in the columns of group `group[r]`.

    Its columns are those of `values`, once for each of `count` groups. Numpy takes it for the whole table.
    """

    values: np.ndarray
    group: np.ndarray
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.count * self.values.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, np.ndarray):  # rows
            return Grouped(self.values[key], self.group[key], self.count).__array__()
        return self.__array__()[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        table = np.zeros((len(self), self.count, self.values.shape[1]), dtype=dtype or self.dtype)
        table[np.arange(len(self)), self.group] = self.values
        return table.reshape(self.shape)

    def __matmul__(self, weights: np.ndarray) -> np.ndarray:
        of_row = weights.reshape(self.count, -1)[self.group]
        return np.einsum("rk,rk->r", self.values.astype(weights.dtype), of_row)


@dataclass(frozen=True)
class Block:
    """Feature values for every cell: row `index[c]` of `table`, or nothing where the index is -1.

    `names`  K column names, without the family's prefix.
    `table`  [R, K] float (perhaps `Grouped`), or None for one-hot columns (row r is column r, value 1).
    `index`  [C] int, or None where row c belongs to cell c.
    """

    names: tuple[str, ...]
    table: np.ndarray | Grouped | None
    index: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Block:
        """The block whose cell c is this one's cell `rows[c]`."""
        return Block(self.names, self.table, rows if self.index is None else self.index[rows])

    def dense(self) -> np.ndarray:
        """[C, K]: the block written out, for tests and explanations."""
        table = np.eye(len(self.names)) if self.table is None else np.asarray(self.table)
        if self.index is None:
            return table
        padded = np.vstack([table, np.zeros((1, table.shape[1]), table.dtype)])
        return padded[self.index]


@dataclass(frozen=True)
class NodeBlocks:
    """What a family says: blocks over the link cells, and blocks over the NULL cells (one per source token)."""

    link: tuple[Block, ...] = ()
    null: tuple[Block, ...] = ()


@runtime_checkable
class NodeFamily(Protocol):
    """A family is stateless: its columns are found again by name, so it may name what it meets (`vbz2nn`).

    `name`      the prefix of its columns, and what `drop=[...]` takes.
    `requires`  the annotation layers that it reads.
    `resources` (optional) names of the resources that it reads.
    """

    name: str
    requires: tuple[str, ...]

    def __call__(self, grid: Grid) -> NodeBlocks: ...


@runtime_checkable
class WordFamily(NodeFamily, Protocol):
    """A node family of which a part depends on the two words alone, which are what `key` takes of a token.

    `word_blocks` gives that part, over pairs of words, for link cells; the call gives the rest. Where nothing is
    trained, pairs of words that were met before are not asked for again: it must be the same every time.
    """

    key: WordKey

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]: ...


@runtime_checkable
class EdgeFamily(Protocol):
    """Scores transitions from one source token's state to the next one's; it never looks at words.

    State 0 is NULL, state n is target token n - 1. For a target of N tokens, S = N + 1: `edge(N)` is a block over
    the S * S transitions (from-state major), `start(N)` one over the S first states, `end(N)` one over the S last.
    """

    name: str

    def edge(self, n_target: int) -> Block: ...
    def start(self, n_target: int) -> Block: ...
    def end(self, n_target: int) -> Block: ...


@runtime_checkable
class GapFamily(EdgeFamily, Protocol):
    """An edge family for chains that remember: `gap(N)` is a block over the N * N jumps from a position, across
    NULLs, to the next position (from-position major)."""

    def gap(self, n_target: int) -> Block: ...
