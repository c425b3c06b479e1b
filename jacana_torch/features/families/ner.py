"""The ner family: what two names have in common.

Whether two words are in entities of one type, whether their names share a word ("Mr. Smith" and "John Smith"), and
whether one is an acronym of the other's name (U.N. and United Nations). The last two also use capital letters
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL
from ..api import Block, NodeBlocks, prefixed
from ..grid import Grid
from ..lexical import LOWER
from ..name_spans import Span, acronym_cells, entity_spans, name_spans

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Ner:
    """`entities`: read the entity labels; without them, names are capitalised words."""

    name: str = "ner"
    entities: bool = True
    resources: Annotated[tuple[str, ...], INTERNAL] = ()

    @property
    def requires(self) -> tuple[str, ...]:
        return ("ner",) if self.entities else ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        acronyms = acronym_cells(grid, self.entities)
        columns = {f"acronym.{kind}": cells for kind, cells in acronyms.items()}
        any_acronym = np.logical_or.reduce(list(acronyms.values()))
        null = {"acronym.found": grid.row_max(any_acronym.astype(np.float64))}
        sides = [p.source for p in grid.pairs], [p.target for p in grid.pairs]
        names = _Spans.of(grid, [[name_spans(s.tokens) for s in side] for side in sides])
        _add_spans(grid, names, "name", columns, null)
        link_blocks: list[Block] = []
        null_blocks: list[Block] = []
        if self.entities:
            spans = [[entity_spans(s.layer("ner")) for s in side] for side in sides]
            _add_spans(grid, _Spans.of(grid, spans), "entity", columns, null)
            link_blocks, null_blocks = _type_blocks(grid)
        link_blocks.append(_sparse(columns, grid.n_cells))
        null_blocks.append(Block(tuple(null), np.column_stack(list(null.values())).astype(np.float64), None))
        return NodeBlocks(tuple(link_blocks), tuple(null_blocks))


def _sparse(columns: dict[str, np.ndarray], n_cells: int) -> Block:
    """A row for each distinct combination of flags; most cells have no names, and so no row."""
    flags = np.column_stack(list(columns.values()))
    cells = np.flatnonzero(flags.any(axis=1))
    code = flags[cells] @ (1 << np.arange(flags.shape[1], dtype=np.int64))
    _, first, where = np.unique(code, return_index=True, return_inverse=True)
    index = np.full(n_cells, -1, dtype=np.int64)
    index[cells] = where
    return Block(tuple(columns), flags[cells[first]].astype(np.float64), index)


@dataclass(frozen=True)
class _Spans:
    """The spans of both sides: the number of each token's span or -1; their lengths; which tokens are the last."""

    source: np.ndarray
    target: np.ndarray
    source_length: np.ndarray
    target_length: np.ndarray
    source_last: np.ndarray
    target_last: np.ndarray

    @staticmethod
    def of(grid: Grid, spans: Sequence[Sequence[Sequence[Span]]]) -> _Spans:
        (source, n_source), (target, n_target) = (
            _numbered(start, size, side)
            for start, size, side in (
                (grid.source_start, len(grid.source_pair), spans[0]),
                (grid.target_start, len(grid.target_pair), spans[1]),
            )
        )
        return _Spans(source, target, n_source, n_target, _last(source), _last(target))


def _numbered(start: np.ndarray, size: int, spans: Sequence[Sequence[Span]]) -> tuple[np.ndarray, np.ndarray]:
    number = np.full(size, -1, dtype=np.int64)
    lengths: list[int] = []
    for offset, some in zip(start.tolist(), spans, strict=True):
        for first, behind in some:
            number[offset + first : offset + behind] = len(lengths)
            lengths.append(behind - first)
    return number, np.array(lengths, dtype=np.int64)


def _last(number: np.ndarray) -> np.ndarray:
    """[T] whether a token is the last of its span."""
    return np.asarray((number >= 0) & (np.append(number[1:], -1) != number))


def _add_spans(grid: Grid, spans: _Spans, prefix: str, columns: Columns, null: Columns) -> None:
    """Add the link and NULL columns of one kind of spans."""
    s, t = spans.source[grid.source_token], spans.target[grid.target_token]
    both = (s >= 0) & (t >= 0)
    words = grid.words(LOWER)
    identical = (words.pairs.left == words.pairs.right)[words.cell]
    code = np.where(both, s * (len(spans.target_length) + 1) + t, -1)
    same = np.flatnonzero(both & identical)
    shares = both & np.isin(code, code[same])
    in_source = _count_of(code, code[same], grid.source_token[same])
    in_target = _count_of(code, code[same], grid.target_token[same])
    covers_source = shares & (in_source == _at(spans.source_length, s))
    covers_target = shares & (in_target == _at(spans.target_length, t))
    columns[f"{prefix}.both"] = both
    columns[f"{prefix}.one"] = (s >= 0) != (t >= 0)
    columns[f"{prefix}.shares_word"] = shares & ~identical
    columns[f"{prefix}.shares_word.identical"] = shares & identical
    columns[f"{prefix}.same_words"] = covers_source & covers_target
    columns[f"{prefix}.partial"] = covers_source != covers_target
    columns[f"{prefix}.both_last"] = (
        both & spans.source_last[grid.source_token] & spans.target_last[grid.target_token]
    )
    columns[f"{prefix}.shares_nothing"] = both & ~shares
    found = grid.row_max(identical.astype(np.float64)) > 0
    shared = grid.row_max(shares.astype(np.float64)) > 0
    inside = spans.source >= 0
    null[f"{prefix}.inside"] = inside
    null[f"{prefix}.inside.missing"] = inside & ~found
    null[f"{prefix}.rest_of_shared"] = shared & ~found
    null[f"{prefix}.none_shared"] = inside & ~shared


def _at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(np.append(values, 0)[index])


def _count_of(code: np.ndarray, found: np.ndarray, token: np.ndarray) -> np.ndarray:
    """[C] how many distinct tokens were found under the code of each cell."""
    distinct = np.unique(np.column_stack([found, token]), axis=0)[:, 0]
    return np.searchsorted(distinct, code, side="right") - np.searchsorted(distinct, code, side="left")


def _type_blocks(grid: Grid) -> tuple[list[Block], list[Block]]:
    """The entity types of the two words: same, different, and each pair of types; for NULL the type itself."""
    number: dict[str, int] = {"": 0}
    sides = []
    for labels in (grid.source_layer("ner"), grid.target_layer("ner")):
        sides.append(np.array([number.setdefault(_type(x), len(number)) for x in labels], dtype=np.int64))
    names = list(number)
    s, t = sides[0][grid.source_token], sides[1][grid.target_token]
    code, index = np.unique(s * len(names) + t, return_inverse=True)
    left, right = np.divmod(code, len(names))
    both = (left > 0) & (right > 0)
    columns = {"type.same": both & (left == right), "type.different": both & (left != right)}
    table = np.column_stack(list(columns.values())).astype(np.float64)
    titles = tuple(f"type.{names[a] or 'O'}2{names[b] or 'O'}" for a, b in zip(left, right, strict=True))
    used = np.flatnonzero((left > 0) | (right > 0))
    row = np.full(len(code), -1)
    row[used] = np.arange(len(used))
    link = [Block(tuple(columns), table, index), Block(tuple(titles[i] for i in used), None, row[index])]
    null = [Block(prefixed("type.", names[1:]), None, sides[0] - 1)]
    return link, null


def _type(label: str) -> str:
    """The type of a BIO label; empty for O."""
    prefix, _, entity_type = label.partition("-")
    return entity_type if prefix in ("B", "I") else ""
