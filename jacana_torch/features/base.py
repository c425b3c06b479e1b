"""What a feature family is, and what it hands on.

A family looks at a `Grid` (many pairs at once, flattened) and returns `Block`s. A block is a table of distinct
rows and an index that says which row each cell takes: what depends on two words alone has one row per distinct
word pair, and a neighbour's features are the same table under a shifted index. Nothing is ever repeated per cell
unless it truly differs per cell, and a linear model multiplies tables, not cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from .grid import Grid
    from .meeting import WordKey, WordPairs


@dataclass(frozen=True)
class Block:
    """Feature values for every cell: row `index[c]` of `table`, or nothing where the index is -1.

    `names`  K column names, without the family's prefix.
    `table`  [R, K] float, or None for one-hot columns (row r is column r, value 1).
    `index`  [C] int, or None where row c belongs to cell c.
    """

    names: tuple[str, ...]
    table: np.ndarray | None
    index: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Block:
        """The block whose cell c is this one's cell `rows[c]`."""
        return Block(self.names, self.table, rows if self.index is None else self.index[rows])

    def dense(self) -> np.ndarray:
        """[C, K]: the block written out, for tests and explanations."""
        table = np.eye(len(self.names)) if self.table is None else self.table
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
