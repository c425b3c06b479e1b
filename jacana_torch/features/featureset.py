"""All families of a model, run over many pairs at once: pairs in, a FeatureBatch out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError
from ..types import SentencePair, resources_of
from .api import Block, EdgeFamily, GapFamily, NodeBlocks, NodeFamily, WordFamily
from .grid import Grid
from .joining import joined, written
from .words import WordKey


@dataclass(frozen=True)
class FeatureBatch:
    """Blocks over the flat cells of some pairs, with full column names (`string.identical`).

    `n_source`, `n_target`  [P];  `link` over the link cells, `null` over the source tokens, `edge`, `start` and
    `end` for each distinct target length.
    """

    n_source: np.ndarray
    n_target: np.ndarray
    link: tuple[Block, ...]
    null: tuple[Block, ...]
    edge: Mapping[int, tuple[Block, ...]]
    start: Mapping[int, tuple[Block, ...]]
    end: Mapping[int, tuple[Block, ...]]

    @property
    def blocks(self) -> Iterator[Block]:
        yield from (*self.link, *self.null)
        for tables in (self.edge, self.start, self.end):
            yield from (block for per_length in tables.values() for block in per_length)

    def names(self) -> list[str]:
        """Every column's name once, sorted: the model's parameters."""
        return sorted({name for block in self.blocks for name in block.names})


class FeatureSet:
    """Families by name. `drop` leaves families out; a name that is not there is an error, not a full model.

    With `gaps`, the edges of a target length are followed by its jumps across NULLs.
    """

    def __init__(
        self,
        families: Mapping[str, NodeFamily | EdgeFamily | None],
        drop: Iterable[str] = (),
        gaps: bool = False,
    ) -> None:
        present = {name: family for name, family in families.items() if family is not None}
        drop = {drop} if isinstance(drop, str) else set(drop)
        unknown = sorted(drop - set(families))
        if unknown:
            what = "families" if len(unknown) > 1 else "family"
            raise ConfigError(f"drop={unknown}: no such feature {what}; there are {sorted(families)}")
        kept = [family for name, family in present.items() if name not in drop]
        self.node: list[NodeFamily] = [f for f in kept if isinstance(f, NodeFamily)]
        self.edge: list[EdgeFamily] = [f for f in kept if isinstance(f, EdgeFamily)]
        strange = [f for f in kept if not isinstance(f, (NodeFamily, EdgeFamily))]
        if strange:
            raise ConfigError(f"{strange[0]!r} is neither a node nor an edge feature family")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ConfigError(
                f"several feature families are named {twice[0]!r}; their columns could not be told apart"
            )
        blind = [family.name for family in self.edge if gaps and not isinstance(family, GapFamily)]
        if blind:
            raise ConfigError(
                f"feature family {blind[0]!r} has no `gap`, so it says nothing of jumps across NULLs"
            )
        self.gaps = gaps
        if not self.node:
            raise ConfigError("a model needs at least one node feature family, and all were dropped")

    @property
    def names(self) -> list[str]:
        return [family.name for family in self.node] + [family.name for family in self.edge]

    @property
    def requires(self) -> tuple[str, ...]:
        """The annotation layers that the families read."""
        return tuple(sorted({layer for family in self.node for layer in family.requires}))

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the families read; a family that reads none need not say so."""
        return resources_of(*self.node, *self.edge)

    def by_word_key(self) -> dict[WordKey, list[WordFamily]]:
        """The families that say something of two words alone, by what they take for a word."""
        found: dict[WordKey, list[WordFamily]] = {}
        for family in self.node:
            if isinstance(family, WordFamily):
                found.setdefault(family.key, []).append(family)
        return found

    def node_blocks(self, grid: Grid) -> Iterator[NodeBlocks]:
        """Each node family's blocks over the whole grid."""
        said = [[written(_said(family, part)) for family in self.node] for _, part in grid.parts()]
        for family, parts in zip(self.node, zip(*said, strict=True), strict=True):
            blocks = joined(parts)
            blocks = NodeBlocks(blocks.link + word_blocks(family, grid), blocks.null)
            yield NodeBlocks(
                tuple(_prefixed(family.name, block, grid.n_cells) for block in blocks.link),
                tuple(_prefixed(family.name, block, len(grid.source_pair)) for block in blocks.null),
            )

    def step_blocks(self, family: EdgeFamily, n_target: int) -> dict[str, tuple[Block, ...]]:
        """What an edge family says of the edges, starts and ends of one target length."""
        n, name = n_target, family.name
        edges: tuple[Block, ...] = (checked(name, family.edge(n), (n + 1) ** 2),)
        if self.gaps and isinstance(family, GapFamily):
            edges = _in_turn(edges[0], checked(name, family.gap(n), n**2))
        outer = {"start": family.start(n), "end": family.end(n)}
        return {"edge": edges, **{space: (checked(name, block, n + 1),) for space, block in outer.items()}}

    def step_sizes(self, n_target: int) -> dict[str, int]:
        """How many edges, starts and ends there are of one target length."""
        n = n_target
        return {"edge": (n + 1) ** 2 + n**2 * self.gaps, "start": n + 1, "end": n + 1}

    def edge_blocks(self, n_target: int) -> dict[str, tuple[Block, ...]]:
        """The edge families' blocks, with full names."""
        said = [(family, self.step_blocks(family, n_target)) for family in self.edge]
        return {
            space: tuple(_prefixed(family.name, block, size) for family, blocks in said for block in blocks[space])
            for space, size in self.step_sizes(n_target).items()
        }

    def __call__(self, pairs: Sequence[SentencePair]) -> FeatureBatch:
        """Quickest where pairs come in the order of their targets' lengths."""
        grid = Grid(pairs)
        families = list(self.node_blocks(grid))
        link = tuple(block for blocks in families for block in blocks.link)
        null = tuple(block for blocks in families for block in blocks.null)
        tables = {n: self.edge_blocks(n) for n in np.unique(grid.n_target).tolist()}
        edge, start, end = (
            {n: blocks[space] for n, blocks in tables.items()} for space in ("edge", "start", "end")
        )
        return FeatureBatch(grid.n_source, grid.n_target, link, null, edge, start, end)


