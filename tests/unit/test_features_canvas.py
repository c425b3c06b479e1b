"""Canvases against nested loops over the cells of each pair, seen from either side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features.grid import Grid
from jacana_torch.features.padded_grid import Canvas, table_of
from jacana_torch.types import Sentence, SentencePair

length = st.one_of(st.integers(0, 5), st.sampled_from([1, 23]))
shapes = st.lists(st.tuples(length, length), max_size=5)
margins = st.integers(1, 5)
seeds = st.integers(0, 2**32)


@dataclass
class Case:
    """A canvas of pairs of `shape` M x N, maybe turned, and values of their cells, on a coarse scale: ties."""

    shape: list[tuple[int, int]]
    margin: int
    turned: bool
    seed: int

    def __post_init__(self) -> None:
        M, N = (np.array([size[side] for size in self.shape], dtype=np.int64) for side in (0, 1))
        self.canvas = Canvas.of(N, M, self.margin).turn if self.turned else Canvas.of(M, N, self.margin)
        self.cells = [(p, m, n) for p, (M, N) in enumerate(self.shape) for m in range(M) for n in range(N)]
        self.rows = [(p, m) for p, (M, _) in enumerate(self.shape) for m in range(M)]
        self.columns = [(p, n) for p, (_, N) in enumerate(self.shape) for n in range(N)]
        self.rng = np.random.default_rng(self.seed)
        self.values = self.rng.integers(0, 6, len(self.cells)) / 4
        self.at = dict(zip(self.cells, self.values.tolist(), strict=True))
        self.place = self.canvas.place(*self._numbers(self.cells, 3))
        self.line = self.canvas.line(*self._numbers(self.rows, 2))
        self.column_line = self.canvas.turn.line(*self._numbers(self.columns, 2))

    @staticmethod
    def _numbers(found: list[tuple[int, ...]], width: int) -> np.ndarray:
        return np.array(found, dtype=np.int64).reshape(-1, width).T

    def laid(self, elsewhere: float = 0.0) -> np.ndarray:
        """[size] the values at their places."""
        out = np.full(self.canvas.size, elsewhere)
        out[self.place] = self.values
        return out

    def row(self, p: int, m: int) -> list[float]:
        return [self.at[p, m, n] for n in range(self.shape[p][1])]

    def column(self, p: int, n: int) -> list[float]:
        return [self.at[p, m, n] for m in range(self.shape[p][0])]


cases = st.builds(Case, shapes, margins, st.booleans(), seeds)


@given(cases)
def test_every_cell_has_a_place_of_its_own(case):
    canvas = case.canvas
    assert sorted(case.place.tolist()) == np.flatnonzero(canvas.inside).tolist()
    assert len(canvas.inside) == canvas.size == canvas.n_rows * canvas.pitch
    assert len(set(case.line.tolist())) == len(case.rows)
    assert len(set(case.column_line.tolist())) == len(case.columns)
    assert canvas.turn.turn.place(*case._numbers(case.cells, 3)).tolist() == case.place.tolist()


@given(cases)
def test_turning_exchanges_rows_and_columns_and_nothing_else(case):
    p, m, n = case._numbers(case.cells, 3)
    assert case.canvas.turn.place(p, n, m).tolist() == case.place.tolist()


@given(cases)
def test_neighbours_in_the_margin_and_beyond_it_are_nobody(case):
    field, reach = case.canvas.field(case.values, case.place), range(-case.margin, case.margin + 1)
    for dm in reach:
        for dn in reach:
            got = case.canvas.near(field, dm, dn)[case.place]
            assert got.tolist() == [case.at.get((p, m + dm, n + dn), 0.0) for p, m, n in case.cells], (dm, dn)


@given(cases, st.integers(-6, 6))
def test_one_may_look_six_steps_along_a_diagonal_from_any_place(case, step):
    values = np.arange(1.0, case.canvas.size + 1)
    field = case.canvas.field(values)
    near = case.canvas.near(field, step, step)
    places = np.arange(case.canvas.size) + step * (case.canvas.pitch + 1)
    assert near.tolist() == [k + 1.0 if 0 <= k < case.canvas.size else 0.0 for k in places.tolist()]
    assert np.shares_memory(near, field) or not len(near)


@given(cases, st.sampled_from([np.float64, np.float32, bool]))
def test_a_field_keeps_values_and_their_kind(case, kind):
    values = case.laid().astype(kind)
    for field in (case.canvas.field(values), case.canvas.field(case.values.astype(kind), case.place)):
        here = case.canvas.near(field, 0, 0)
        assert here.dtype == kind and here.tolist() == values.tolist()


@given(cases)
def test_maxima_and_counts(case):
    canvas, values, true = case.canvas, case.laid(-1.0), case.laid() > 0.5
    row, column = canvas.row_max(values), canvas.column_max(values)
    assert row[case.line].tolist() == [max([-1.0, *case.row(p, m)]) for p, m in case.rows]
    assert column[case.column_line].tolist() == [max([-1.0, *case.column(p, n)]) for p, n in case.columns]
    row, column = canvas.row_count(true), canvas.column_count(true)
    assert row[case.line].tolist() == [sum(v > 0.5 for v in case.row(p, m)) for p, m in case.rows]
    assert column[case.column_line].tolist() == [sum(v > 0.5 for v in case.column(p, n)) for p, n in case.columns]


@given(cases)
def test_maxima_see_the_margins_of_their_own_pair(case):
    values = np.repeat(10.0 + case.canvas.row_pair, case.canvas.pitch)
    values[case.place] = 0.0
    assert case.canvas.row_max(values)[case.line].tolist() == [10.0 + p for p, _ in case.rows]
    assert case.canvas.column_max(values)[case.column_line].tolist() == [10.0 + p for p, _ in case.columns]


@given(cases)
def test_figures_of_lines_in_all_their_places(case):
    canvas, of_rows, of_columns = case.canvas, *(x.astype(float) for x in case.canvas.no_positions())
    assert (of_rows == -1).all() and (of_columns == -1).all()
    assert len(of_rows) == len(canvas.row_max(case.laid()))
    assert len(of_columns) == len(canvas.column_max(case.laid()))
    of_rows[case.line] = case.rng.normal(size=len(case.rows))
    of_columns[case.column_line] = case.rng.normal(size=len(case.columns))
    row = dict(zip(case.rows, of_rows[case.line], strict=True))
    column = dict(zip(case.columns, of_columns[case.column_line], strict=True))
    assert canvas.along_rows(of_rows)[case.place].tolist() == [row[p, m] for p, m, _ in case.cells]
    assert canvas.along_columns(of_columns)[case.place].tolist() == [column[p, n] for p, _, n in case.cells]


@given(cases)
def test_the_best_of_the_others(case):
    row, column = case.canvas.best_other(case.laid(-1.0))
    for k, (p, m, n) in enumerate(case.cells):
        of_row, of_column = case.row(p, m), case.column(p, n)
        assert row[case.place[k]] == max([-1.0, *of_row[:n], *of_row[n + 1 :]])
        assert column[case.place[k]] == max([-1.0, *of_column[:m], *of_column[m + 1 :]])


@given(cases)
def test_where_a_row_and_a_column_meet(case):
    row, column = case.canvas.no_positions()
    chosen = {(p, m): int(case.rng.integers(-1, case.shape[p][0])) for p, m in case.rows}
    across = {(p, n): int(case.rng.integers(-1, case.shape[p][1])) for p, n in case.columns}
    row[case.line], column[case.column_line] = list(chosen.values()), list(across.values())
    found, there = case.canvas.meet(case.laid(), row, column)
    for k, (p, m, n) in enumerate(case.cells):
        i, j = chosen[p, m], across[p, n]
        assert there[case.place[k]] == (i >= 0 and j >= 0)
        assert found[case.place[k]] == (case.at[p, i, j] if i >= 0 and j >= 0 else 0.0)


@given(cases)
def test_distance_is_between_shares_of_the_sentences(case):
    expected = [abs(m / case.shape[p][0] - n / case.shape[p][1]) for p, m, n in case.cells]
    assert case.canvas.distance[case.place].tolist() == expected


@given(shapes, margins, st.booleans())
def test_a_grid_lays_its_cells_out_in_its_own_order(shape, margin, turned):
    pairs = [SentencePair(*(Sentence(("x",) * n) for n in sizes)) for sizes in shape]
    grid = Grid([x.flip() for x in pairs]).flipped() if turned else Grid(pairs)
    laid = grid.laid_out(margin)
    assert grid.laid_out(margin) is laid and laid.canvas.turned == turned and laid.canvas.margin >= margin
    assert laid.place.tolist() == laid.canvas.place(grid.pair, grid.m, grid.n).tolist()
    assert laid.line.tolist() == laid.canvas.line(grid.source_pair, grid.source_position).tolist()
    columns = laid.canvas.turn.line(grid.target_pair, grid.target_position)
    assert laid.column_line.tolist() == columns.tolist()


def test_no_pairs_at_all():
    case = Case([], 3, False, 0)
    canvas = case.canvas
    assert canvas.size == 0 and not len(canvas.distance)
    for one in (canvas, canvas.turn):
        nothing = np.zeros(0)
        assert not len(one.row_max(nothing)) and not len(one.column_count(nothing > 0))
        assert [len(x) for x in one.best_other(nothing)] == [0, 0]
        assert [len(x) for x in one.meet(nothing, *one.no_positions())] == [0, 0]


def test_columns_are_kept_one_after_the_other():
    names, table = table_of({"a": np.array([True, False]), "b": np.array([0.25, 1.0])})
    assert names == ("a", "b") and table.tolist() == [[1.0, 0.25], [0.0, 1.0]]
    assert table.dtype == np.float32 and table.flags.f_contiguous
    with pytest.raises(ValueError, match="could not broadcast"):
        table_of({"a": np.zeros(3), "b": np.zeros(2)})
