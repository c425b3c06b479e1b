"""Linear scores: the one place where features meet weights.

`LinearScores` holds the features of some cells. Training asks it for scores and for gradients, again and again;
explaining asks what the score of a cell is made of. Aligning needs each score once and never holds the features of
all families together: it adds up one block after the other (`add_scores`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ..features.api import Block, Table, WordFamily
from ..features.featureset import FeatureSet, checked
from ..features.grid import Grid
from ..features.words import KnownPairs, Signal, WordKey, WordPairs
from .layout import Layout

if TYPE_CHECKING:
    from torch import Tensor

# (column numbers [K], table [R, K] or None for one-hot, index [C] or None): a features.Block with numbers for
# names
RawBlock = tuple[np.ndarray, "Table | None", "np.ndarray | None"]

MOST_NAMES = 1 << 12  # columns whose numbers are kept, list by list
LONGEST_KEPT = 128  # target tokens; the edge scores of longer targets are many and seldom needed twice
LARGE_PART = 200_000  # cells; from then on memory counts more than the time to compute some things twice
_TERMS = 256  # of a sum in single precision
_SLAB = 4096  # rows of a table in single precision that are multiplied at once, so that they stay in the cache


class LinearScores:
    """Scores X·w of `n_cells` cells, where feature blocks describe the matrix X [n_cells, n_weights]."""

    def __init__(self, blocks: Sequence[RawBlock], n_cells: int, n_weights: int, device: str = "cpu") -> None:
        self._blocks, self._shape, self._device = blocks, (n_cells, n_weights), device

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        return both_ways(sparse_matrix(self._blocks, *self._shape), self._device)

    def scores(self, weights: Tensor) -> Tensor:
        """Return X·w, again and again: X is written out, and each call is one product."""
        return product(self._matrices[0], weights)

    def transpose(self, gradient: Tensor) -> Tensor:
        """Return Xᵀ·g for the gradients of the cells."""
        return product(self._matrices[1], gradient)

    def once(self, weights: np.ndarray) -> np.ndarray:
        """Return X·w without writing X out."""
        total = np.zeros(self._shape[0])
        for block in self._blocks:
            add_scores(total, block, weights)
        return total

    def contributions(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the entries of X in these cells that are not 0: places in `cells`, columns, values.

        A column may come several times in a cell; its values add up.
        """
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        found = [_entries(block, cells) for block in self._blocks]
        place, column, value = (np.concatenate(parts) for parts in zip(nothing, *found, strict=True))
        return place, column, value


class ChainScores:
    """The linear scores of the nodes and transitions of a layout, written out as one sparse matrix.

    `blocks` are those of each kind: null, link, edge, start, end. With a `precision` of "float32", products are of
    single precision. Scores add up few numbers. Gradients add up many: a few at a time in single precision, and
    these sums in double.
    """

    def __init__(
        self,
        layout: Layout,
        blocks: Mapping[str, Sequence[RawBlock]],
        n_weights: int,
        device: str = "cpu",
        precision: str = "float64",
    ) -> None:
        from scipy import sparse  # only training needs it

        self.layout, parts = layout, []
        for kind, size in layout.sizes.items():
            parts.append(sparse_matrix(blocks[kind], size, n_weights))
        matrix, self._sums = sparse.vstack(parts, format="csr", dtype=precision), None
        if precision == "float64":
            self._matrix, self._transposed = both_ways(matrix, device)
        else:
            import torch

            parts, numbers = in_parts(matrix.T.tocsr())
            self._matrix, self._transposed = both_ways(matrix, device)[0], both_ways(parts, device)[0]
            self._sums = torch.as_tensor(numbers, device=device), n_weights
        self.precision = precision

    def flat(self, weights: Tensor) -> tuple[Tensor, ...]:
        """Return the scores as a layout has them: nodes, edges, starts, ends."""
        import torch

        null, link, *steps = self.layout.sizes.values()
        own = weights.to(getattr(torch, self.precision))
        return torch.split(product(self._matrix, own), [null + link, *steps])

    def transpose(self, nodes: Tensor, *steps: Tensor) -> Tensor:
        """Return the gradient of the weights from those of the flat vectors."""
        import torch

        if self._sums is None:
            return product(self._transposed, torch.cat([nodes, *steps]))
        found = product(self._transposed, torch.cat([x.float() for x in (nodes, *steps)]))
        numbers, size = self._sums
        return found.new_zeros(size, dtype=torch.float64).index_add_(0, numbers, found.double())