def blocks_of(family: NodeFamily, grid: Grid) -> NodeBlocks:
    """All that a family says of a grid, also what depends on words alone."""
    blocks = family(grid)
    return NodeBlocks(blocks.link + word_blocks(family, grid), blocks.null)


def _said(family: NodeFamily, grid: Grid) -> NodeBlocks:
    blocks = family(grid)
    for some, n_cells in ((blocks.link, grid.n_cells), (blocks.null, len(grid.source_pair))):
        for block in some:
            checked(family.name, block, n_cells)
    return blocks


def word_blocks(family: NodeFamily, grid: Grid) -> tuple[Block, ...]:
    """What a family says of the two words of each cell."""
    if not isinstance(family, WordFamily):
        return ()
    words = grid.words(family.key)
    return tuple(block.at(words.cell) for block in family.word_blocks(words.pairs))


def checked(family: str, block: Block, n_cells: int) -> Block:
    """The block; one that does not cover the cells is a fault of the family, said by name."""
    rows = len(block.index) if block.index is not None else len(block.table)  # type: ignore[arg-type]
    if rows != n_cells:
        raise ConfigError(f"feature family {family!r} gave {rows} rows for {n_cells} cells ({block.names[:3]}...)")
    if block.table is not None and block.table.shape[1] != len(block.names):
        raise ConfigError(
            f"feature family {family!r} gave {block.table.shape[1]} columns and {len(block.names)} names"
        )
    return block


def _in_turn(first: Block, second: Block) -> tuple[Block, Block]:
    """Two blocks over the cells of the first, followed by those of the second."""
    own, other = (np.arange(len(b.table)) if b.index is None else b.index for b in (first, second))  # type: ignore[arg-type]
    nothing = np.full_like(other, -1), np.full_like(own, -1)
    return (
        replace(first, index=np.concatenate([own, nothing[0]])),
        replace(second, index=np.concatenate([nothing[1], other])),
    )


def _prefixed(family: str, block: Block, n_cells: int) -> Block:
    """The block with full names."""
    return replace(checked(family, block, n_cells), names=tuple(f"{family}.{name}" for name in block.names))
