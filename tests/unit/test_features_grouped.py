"""A table of groups is the table that it stands for, in all that blocks are used for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from jacana_torch.crf.scores import add_scores, known_columns, sparse_matrix
from jacana_torch.features.api import Block, Grouped

COUNT, WIDTH = 3, 2


def a_table(rows: int) -> tuple[Grouped, np.ndarray]:
    random = np.random.default_rng(rows)
    values, group = random.normal(size=(rows, WIDTH)).astype(np.float32), random.integers(COUNT, size=rows)
    written = np.zeros((rows, COUNT * WIDTH), dtype=np.float32)
    for row, (own, number) in enumerate(zip(values.tolist(), group.tolist(), strict=True)):
        for k, value in enumerate(own):
            written[row, number * WIDTH + k] = value
    return Grouped(values, group, COUNT), written


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_it_is_the_table(rows):
    table, written = a_table(rows)
    assert table.shape == written.shape == (rows, COUNT * WIDTH)
    assert np.array_equal(np.asarray(table), written)
    assert np.array_equal(np.concatenate([table, table]), np.concatenate([written, written]))
    keep = np.arange(COUNT * WIDTH) % 4 > 0
    assert np.array_equal(table[:, keep], written[:, keep])
    if rows:
        some = np.array([rows - 1, 0, -1])
        assert np.array_equal(table[some], written[some])


@pytest.mark.parametrize("unknown", [(), (1, 4)])
def test_blocks_of_it(unknown):
    table, written = a_table(5)
    names = tuple(f"n{k}" for k in range(COUNT * WIDTH))
    index = np.array([4, -1, 0, 2, 2, 1])
    block, plain = Block(names, table, index), Block(names, written, index)
    assert np.array_equal(block.dense(), plain.dense())
    weights = np.random.default_rng(0).normal(size=8)
    columns = np.array([-1 if k in unknown else k + 2 for k in range(len(names))])
    totals = np.zeros(6), np.zeros(6)
    for total, each in zip(totals, (block, plain), strict=True):
        add_scores(total, known_columns(each, columns), weights)
    assert np.allclose(*totals, rtol=1e-12) and totals[0].any()
    matrices = [sparse_matrix([known_columns(each, columns)], 6, 8) for each in (block, plain)]
    assert all(isinstance(matrix, sparse.csr_matrix) for matrix in matrices)
    assert np.array_equal(*(matrix.toarray() for matrix in matrices))
