"""All families of a model over many pairs at once: `FeatureSet(families)(pairs)` is a `FeatureBatch`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import Annotated

import numpy as np

from ..errors import ConfigError
from ..types import SentencePair, resources_of
from ..util.build import Items
from .api import Block, EdgeFamily, GapFamily, NodeBlocks, NodeFamily, WordFamily, prefixed
from .grid import Grid

Blocks = tuple[Block, ...]
# What aligners take: families by name; None for one that is turned off.
Families = Annotated[Mapping[str, NodeFamily | EdgeFamily | None], Items(0, 100)]


@dataclass(frozen=True)
class FeatureBatch:
    """Blocks over the flat cells of P pairs, with full column names (`string.identical`).

    `n_source`, `n_target`  [P] lengths;  `link` over the cells, `null` over the source tokens, `edge`, `start` and
    `end` for each distinct target length.
    """

    n_source: np.ndarray
    n_target: np.ndarray
    link: Blocks
    null: Blocks
    edge: Mapping[int, Blocks]
    start: Mapping[int, Blocks]
    end: Mapping[int, Blocks]

    @property
    def blocks(self) -> Iterator[Block]:
        yield from (*self.link, *self.null)
        for tables in (self.edge, self.start, self.end):
            for blocks in tables.values():
                yield from blocks

    def names(self) -> list[str]:
        """The distinct column names, sorted: the model's parameters."""
        names: set[str] = set()
        for block in self.blocks:
            names.update(block.names)
        return sorted(names)


class FeatureSet:
    """The families of a model. `drop` leaves families out, and raises ConfigError for a name that is unknown.

    With `gaps`, the edges of a target length are followed by its jumps across NULLs.
    """

    def __init__(
        self,
        families: Families,
        drop: Iterable[str] = (),
        gaps: bool = False,
    ) -> None:
        dropped = {drop} if isinstance(drop, str) else set(drop)
        unknown = sorted(dropped - set(families))
        if unknown:
            what = "families" if len(unknown) > 1 else "family"
            raise ConfigError(f"drop={unknown}: no such feature {what}; there are {sorted(families)}")
        self.gaps = gaps
        self.node: list[NodeFamily] = []
        self.edge: list[EdgeFamily] = []
        for name, family in families.items():
            if family is None or name in dropped:
                continue
            if isinstance(family, NodeFamily):
                self.node.append(family)
            if isinstance(family, EdgeFamily):
                self.edge.append(family)
            if not isinstance(family, (NodeFamily, EdgeFamily)):
                raise ConfigError(
                    f"{family!r} is neither a node nor an edge feature family: it lacks members of NodeFamily and "
                    "EdgeFamily in features/api.py"
                )
            if gaps and isinstance(family, EdgeFamily) and not isinstance(family, GapFamily):
                raise ConfigError(
                    f"feature family {family.name!r} has no `gap`, so it cannot score jumps across NULLs"
                )
        if not self.node:
            raise ConfigError("a model needs at least one node feature family, and all were dropped")
        self.names: list[str] = list(map(attrgetter("name"), [*self.node, *self.edge]))
        for name in self.names:
            if self.names.count(name) > 1:
                raise ConfigError(f"several feature families are named {name!r}: their columns would be the same")

    @property
    def requires(self) -> tuple[str, ...]:
        """The annotation layers that the families read."""
        return tuple(sorted(set(chain.from_iterable(map(attrgetter("requires"), self.node)))))

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the families read."""
        return resources_of(*self.node, *self.edge)

    def check_columns(
        self, names: Iterable[str], pruned: bool = False, others: Iterable[str] = (), edges: bool = True
    ) -> None:
        """Raise a ConfigError unless the columns of weights are those of these families, and none has no column.

        `pruned` columns may be all of a family. `others` are families that are not of this set. Without `edges`,
        only node families need columns.
        """
        ordered = sorted(names)  # then the columns of a family stand together
        known, own = {*self.names, *others}, dict[str, list[str]]()
        for family in known:
            own[family] = ordered[bisect_left(ordered, f"{family}.") : bisect_left(ordered, f"{family}/")]
        if sum(map(len, own.values())) != len(ordered):
            starts = tuple(f"{family}." for family in known)
            unknown = [name for name in ordered if not name.startswith(starts)]
            if unknown:
                raise ConfigError(
                    f"{len(unknown)} columns belong to no feature family of the config, the first "
                    f"{unknown[0][:60]!r}; its families are {', '.join(self.names)}"
                )
        needed: list[NodeFamily | EdgeFamily] = [*self.node, *(self.edge if edges else ())]
        missing = [one.name for one in needed if not own[one.name]]
        if missing and ordered and not pruned:
            raise ConfigError(f"no weights for the feature families {', '.join(missing)} of the config")
        for edge in self.edge if edges else ():
            wrong = set(own[edge.name]) - self._step_names(edge, 2)
            if (
                wrong
                and not isinstance(edge, NodeFamily)
                and self._step_names(edge, 2) == self._step_names(edge, 3)
            ):
                raise ConfigError(f"the feature family {edge.name!r} has no column {min(wrong)[:60]!r}")

    def __call__(self, pairs: Sequence[SentencePair]) -> FeatureBatch:
        """Compute all features of the pairs; fastest if they come in order of target length."""
        grid = Grid(pairs)
        parts = []
        for _, part in grid.parts():
            of_part = []
            for family in self.node:
                blocks, sides = family(part), []
                for some, size in ((blocks.link, part.n_cells), (blocks.null, part.n_tokens)):
                    side = []
                    for block in some:  # without the rows of places where there is no cell
                        checked(family.name, block, size)
                        if block.table is not None and block.index is not None and block.table.shape[0] > size:
                            table = np.asarray(block.table)
                            rows = np.where(block.index[:, None] < 0, 0, table[block.index])
                            block = Block(block.names, rows.astype(table.dtype, copy=False))
                        side.append(block)
                    sides.append(tuple(side))
                of_part.append(NodeBlocks(*sides))
            parts.append(of_part)
        link: list[Block] = []
        null: list[Block] = []
        for family, of_parts in zip(self.node, zip(*parts, strict=True), strict=True):
            links = map(join, zip(*map(attrgetter("link"), of_parts), strict=True))
            nulls = map(join, zip(*map(attrgetter("null"), of_parts), strict=True))
            link += _named(family.name, (*links, *_word_blocks(family, grid)), grid.n_cells)
            null += _named(family.name, nulls, grid.n_tokens)
        edge, start, end = {}, {}, {}
        for n in np.unique(grid.n_target).tolist():
            steps = self.edge_blocks(n)
            edge[n], start[n], end[n] = steps["edge"], steps["start"], steps["end"]
        return FeatureBatch(grid.n_source, grid.n_target, tuple(link), tuple(null), edge, start, end)

    def edge_blocks(self, n_target: int) -> dict[str, Blocks]:
        """The blocks of all edge families for one target length, with full names."""
        blocks: dict[str, Blocks] = {}
        for space, size in self.step_sizes(n_target).items():
            blocks[space] = ()
            for family in self.edge:
                blocks[space] += _named(family.name, self.step_blocks(family, n_target)[space], size)
        return blocks

    def step_blocks(self, family: EdgeFamily, n_target: int) -> dict[str, Blocks]:
        """The blocks of one family over the edges, starts and ends of one target length."""
        n, name = n_target, family.name
        edge = checked(name, family.edge(n), (n + 1) ** 2)
        edges: Blocks = (edge,)
        if self.gaps and isinstance(family, GapFamily):  # the jumps follow the edges
            gap = checked(name, family.gap(n), n**2)
            own = np.arange((n + 1) ** 2) if edge.index is None else edge.index
            jumps = np.arange(n**2) if gap.index is None else gap.index
            edges = (
                replace(edge, index=np.append(own, np.full_like(jumps, -1))),
                replace(gap, index=np.append(np.full_like(own, -1), jumps)),
            )
        start, end = checked(name, family.start(n), n + 1), checked(name, family.end(n), n + 1)
        return {"edge": edges, "start": (start,), "end": (end,)}

    def _step_names(self, family: EdgeFamily, n_target: int) -> set[str]:
        """The columns of an edge family for one target length; those of most depend on none."""
        blocks = chain.from_iterable(self.step_blocks(family, n_target).values())
        return {f"{family.name}.{name}" for block in blocks for name in block.names}

    def step_sizes(self, n_target: int) -> dict[str, int]:
        """How many edges, starts and ends one target length has."""
        n = n_target
        return {"edge": (n + 1) ** 2 + n**2 * self.gaps, "start": n + 1, "end": n + 1}


def blocks_of(family: NodeFamily, grid: Grid) -> NodeBlocks:
    """All blocks of a family, those of its word pairs included."""
    blocks = family(grid)
    return NodeBlocks(blocks.link + _word_blocks(family, grid), blocks.null)


def checked(family: str, block: Block, n_cells: int) -> Block:
    """The block. Raises ConfigError, with the family's name, if it does not cover the cells."""
    rows = len(block.names) if block.table is None else block.table.shape[0]
    rows = rows if block.index is None else len(block.index)
    if rows != n_cells:
        raise ConfigError(f"feature family {family!r} gave {rows} rows for {n_cells} cells ({block.names[:3]}...)")
    if block.table is not None and block.table.shape[1] != len(block.names):
        raise ConfigError(
            f"feature family {family!r} gave {block.table.shape[1]} columns and {len(block.names)} names"
        )
    return block


