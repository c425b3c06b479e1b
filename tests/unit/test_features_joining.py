"""Blocks of parts made one: values of all cells in order, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features.api import Block, NodeBlocks
from jacana_torch.features.joining import join, joined, written

NAMES = ("a", "b", "c", "d")


@st.composite
def blocks(draw) -> list[Block]:
    """One family's say of several parts: always one-hot or always tables, with and without an index."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    one_hot, fixed = draw(st.booleans()), draw(st.booleans())
    out = []
    for _ in range(draw(st.integers(1, 4))):
        names = NAMES[:2] if fixed else tuple(rng.permutation(NAMES)[: rng.integers(0, 5)].tolist())
        n_cells = int(rng.integers(0, 5))
        if one_hot:
            alone = len(names) == n_cells and rng.random() < 0.5
            index = None if alone else rng.integers(-1, max(len(names), 0), n_cells)
            out.append(Block(names, None, index))
        elif rng.random() < 0.5:
            out.append(Block(names, rng.normal(size=(n_cells, len(names)))))
        else:
            rows = int(rng.integers(1, 9))
            table = rng.normal(size=(rows, len(names))).astype(np.float32)
            out.append(Block(names, table, rng.integers(-1, rows, n_cells)))
    return out


def cells(block: Block) -> list[dict[str, float]]:
    """The values of each cell by name, but for zeros."""
    return [{n: v for n, v in zip(block.names, row, strict=True) if v} for row in block.dense().tolist()]


@given(blocks())
def test_joined_blocks_say_what_their_parts_say(parts):
    together = join(parts)
    assert cells(together) == [cell for part in parts for cell in cells(part)]
    assert together.names == tuple(dict.fromkeys(name for part in parts for name in part.names))


@given(blocks())
def test_written_blocks_say_the_same_with_no_more_rows_than_cells(parts):
    before = NodeBlocks(tuple(parts), tuple(reversed(parts)))
    after = written(before)
    for one, other in zip(before.link + before.null, after.link + after.null, strict=True):
        assert cells(one) == cells(other)
        n_cells = len(one.dense())
        assert other.table is None or len(other.table) <= n_cells


def test_a_family_says_as_much_of_every_part():
    a, b = Block(("x",), np.ones((1, 1))), Block(("y",), np.zeros((2, 1)))
    both = joined([NodeBlocks((a, b), (a,)), NodeBlocks((b, a), (b,))])
    assert [len(x.dense()) for x in (*both.link, *both.null)] == [3, 3, 3]
    with pytest.raises(ValueError, match="zip"):
        joined([NodeBlocks((a,)), NodeBlocks((a, b))])
