"""Padded grids against nested loops over the cells of each pair, in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features.grid import Grid, table_of
from jacana_torch.types import Sentence, SentencePair
from jacana_torch.util.geometry import COLUMN, ROW, Geometry, PaddedGrid

length = st.one_of(st.integers(0, 5), st.sampled_from([1, 23]))
shapes = st.lists(st.tuples(length, length), max_size=5)
margins = st.integers(1, 5)
seeds = st.integers(0, 2**32)


@dataclass
class Case:
    """A padded grid of pairs of `shape` M x N, maybe a flipped one, and values of their cells, with ties."""

    shape: list[tuple[int, int]]
    margin: int
    flipped: bool
    seed: int

    def __post_init__(self) -> None:
        M, N = (np.array([size[side] for size in self.shape], dtype=np.int64) for side in (0, 1))
        stored = Geometry(N, M) if self.flipped else Geometry(M, N)
        self.padded = PaddedGrid(stored, self.margin)
        if self.flipped:
            self.padded = self.padded.flipped(stored.by_column)
        self.cells = [(p, m, n) for p, (M, N) in enumerate(self.shape) for m in range(M) for n in range(N)]
        self.rows = [(p, m) for p, (M, _) in enumerate(self.shape) for m in range(M)]
        self.columns = [(p, n) for p, (_, N) in enumerate(self.shape) for n in range(N)]
        self.rng = np.random.default_rng(self.seed)
        self.values = self.rng.integers(0, 6, len(self.cells)) / 4
        self.at = dict(zip(self.cells, self.values.tolist(), strict=True))
        self.place, self.line, self.column_line = self.padded.place, self.padded.line, self.padded.column_line

    def spread(self, elsewhere: float = 0.0) -> np.ndarray:
        """[size] the values at their places."""
        out = np.full(self.padded.size, elsewhere)
        out[self.place] = self.values
        return out

    def row(self, p: int, m: int) -> list[float]:
        return [self.at[p, m, n] for n in range(self.shape[p][1])]

    def column(self, p: int, n: int) -> list[float]:
        return [self.at[p, m, n] for m in range(self.shape[p][0])]


cases = st.builds(Case, shapes, margins, st.booleans(), seeds)


@given(cases)
def test_every_cell_has_a_place_of_its_own(case):
    """Flipping exchanges rows and columns, and every place keeps its number."""
    padded, first_row, expected = case.padded, 0, {}
    pitch = max((M if case.flipped else N for M, N in case.shape), default=0) + case.margin
    for p, (M, N) in enumerate(case.shape):
        for m in range(M):
            for n in range(N):
                row, column = (n, m) if case.flipped else (m, n)
                expected[p, m, n] = (first_row + row) * pitch + column
        first_row += (N if case.flipped else M) + case.margin
    assert case.place.tolist() == [expected[cell] for cell in case.cells]
    assert sorted(case.place.tolist()) == np.flatnonzero(padded.inside).tolist()
    assert len(padded.inside) == padded.size == padded.n_rows * padded.pitch == first_row * pitch
    assert len(set(case.line.tolist())) == len(case.rows)
    assert len(set(case.column_line.tolist())) == len(case.columns)


@given(cases)
def test_neighbours_in_the_padding_are_zero(case):
    field, reach = case.padded.field(case.values, case.place), range(-case.margin, case.margin + 1)
    for dm in reach:
        for dn in reach:
            got = case.padded.near(field, dm, dn)[case.place]
            assert got.tolist() == [case.at.get((p, m + dm, n + dn), 0.0) for p, m, n in case.cells], (dm, dn)


@given(cases, st.integers(-6, 6))
def test_neighbours_six_steps_along_a_diagonal_exist_for_any_place(case, step):
    values = np.arange(1.0, case.padded.size + 1)
    field = case.padded.field(values)
    near = case.padded.near(field, step, step)
    places = np.arange(case.padded.size) + step * (case.padded.pitch + 1)
    assert near.tolist() == [k + 1.0 if 0 <= k < case.padded.size else 0.0 for k in places.tolist()]
    assert np.shares_memory(near, field) or not len(near)


@given(cases, st.sampled_from([np.float64, np.float32, bool]))
def test_a_field_keeps_values_and_their_type(case, kind):
    values = case.spread().astype(kind)
    for field in (case.padded.field(values), case.padded.field(case.values.astype(kind), case.place)):
        here = case.padded.near(field, 0, 0)
        assert here.dtype == kind and here.tolist() == values.tolist()


@given(cases)
def test_maxima_and_counts(case):
    padded, values, true = case.padded, case.spread(-1.0), case.spread() > 0.5
    row, column = padded.max(values, ROW), padded.max(values, COLUMN)
    assert row[case.line].tolist() == [max([-1.0, *case.row(p, m)]) for p, m in case.rows]
    assert column[case.column_line].tolist() == [max([-1.0, *case.column(p, n)]) for p, n in case.columns]
    row, column = padded.count(true, ROW), padded.count(true, COLUMN)
    assert row[case.line].tolist() == [sum(v > 0.5 for v in case.row(p, m)) for p, m in case.rows]
    assert column[case.column_line].tolist() == [sum(v > 0.5 for v in case.column(p, n)) for p, n in case.columns]


@given(cases)
def test_maxima_include_the_padding_of_their_own_pair(case):
    values = np.repeat(10.0 + case.padded.row_pair, case.padded.pitch)
    values[case.place] = 0.0
    assert case.padded.max(values, ROW)[case.line].tolist() == [10.0 + p for p, _ in case.rows]
    assert case.padded.max(values, COLUMN)[case.column_line].tolist() == [10.0 + p for p, _ in case.columns]


@given(cases)
def test_values_of_tokens_along_their_rows_and_columns(case):
    padded = case.padded
    for axis, found, values in ((ROW, case.rows, case.line), (COLUMN, case.columns, case.column_line)):
        of_tokens = case.rng.normal(size=(2, len(found)))
        lines = padded.lines(of_tokens, axis)
        assert lines.shape == (2, len(padded.max(case.spread(), axis)))
        assert lines[:, values].tolist() == of_tokens.tolist() and (np.delete(lines, values, 1) == -1).all()
        of = dict(zip(found, of_tokens[0], strict=True))
        expected = [of[p, n if axis == COLUMN else m] for p, m, n in case.cells]
        assert padded.along(lines[0], axis)[case.place].tolist() == expected


@given(cases)
def test_the_best_of_the_others(case):
    row, column = (case.padded.best_other(case.spread(-1.0), axis) for axis in (ROW, COLUMN))
    for k, (p, m, n) in enumerate(case.cells):
        of_row, of_column = case.row(p, m), case.column(p, n)
        assert row[case.place[k]] == max([-1.0, *of_row[:n], *of_row[n + 1 :]])
        assert column[case.place[k]] == max([-1.0, *of_column[:m], *of_column[m + 1 :]])


@given(cases)
def test_where_a_row_crosses_a_column(case):
    chosen = {(p, m): int(case.rng.integers(-1, case.shape[p][0])) for p, m in case.rows}
    across = {(p, n): int(case.rng.integers(-1, case.shape[p][1])) for p, n in case.columns}
    row = case.padded.lines(np.array([*chosen.values()], dtype=np.int64), ROW)
    column = case.padded.lines(np.array([*across.values()], dtype=np.int64), COLUMN)
    place, there = case.padded.crossing(row, column)
    found = case.spread()[place]
    for k, (p, m, n) in enumerate(case.cells):
        i, j = chosen[p, m], across[p, n]
        assert there[case.place[k]] == (i >= 0 and j >= 0)
        assert found[case.place[k]] == (case.at[p, i, j] if i >= 0 and j >= 0 else 0.0)


@given(cases)
def test_distance_is_between_shares_of_the_sentences(case):
    expected = [abs(m / case.shape[p][0] - n / case.shape[p][1]) for p, m, n in case.cells]
    assert case.padded.distance[case.place].tolist() == expected


@given(shapes, margins, st.booleans())
def test_a_grid_has_one_padded_grid_for_each_margin(shape, margin, flipped):
    pairs = [SentencePair(*(Sentence(("x",) * n) for n in sizes)) for sizes in shape]
    grid = Grid([x.flip() for x in pairs]).flipped() if flipped else Grid(pairs)
    padded, own = grid.padded(margin), Case(shape, margin, flipped, 0).padded
    assert grid.padded(margin) is padded and padded.margin == margin
    for name in ("place", "line", "column_line"):
        assert getattr(padded, name).tolist() == getattr(own, name).tolist()


@pytest.mark.parametrize("flipped", [False, True])
def test_no_pairs_at_all(flipped):
    padded, nothing = Case([], 3, flipped, 0).padded, np.zeros(0)
    assert padded.size == 0 and not len(padded.distance)
    assert not len(padded.max(nothing, ROW)) and not len(padded.count(nothing > 0, COLUMN))
    assert [len(padded.best_other(nothing, axis)) for axis in (ROW, COLUMN)] == [0, 0]
    none = np.zeros(0, dtype=np.int64)
    assert [len(x) for x in padded.crossing(none, none)] == [0, 0]


def test_a_table_of_columns():
    """Truth values are multiplied eight at a time, whatever stands between them."""
    rng = np.random.default_rng(0)
    for sorts in ("t", "s", "tsst", "ttttttttt", "tttstttttstttttttts"):
        values = rng.random((len(sorts), 50))
        columns = {f"{k}": values[k] > 0.5 if sort == "t" else values[k] for k, sort in enumerate(sorts)}
        names, table = table_of(columns)
        written, weights = np.asarray(table), rng.normal(size=len(sorts))
        assert names == tuple(columns) and table.shape == written.shape == (50, len(sorts))
        assert written.dtype == np.float32 and written.flags.f_contiguous
        assert written.tolist() == np.column_stack(list(columns.values())).astype(np.float32).tolist()
        assert np.allclose(table @ weights, written.astype(np.float64) @ weights, rtol=0, atol=1e-14)
        assert table[:, 0].tolist() == written[:, 0].tolist()
        assert table[[4, 2]].tolist() == written[[4, 2]].tolist()
    with pytest.raises(ValueError, match="of 3 and of 2 rows"):
        table_of({"a": np.zeros(3), "b": np.zeros(2)})
