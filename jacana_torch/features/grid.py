"""Many sentence pairs at once, flattened: the coordinates that feature families compute in.

Cells are ordered by pair, then source position m, then target position n; NULL is not among them (a NULL cell
belongs to a source token, and source tokens are ordered by pair, then m).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from ..types import SentencePair

T = TypeVar("T")


@dataclass(frozen=True)
class Words:
    """The distinct words of a grid under some key, and where each pair of them meets.

    `values`   the W distinct keys, in order of first appearance (source tokens, then target tokens).
    `source`   [Ts] word of each source token;  `target`  [Tt] word of each target token.
    `left`, `right`  [U] the words of each distinct (source word, target word) pair that meets in a cell.
    `cell`     [C] which of the U pairs meets in each cell.
    """

    values: list
    source: np.ndarray
    target: np.ndarray
    left: np.ndarray
    right: np.ndarray
    cell: np.ndarray


def _ragged_arange(counts: np.ndarray) -> np.ndarray:
    """0..counts[0]-1, 0..counts[1]-1, ... in one array."""
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(starts, counts)


class Grid:
    """Coordinates of all cells of `pairs`.

    `n_source`, `n_target`  [P] lengths;  `source_start`, `target_start`  [P] first flat token of each pair;
    `cell_start`  [P] first cell of each pair.
    Per cell [C]: `pair`, `m`, `n`, and flat token numbers `source_token`, `target_token`.
    Per token: `source_pair`, `source_position` [Ts] and `target_pair`, `target_position` [Tt].
    """

    def __init__(self, pairs: Sequence[SentencePair]) -> None:
        self.pairs = list(pairs)
        self.n_source = np.array([len(p.source) for p in self.pairs], dtype=np.int64)
        self.n_target = np.array([len(p.target) for p in self.pairs], dtype=np.int64)
        self.source_start = np.cumsum(self.n_source) - self.n_source
        self.target_start = np.cumsum(self.n_target) - self.n_target
        number = np.arange(len(self.pairs))
        self.source_pair = np.repeat(number, self.n_source)
        self.target_pair = np.repeat(number, self.n_target)
        self.source_position = _ragged_arange(self.n_source)
        self.target_position = _ragged_arange(self.n_target)
        cells = self.n_source * self.n_target
        self.cell_start = np.cumsum(cells) - cells
        self.pair = np.repeat(number, cells)
        within = _ragged_arange(cells)
        width = np.maximum(self.n_target, 1)[self.pair]
        self.m, self.n = within // width, within % width
        self.source_token = self.source_start[self.pair] + self.m
        self.target_token = self.target_start[self.pair] + self.n
        self._memo: dict[object, object] = {}
        self._shared: dict[object, object] = {}
        self._mirror: Grid | None = None

    @property
    def n_cells(self) -> int:
        return len(self.pair)

    def source_layer(self, name: str) -> list:
        """A layer's values for all source tokens, flat. Missing layers are an error that names the annotator."""
        return [value for p in self.pairs for value in p.source.layer(name)]

    def target_layer(self, name: str) -> list:
        return [value for p in self.pairs for value in p.target.layer(name)]

    @cached_property
    def source_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.source.tokens]

    @cached_property
    def target_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.target.tokens]

    def shift(self, dm: int, dn: int) -> np.ndarray:
        """[C] the cell dm rows and dn columns away, -1 where that is outside the pair."""
        return self.memo(("shift", dm, dn), lambda: self._shift(dm, dn))

    def _shift(self, dm: int, dn: int) -> np.ndarray:
        room = self._room
        inside = (self.m >= -dm) & (self.n >= -dn) & (room[0] > dm) & (room[1] > dn)
        step = dm * self._width + dn
        return np.where(inside, self._number + step, -1)

    @cached_property
    def _width(self) -> np.ndarray:
        """[C] target tokens of each cell's pair: the step from a row to the next."""
        return self.n_target[self.pair]

    @cached_property
    def _room(self) -> tuple[np.ndarray, np.ndarray]:
        """[C] rows from each cell to the end of its pair, and columns."""
        return self.n_source[self.pair] - self.m, self._width - self.n

    @cached_property
    def _number(self) -> np.ndarray:
        return np.arange(self.n_cells)

    def cell_at(self, pair: np.ndarray, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The flat cell of (pair, m, n); -1 where m or n is negative (no such token, e.g. a root's head)."""
        return np.where((m >= 0) & (n >= 0), self.cell_start[pair] + m * self.n_target[pair] + n, -1)

    def flipped(self) -> Grid:
        """The grid of the pairs seen from the other side. What `shared` computes is computed once for the two."""
        other = Grid([pair.flip() for pair in self.pairs])
        other._mirror, other._shared = self, self._shared
        return other

    @property
    def is_flipped(self) -> bool:
        return self._mirror is not None

    def words(self, key: str | Callable[[str], object] = "token", *layers: str) -> Words:
        """Distinct words: by token, by `key(token)`, or by (token, layer values...)."""
        return self.memo(("words", key, layers), lambda: self._distinct(key, layers))

    def memo(self, key: object, compute: Callable[[], T]) -> T:
        """What several families need of this grid is computed by the first and kept for the others."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]  # type: ignore[return-value]

    def shared(self, key: object, compute: Callable[[], T]) -> T:
        """As `memo`, for what is the same seen from either side: of words, or of pairs of words in any order."""
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]  # type: ignore[return-value]

    def _distinct(self, key: str | Callable[[str], object], layers: tuple[str, ...]) -> Words:
        if self._mirror is not None:  # words and their pairs keep their numbers, so that `shared` fits both
            w = self._mirror.words(key, *layers)
            return Words(w.values, w.target, w.source, w.right, w.left, w.cell[self._mirror._by_column])
        source: list = self.source_tokens
        target: list = self.target_tokens
        if callable(key):
            source, target = [key(t) for t in source], [key(t) for t in target]
        if layers:
            source = list(zip(source, *(self.source_layer(x) for x in layers), strict=True))
            target = list(zip(target, *(self.target_layer(x) for x in layers), strict=True))
        number: dict = {}
        source_ids = np.array([number.setdefault(w, len(number)) for w in source], dtype=np.int64)
        target_ids = np.array([number.setdefault(w, len(number)) for w in target], dtype=np.int64)
        size = max(len(number), 1)
        code = source_ids[self.source_token] * size + target_ids[self.target_token]
        distinct, cell = np.unique(code, return_inverse=True)
        return Words(list(number), source_ids, target_ids, distinct // size, distinct % size, cell)

    # Reductions over a row (a source token's cells) or a column (a target token's cells) of each pair.

    def row_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Ts, ...] the maximum over each source token's cells."""
        return _run_max(values, self._row_length, empty)

    def column_max(self, values: np.ndarray, empty: float = 0.0) -> np.ndarray:
        """[Tt, ...] the maximum over each target token's cells."""
        return _run_max(values[self._by_column], self._column_length, empty)

    @cached_property
    def _row_length(self) -> np.ndarray:
        return self.n_target[self.source_pair]

    @cached_property
    def _column_length(self) -> np.ndarray:
        return self.n_source[self.target_pair]

    @cached_property
    def _by_column(self) -> np.ndarray:
        """[C] cells in the order of their target tokens: that of the flipped grid."""
        within, height = self._number - self.cell_start[self.pair], self.n_source[self.pair]
        return self.cell_start[self.pair] + within % height * self._width + within // height


def _run_max(values: np.ndarray, length: np.ndarray, empty: float) -> np.ndarray:
    """The maximum of each of the runs of `length` that `values` is made of; `empty` where a run is."""
    out = np.full((len(length), *values.shape[1:]), empty, dtype=np.float64)
    some = length > 0
    if some.any():  # empty runs take no room, so the others' beginnings are what reduceat wants
        start = (np.cumsum(length) - length)[some]
        out[some] = np.maximum.reduceat(np.asarray(values, dtype=np.float64), start, axis=0)
    return out