def join(blocks: Sequence[Block]) -> Block:
    """One block of the cells of several blocks in turn, with all of their columns."""
    number: dict[str, int] = {}
    dense = False  # whether every cell gets a row of its own, as those of a block without an index have
    for block in blocks:
        dense |= block.index is None
        for name in block.names:
            number.setdefault(name, len(number))
    names, tables, index, n_rows = tuple(number), [], [], 0
    for block in blocks:
        columns = np.fromiter(map(number.__getitem__, block.names), np.int64, len(block.names))
        if block.table is None:  # row r is column r
            rows = np.arange(len(columns)) if block.index is None else block.index
            index.append(np.append(columns, -1)[rows])
            continue
        own = table = np.asarray(block.table)
        if block.names != names:
            table = np.zeros((len(own), len(names)), dtype=own.dtype)
            table[:, columns] = own
        if block.index is not None:
            if dense:
                table = np.where(block.index[:, None] < 0, 0, table[block.index])
            index.append(np.where(block.index < 0, -1, block.index + n_rows))
        n_rows += len(table)
        tables.append(table)
    if not tables:
        return Block(names, None, np.concatenate(index))
    return Block(names, np.concatenate(tables), None if dense else np.concatenate(index))


def _word_blocks(family: NodeFamily, grid: Grid) -> Blocks:
    """The blocks of word pairs, by cell."""
    if not isinstance(family, WordFamily):
        return ()
    words = grid.words(family.key)
    blocks = []
    for block in family.word_blocks(words.pairs):
        blocks.append(block.at(words.cell))
    return tuple(blocks)


def _named(family: str, blocks: Iterable[Block], n_cells: int) -> Blocks:
    """The blocks with full names."""
    named = []
    for block in blocks:
        named.append(replace(checked(family, block, n_cells), names=prefixed(f"{family}.", block.names)))
    return tuple(named)
