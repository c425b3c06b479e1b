"""Linear scores of many cells, and their transpose: feature blocks and a weight vector in, one score a cell out.

Training writes the blocks down as one sparse matrix: most entries are zero, and an evaluation is two products with
it, by torch. Aligning, which evaluates once, multiplies a block's distinct rows instead (`add_scores`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from ..features.api import Grouped

# (column numbers [K], table [R, K] or None for one-hot, index [C] or None): a features.Block, its names looked up
RawBlock = tuple[np.ndarray, "np.ndarray | Grouped | None", "np.ndarray | None"]

_SLAB = 4096  # rows


class LinearScores:
    """X·w and Xᵀ·g for the matrix X [n_cells, n_weights] that blocks describe."""

    def __init__(self, blocks: Sequence[RawBlock], n_cells: int, n_weights: int, device: str) -> None:
        self.n_cells = n_cells
        matrix = written_out(blocks, n_cells, n_weights)
        self.scores, self.transpose = multiplier(matrix, device), multiplier(matrix.T, device)


def multiplier(matrix: Any, device: str) -> Callable[[Tensor], Tensor]:
    """A product with a scipy matrix, on the device that its vectors are on."""
    if device == "cpu":  # torch is no faster here, and has no such product where it was built without MKL
        from torch import from_numpy

        return lambda vector: from_numpy(matrix @ vector.numpy())
    there = on_device(matrix, device)
    return lambda vector: there @ vector


def on_device(matrix: Any, device: str) -> Tensor:
    """A scipy matrix as compressed rows of torch."""
    import torch

    rows = matrix.tocsr()
    starts, columns, values = (torch.as_tensor(x, device=device) for x in (rows.indptr, rows.indices, rows.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns, values, size=rows.shape, check_invariants=True)


def written_out(blocks: Sequence[RawBlock], n_cells: int, n_weights: int) -> Any:
    """[n_cells, n_weights] in compressed rows, which may hold a column more than once."""
    from scipy import sparse  # only training needs it

    blocks = [block for block in blocks if len(block[0])]
    if not blocks:
        return sparse.csr_matrix((n_cells, n_weights))
    beside = sparse.hstack([_rows(block) for block in blocks], format="csr")
    columns = np.concatenate([block[0] for block in blocks])
    columns = columns.astype(beside.indices.dtype)[beside.indices]
    return sparse.csr_matrix((beside.data, columns, beside.indptr), shape=(n_cells, n_weights))


def _rows(block: RawBlock) -> Any:
    """One block over all cells, its columns numbered from 0."""
    from scipy import sparse

    columns, table, index = block
    if table is not None and index is not None and len(table) > len(index):  # look only at the rows that are used
        table, index = np.where(index[:, None] < 0, 0, table[index]), None
    if table is None:
        rows = sparse.identity(len(columns), format="csr")
    else:
        rows = sparse.csr_matrix(np.asarray(table), dtype=np.float64)
    if index is None:
        return rows
    nothing = sparse.csr_matrix((1, len(columns)))
    return sparse.vstack([rows, nothing], format="csr")[index]  # -1 takes the last


def add_scores(total: np.ndarray, block: RawBlock, weights: np.ndarray) -> None:
    """Add one block's scores to `total` [C] in place: what aligning needs, where nothing is evaluated twice."""
    columns, table, index = block
    if not len(columns):
        return
    per_row = weights[columns] if table is None else _product(table, weights[columns])
    if index is None:
        total += per_row
    else:
        total += np.append(per_row, 0.0)[index]  # -1 takes the last


def _product(table: np.ndarray | Grouped, weights: np.ndarray) -> np.ndarray:
    """table @ weights in 64 bits, whatever the table has: in 32, a pair's scores would depend on its company."""
    if table.dtype == weights.dtype or not isinstance(table, np.ndarray):  # what is no array sees to it
        return table @ weights
    out = np.empty(len(table), dtype=weights.dtype)
    for first in range(0, len(table), _SLAB):  # a copy of a part at a time stays in the cache
        out[first : first + _SLAB] = table[first : first + _SLAB].astype(weights.dtype) @ weights
    return out
