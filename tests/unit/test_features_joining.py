"""Blocks of parts joined: values of all cells in order, column by column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features import grid as module
from jacana_torch.features.api import Block, NodeBlocks
from jacana_torch.features.featureset import FeatureSet, join
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

NAMES = ("a", "b", "c", "d")


@st.composite
def blocks(draw) -> list[Block]:
    """A family's blocks of several parts: always one-hot or always tables, with and without an index."""
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


def pair(m: int, n: int) -> SentencePair:
    return SentencePair(Sentence(("a",) * m), Sentence(("b",) * n))


class Places:
    """The place of each cell in its part, from a table of all places; and one block or two of the NULLs."""

    name, requires = "places", ()

    def __init__(self, uneven: bool = False) -> None:
        self.uneven = uneven

    def __call__(self, grid: Grid) -> NodeBlocks:
        padded = grid.padded()
        table = np.arange(1.0, padded.size + 1)[:, None]
        index = np.where(grid.n == 1, -1, padded.place)
        null = Block(("null",), np.ones((grid.n_tokens, 1)))
        return NodeBlocks((Block(("x",), table, index),), (null,) * (2 if self.uneven and grid.n_cells > 6 else 1))


def test_a_batch_has_the_rows_of_cells_alone(monkeypatch):
    """Not those of all places, which most tables over a padded grid have."""
    monkeypatch.setattr(module, "PART_PLACES", 1)
    pairs = [pair(2, 3), pair(4, 3), pair(1, 1)]
    batch = FeatureSet({"places": Places()})(pairs)
    (block,), parts = batch.link, [Places()(Grid([x])).link[0] for x in pairs]
    assert cells(block) == [{f"places.{n}": v for n, v in cell.items()} for part in parts for cell in cells(part)]
    assert len(block.table) == len(block.dense()) == 6 + 12 + 1


def test_a_family_has_as_many_blocks_for_every_part(monkeypatch):
    monkeypatch.setattr(module, "PART_PLACES", 1)
    with pytest.raises(ValueError, match="zip"):
        FeatureSet({"places": Places(uneven=True)})([pair(2, 3), pair(4, 3)])
