"""Flattened geometry against nested loops over pairs, tokens and cells."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.util.geometry import Geometry, nearest, positions, run_max, run_of, starts

length = st.integers(0, 5)
shapes = st.lists(st.tuples(length, length), max_size=6)
Cell = tuple[int, int, int]


def geometry(shape: list[tuple[int, int]]) -> Geometry:
    sides = np.array(shape, dtype=np.int64).reshape(-1, 2).T
    return Geometry(sides[0], sides[1])


def cells(shape: list[tuple[int, int]]) -> list[Cell]:
    return [(p, m, n) for p, (M, N) in enumerate(shape) for m in range(M) for n in range(N)]


def tokens(shape: list[tuple[int, int]], side: int) -> list[tuple[int, int]]:
    return [(p, k) for p, lengths in enumerate(shape) for k in range(lengths[side])]


@given(st.lists(length, max_size=6), st.floats(-2, 2))
def test_runs(lengths, empty):
    runs = [[(k, i) for i in range(size)] for k, size in enumerate(lengths)]
    flat = [x for run in runs for x in run]
    given_lengths = np.array(lengths, dtype=np.int64)
    assert starts(given_lengths).tolist() == [sum(lengths[:k]) for k in range(len(lengths))]
    assert list(zip(run_of(given_lengths), positions(given_lengths), strict=True)) == flat
    values = np.array([7.0 * i % 5 - k for k, i in flat])
    expected = [max((7.0 * i % 5 - k for k, i in run), default=empty) for run in runs]
    assert run_max(values, given_lengths, empty).tolist() == expected


@given(shapes)
def test_coordinates_of_tokens_and_cells(shape):
    of, expected, source, target = geometry(shape), cells(shape), tokens(shape, 0), tokens(shape, 1)
    assert (of.n_tokens, of.n_cells) == (len(source), len(expected))
    assert list(zip(of.source_pair, of.source_position, strict=True)) == source
    assert list(zip(of.target_pair, of.target_position, strict=True)) == target
    assert list(zip(of.pair, of.m, of.n, strict=True)) == expected
    assert [source[t] for t in of.source_token] == [(p, m) for p, m, _ in expected]
    assert [target[t] for t in of.target_token] == [(p, n) for p, _, n in expected]
    for p in of.pair:
        assert expected[of.cell_start[p]] == (p, 0, 0)
        assert source[of.source_start[p]] == target[of.target_start[p]] == (p, 0)


@given(shapes)
def test_the_order_of_the_flipped_pairs(shape):
    of, expected = geometry(shape), cells([(N, M) for M, N in shape])
    own = cells(shape)
    assert [own[c] for c in of.by_column] == [(p, m, n) for p, n, m in expected]
    flipped = Geometry(of.n_target, of.n_source)
    assert list(zip(flipped.pair, flipped.m, flipped.n, strict=True)) == expected
    assert of.by_column[flipped.by_column].tolist() == list(range(len(own)))


@given(shapes, st.integers(-3, 3), st.integers(-3, 3))
def test_neighbouring_cells(shape, dm, dn):
    of, expected = geometry(shape), cells(shape)
    number = {cell: k for k, cell in enumerate(expected)}
    assert of.shift(dm, dn).tolist() == [number.get((p, m + dm, n + dn), -1) for p, m, n in expected]
    assert of.cell_at(of.pair, of.m, of.n).tolist() == list(range(len(expected)))
    nowhere = np.full(of.n_cells, -1)
    assert (of.cell_at(of.pair, nowhere, of.n) == -1).all()
    assert (of.cell_at(of.pair, of.m, nowhere) == -1).all()


@given(shapes, st.integers(0, 1000), st.floats(-2, 2))
def test_maxima_of_rows_and_columns(shape, seed, empty):
    of, expected = geometry(shape), cells(shape)
    values = np.random.default_rng(seed).normal(size=(of.n_cells, 2))
    for side, got in ((0, of.row_max(values, empty)), (1, of.column_max(values, empty))):
        for t, (p, k) in enumerate(tokens(shape, side)):
            own = [values[c] for c, cell in enumerate(expected) if cell[0] == p and cell[1 + side] == k]
            assert got[t].tolist() == [max((v[j] for v in own), default=empty) for j in (0, 1)]
    assert of.row_max(values[:, 0]).shape == (of.n_tokens,)


@given(shapes, st.data())
def test_consecutive_pairs(shape, data):
    first = data.draw(st.integers(0, len(shape)))
    last = data.draw(st.integers(first, len(shape)))
    of, pairs = geometry(shape), slice(first, last)
    lists = tokens(shape, 0), tokens(shape, 1), cells(shape)
    for span, whole in zip(of.spans(pairs), lists, strict=True):
        assert whole[span] == [x for x in whole if first <= x[0] < last]


@given(st.lists(st.lists(st.booleans(), max_size=7), max_size=5), st.sampled_from([-1, 1]))
def test_nearest_marked_element_of_the_run(runs, step):
    marked = np.array([x for run in runs for x in run], dtype=bool)
    expected, first = [], 0
    for run in runs:
        for k in range(len(run)):
            ahead = range(k + 1, len(run)) if step > 0 else reversed(range(k))
            expected.append(next((first + j for j in ahead if run[j]), -1))
        first += len(run)
    assert nearest(marked, run_of(np.array(list(map(len, runs)), dtype=np.int64)), step).tolist() == expected