def add_scores(total: np.ndarray, block: RawBlock, weights: np.ndarray) -> None:
    """Add the scores of one block to `total` [C] in place.

    They are computed in double precision: in single, a pair's scores would depend on its batch.
    """
    columns, table, index = block
    if not len(columns):
        return
    own = weights[columns]
    if table is None:
        per_row = own
    elif not isinstance(table, np.ndarray) or table.dtype == own.dtype:  # other tables convert by themselves
        per_row = table @ own
    else:
        per_row = np.empty(len(table), dtype=own.dtype)
        for first in range(0, len(table), _SLAB):
            per_row[first : first + _SLAB] = table[first : first + _SLAB].astype(own.dtype) @ own
    if index is None:
        total += per_row
    else:
        total += np.append(per_row, 0.0).take(index)  # -1 takes the last


def _entries(block: RawBlock, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns, table, index = block
    rows = cells if index is None else index[cells]
    if table is None:
        here = np.flatnonzero(rows >= 0)
        return here, columns[rows[here]], np.ones(len(here))
    if not len(columns) or not table.shape[0]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    values = np.where(rows[:, None] < 0, 0.0, table[rows])
    here, column = np.nonzero(values)
    return here, columns[column], values[here, column]


def sparse_matrix(blocks: Sequence[RawBlock], n_cells: int, n_weights: int) -> Any:
    """Return [n_cells, n_weights] in compressed rows, which may hold a column more than once."""
    from scipy import sparse

    beside, numbers = [], []
    for columns, table, index in blocks:
        if not len(columns):
            continue
        if table is not None and index is not None and table.shape[0] > len(index):  # only the rows that are used
            table, index = np.where(index[:, None] < 0, 0, table[index]), None
        if table is None:
            rows = sparse.identity(len(columns), format="csr")
        else:
            rows = sparse.csr_matrix(np.asarray(table), dtype=np.float64)
        if index is not None:
            nothing = sparse.csr_matrix((1, len(columns)))
            rows = sparse.vstack([rows, nothing], format="csr")[index]  # -1 takes the last
        beside.append(rows)
        numbers.append(columns)
    if not beside:
        return sparse.csr_matrix((n_cells, n_weights))
    joined = sparse.hstack(beside, format="csr")
    number = np.concatenate(numbers).astype(joined.indices.dtype)[joined.indices]
    return sparse.csr_matrix((joined.data, number, joined.indptr), shape=(n_cells, n_weights))


def both_ways(matrix: Any, device: str) -> tuple[Any, Any]:
    """Return a scipy matrix and its transpose, as they are multiplied on a device."""
    if device == "cpu":  # torch is no faster here, and has no such product where it was built without MKL
        return matrix, matrix.T
    return sparse_tensor(matrix, device), sparse_tensor(matrix.T, device)


def product(matrix: Any, vector: Tensor) -> Tensor:
    """Multiply what `both_ways` returned by a vector on its device."""
    import torch

    return matrix @ vector if isinstance(matrix, torch.Tensor) else torch.from_numpy(matrix @ vector.numpy())


def in_parts(matrix: Any) -> tuple[Any, np.ndarray]:
    """Return a scipy matrix with rows cut into rows of at most `_TERMS` entries, and the row that each is of."""
    from scipy import sparse

    entries = np.diff(matrix.indptr)
    counts = -(-entries // _TERMS)
    row = np.repeat(np.arange(len(entries)), counts)
    part = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = np.append(matrix.indptr[row] + _TERMS * part, matrix.nnz)
    shape = len(row), matrix.shape[1]
    return sparse.csr_matrix((matrix.data, matrix.indices, begin), shape=shape), row


def sparse_tensor(matrix: Any, device: str) -> Tensor:
    """Return a scipy matrix as compressed rows of PyTorch."""
    import torch

    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()  # PyTorch requires columns in order, each once
    starts, columns, values = (torch.as_tensor(x, device=device) for x in (rows.indptr, rows.indices, rows.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns, values, size=rows.shape, check_invariants=True)


def node_scores(grid: Grid, scorer: Scorer, back: Scorer | None = None) -> list[np.ndarray]:
    """Return the scores of NULLs and links of a grid, and with `back` those of the flipped pairs.

    They are computed for a part of the grid at a time, so that features do not pile up. In a part as large as a
    very long pair, not even those of two families are in memory at once.
    """
    grid.known = scorer.known_pairs
    sides = [(grid, scorer)] if back is None else [(grid, scorer), (grid.flipped(), back)]
    scores = []
    for whole, _ in sides:
        scores.append(np.zeros(whole.n_tokens + whole.n_cells))
    for pairs, part in grid.parts():
        seen, steps = (part, part.flipped()), []
        for (whole, of), total, own in zip(sides, scores, seen, strict=False):
            source, _, cells = whole.spans(pairs)
            null, link = total[: whole.n_tokens], total[whole.n_tokens :]
            steps.append(of.add_nodes(own, null[source], link[cells]))
        if part.n_cells <= LARGE_PART:
            for step in steps:
                for _ in step:
                    pass
            continue
        for _ in zip_longest(*map(_forgetting, seen, steps)):
            part.forget_shared()
    grid.forget(everything=True)
    return scores


def _forgetting(grid: Grid, steps: Iterator[None]) -> Iterator[None]:
    """Take the steps, and forget after each what the grid holds for it alone."""
    for _ in steps:
        grid.forget()
        yield


class Scorer:
    """Scores of grids under one set of weights.

    Those of the transitions of each target length are kept.
    """

    def __init__(self, features: FeatureSet, names: Sequence[str], weights: np.ndarray) -> None:
        self._features, self.names, self.weights = features, names, weights.copy()
        self._or_nothing = np.append(weights, 0.0)  # columns without a number take the last
        self._number = dict(zip(names, range(len(names)), strict=True))
        self._columns: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
        self.known_pairs = KnownPairs()
        self._tables: dict[int, tuple[np.ndarray, ...]] = {}
        of_words: dict[WordKey, list[WordFamily]] = {}  # by what makes two tokens the same word for them
        for family in features.node:
            if isinstance(family, WordFamily):
                of_words.setdefault(family.key, []).append(family)
        self._signals = []
        for number, (key, families) in enumerate(of_words.items()):
            compute = partial(self._word_scores, families)
            self._signals.append(Signal(("score", id(self), number), key, compute, np.float64))

    def edges(self, layout: Layout) -> list[np.ndarray]:
        """Return the scores of the edges, starts and ends of a layout."""
        tables = zip(*map(self._step_scores, layout.distinct.tolist()), strict=True)
        return list(map(np.concatenate, tables))

    def add_nodes(self, grid: Grid, null: np.ndarray, link: np.ndarray) -> Iterator[None]:
        """Add the scores of NULLs [Ts] and of links [C], in steps: word pairs, then one family after the other."""
        for signal in self._signals:
            link += grid.per_cell(signal, directed=True)
        yield
        padded = grid.padded()
        of_places = np.zeros(padded.size)  # what families say of places, which is looked up once for all of them
        for family in self._features.node:
            parts = family(grid)
            for total, blocks in ((null, parts.null), (link, parts.link)):
                for block in blocks:
                    checked(family.name, block, len(total))
                    if block.index is padded.place:
                        self._add(of_places, family.name, Block(block.names, block.table))
                    else:
                        self._add(total, family.name, block)
            del parts, blocks, block  # before the next family's are computed
            yield
        link += of_places.take(padded.place)

    def _word_scores(self, families: Sequence[WordFamily], pairs: WordPairs) -> np.ndarray:
        """Return [U] the scores of word pairs by themselves."""
        total = np.zeros(len(pairs))
        for family in families:
            for block in family.word_blocks(pairs):
                self._add(total, family.name, checked(family.name, block, len(pairs)))
        return total

    def _add(self, total: np.ndarray, family: str, block: Block) -> None:
        columns = self._numbers(family, block)
        if (columns >= 0).any():  # taking single columns out of a table would take longer than multiplying it
            add_scores(total, (columns, block.table, block.index), self._or_nothing)

    def known(self, family: str, block: Block) -> RawBlock:
        """Return a family's block with weight numbers for names."""
        return known_columns(block, self._numbers(family, block))

    def _numbers(self, family: str, block: Block) -> np.ndarray:
        columns = self._columns.get((family, block.names))
        if columns is None:
            columns = numbered(block.names, self._number, f"{family}.")
            if sum(map(len, self._columns.values())) > MOST_NAMES:  # words and tags are new in every batch
                self._columns.clear()
            self._columns[family, block.names] = columns
        return columns

    def _step_scores(self, n: int) -> tuple[np.ndarray, ...]:
        """Return the scores of the edges, starts and ends towards n target tokens."""
        if n in self._tables:
            return self._tables[n]
        sizes = self._features.step_sizes(n)
        scores = dict(zip(sizes, map(np.zeros, sizes.values()), strict=True))
        for family in self._features.edge:
            for kind, blocks in self._features.step_blocks(family, n).items():
                for block in blocks:
                    self._add(scores[kind], family.name, block)
        found = scores["edge"], scores["start"], scores["end"]
        if n <= LONGEST_KEPT:
            self._tables[n] = found
        return found


def known_columns(block: Block, columns: np.ndarray) -> RawBlock:
    """Return a block with these column numbers for names, without the columns that a model lacks (-1)."""
    keep = columns >= 0
    if keep.all():
        return columns, block.table, block.index
    if block.table is not None:
        return columns[keep], block.table[:, keep], block.index
    renumber = np.where(keep, np.cumsum(keep) - 1, -1)  # one-hot: rows are columns, so they go together
    index = np.arange(len(keep)) if block.index is None else block.index
    return columns[keep], None, np.where(index < 0, -1, renumber[index])


def numbered(names: Sequence[str], number: Mapping[str, int], prefix: str = "") -> np.ndarray:
    """Return the number of each name with this prefix, -1 for names without one."""
    full = map(prefix.__add__, names)
    return np.fromiter(map(number.get, full, repeat(-1)), np.int64, len(names))
