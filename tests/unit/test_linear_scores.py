"""Feature blocks as matrices: scores, gradients and layout against the same thing written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from jacana_torch.crf.scores import LinearScores, sparse_tensor

N_WEIGHTS = 9


@st.composite
def block(draw, n_cells: int, shared: list[np.ndarray]):
    """(columns, table, index) of any kind: dense, one-hot, repeated by an index that others may share."""
    kind = draw(st.sampled_from(["cells", "rows", "one-hot", "one-hot cells"]))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind == "one-hot cells":  # row c is column c, so there are as many columns as cells
        return numbers.integers(0, N_WEIGHTS, n_cells), None, None
    columns = numbers.permutation(N_WEIGHTS)[: draw(st.integers(0, 4))]
    if kind == "cells":
        return columns, numbers.normal(size=(n_cells, len(columns))), None
    n_rows = len(columns) if kind == "one-hot" else draw(st.integers(1, 5))
    index = numbers.integers(-1, max(n_rows, 1) if n_rows else 0, n_cells)
    if kind == "one-hot":
        return columns, None, index
    if shared and draw(st.booleans()):  # the same index object: such tables are joined
        index = shared[0]
        n_rows = max(int(index.max(initial=-1)) + 1, 1)
    shared.append(index)
    return columns, numbers.normal(size=(n_rows, len(columns))), index


@st.composite
def blocks(draw):
    n_cells, shared = draw(st.integers(1, 7)), []
    return n_cells, [draw(block(n_cells, shared)) for _ in range(draw(st.integers(0, 5)))]


def written_out(n_cells: int, parts) -> np.ndarray:
    """[n_cells, N_WEIGHTS], entry by entry."""
    matrix = np.zeros((n_cells, N_WEIGHTS))
    for columns, table, index in parts:
        for cell in range(n_cells):
            row = cell if index is None else index[cell]
            if row < 0:
                continue
            for k, column in enumerate(columns):
                matrix[cell, column] += (1.0 if k == row else 0.0) if table is None else table[row, k]
    return matrix


@given(blocks(), st.integers(0, 2**32))
def test_scores_and_gradients_are_those_of_the_matrix(case, seed):
    n_cells, parts = case
    linear = LinearScores(parts, n_cells, N_WEIGHTS, "cpu")
    numbers = np.random.default_rng(seed)
    weights, gradient = numbers.normal(size=N_WEIGHTS), numbers.normal(size=n_cells)
    matrix = written_out(n_cells, parts)
    np.testing.assert_allclose(linear.scores(torch.tensor(weights)).numpy(), matrix @ weights, atol=1e-12)
    np.testing.assert_allclose(linear.transpose(torch.tensor(gradient)).numpy(), matrix.T @ gradient, atol=1e-12)
    np.testing.assert_allclose(linear.once(weights), matrix @ weights, atol=1e-12)


@given(blocks(), st.lists(st.integers(0, 6), max_size=9))
def test_contributions_are_the_entries_of_the_matrix(case, cells):
    n_cells, parts = case
    cells = np.array([cell % n_cells for cell in cells], np.int64)
    place, column, value = LinearScores(parts, n_cells, N_WEIGHTS).contributions(cells)
    found = np.zeros((len(cells), N_WEIGHTS))
    np.add.at(found, (place, column), value)
    np.testing.assert_allclose(found, written_out(n_cells, parts)[cells].reshape(found.shape), atol=1e-12)


def test_a_cell_that_no_row_belongs_to_scores_nothing():
    table, index = np.array([[2.0, 3.0]]), np.array([-1, 0, -1])
    linear = LinearScores([(np.array([0, 1]), table, index)], 3, 2, "cpu")
    assert linear.scores(torch.tensor([1.0, 10.0], dtype=torch.float64)).tolist() == [0.0, 32.0, 0.0]
    assert linear.transpose(torch.tensor([5.0, 7.0, 9.0], dtype=torch.float64)).tolist() == [14.0, 21.0]


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="on a CPU torch's own product needs MKL")
def test_a_matrix_on_a_device_is_the_same_matrix():
    matrix = sparse.random(7, 5, 0.4, format="csr", random_state=1)
    for x in (matrix, matrix.T):
        vector = np.arange(1.0, x.shape[1] + 1)
        np.testing.assert_allclose(
            (sparse_tensor(x, "cpu") @ torch.from_numpy(vector)).numpy(), x.toarray() @ vector
        )
