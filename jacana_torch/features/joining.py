"""Blocks of the parts of a grid, made one block of the whole: what training keeps of a family.

In: what a family said of each part, in order. Out: the same for all cells in order, with no row that no cell has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .api import Block, Grouped, NodeBlocks


def joined(parts: Sequence[NodeBlocks]) -> NodeBlocks:
    """A family says as many things of each part, of the same columns where they are known beforehand."""
    link = zip(*(part.link for part in parts), strict=True)
    null = zip(*(part.null for part in parts), strict=True)
    return NodeBlocks(tuple(map(join, link)), tuple(map(join, null)))


def join(blocks: Sequence[Block]) -> Block:
    names: dict[str, int] = {}
    for block in blocks:
        for name in block.names:
            names.setdefault(name, len(names))
    if blocks[0].table is None:
        return Block(tuple(names), None, np.concatenate([_renumbered(block, names) for block in blocks]))
    tables = [_under(block, names) for block in blocks]
    if any(block.index is None for block in blocks):
        rows = [t if b.index is None else _rows(t, b.index) for t, b in zip(tables, blocks, strict=True)]
        return Block(tuple(names), np.concatenate(rows))
    first = np.cumsum([0, *(len(table) for table in tables)])
    index = [np.where(b.index < 0, -1, b.index + k) for b, k in zip(blocks, first, strict=False)]  # type: ignore[operator]
    return Block(tuple(names), np.concatenate(tables), np.concatenate(index))


def written(blocks: NodeBlocks) -> NodeBlocks:
    """Tables of which cells share no rows, without their index and without the rows of places that no cell has."""
    return NodeBlocks(tuple(map(_written, blocks.link)), tuple(map(_written, blocks.null)))


def _written(block: Block) -> Block:
    if block.table is None or block.index is None or len(block.table) <= len(block.index):
        return block
    return Block(block.names, _rows(block.table, block.index))


def _rows(table: np.ndarray | Grouped, index: np.ndarray) -> np.ndarray:
    rows = table[index]
    if (index < 0).any():
        rows[index < 0] = 0
    return rows


def _renumbered(block: Block, names: dict[str, int]) -> np.ndarray:
    number = np.array([names[name] for name in block.names] + [-1], dtype=np.int64)
    return number[np.arange(len(block.names)) if block.index is None else block.index]


def _under(block: Block, names: dict[str, int]) -> np.ndarray:
    """The block's table under all names, in their order."""
    if list(block.names) == list(names):
        return block.table  # type: ignore[return-value]
    table = np.zeros((len(block.table), len(names)), dtype=block.table.dtype)  # type: ignore[arg-type, union-attr]
    table[:, [names[name] for name in block.names]] = block.table
    return table
