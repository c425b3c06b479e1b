"""Best paths and chances in numpy: against every path of every chain, and against torch to the last tie."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from enumeration import Chain, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch.crf import best, bucketed, plain, strips
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.spaces import PLAIN, REMEMBERING
from jacana_torch.errors import JacanaError

small = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=12)
sizes_of_any_kind = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=60
) | st.lists(st.tuples(st.integers(1, 9), st.sampled_from([7, 8])), min_size=40, max_size=80)
either = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 10**6)


def laid(sizes) -> Layout:
    n_source, n_target = np.array(sizes).T
    return Layout(n_source, n_target, 10**6, "cpu")


def flat_of(chains: list[Chain], dtype) -> list[np.ndarray]:
    """The vectors that a layout of these chains takes; garbage at their ends."""
    nulls = [row[0] for c in chains for row in c.node]
    links = [x for c in chains for row in c.node for x in row[1:]]
    tables = {len(c.start): c for c in chains}
    edges = [x for n in sorted(tables) for row in tables[n].edge for x in row]
    starts, ends = ([x for n in sorted(tables) for x in getattr(tables[n], k)] for k in ("start", "end"))
    return [np.array([*x, math.nan], dtype=dtype) for x in (nulls + links, edges, starts, ends)]


def drawn(layout: Layout, seed: int, node: float, edge: float, dtype, whole: bool = False) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = layout.n_tokens + layout.n_cells, layout.n_edges, layout.n_starts, layout.n_starts
    scales = (node, edge, edge, edge)
    if whole:
        return [rng.integers(-1, 2, k + 1).astype(dtype) for k in counts]
    return [rng.uniform(-s, s, k + 1).astype(dtype) for k, s in zip(counts, scales, strict=True)]


def of_pairs(layout: Layout, flat: np.ndarray) -> list[np.ndarray]:
    return np.split(flat, layout.token_start[1:])


def smallest_best(chain: Chain) -> tuple[float, tuple[int, ...]]:
    """The rule of ties: the smallest state of the last position, then of the one before it."""
    paths = chain.paths()
    top = max(score for score, _ in paths)
    return top, min((path for score, path in paths if score == top), key=lambda path: path[::-1])


@given(small, seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_best_paths_are_the_best_of_all(sizes, seed, ties):
    chains, layout = random_chains(sizes, seed, 2.0, 2.0, whole=ties), laid(sizes)
    for dtype in (np.float32, np.float64):
        states, scores = plain.best_paths(layout, flat_of(chains, dtype))
        for chain, got, score in zip(chains, of_pairs(layout, states), scores, strict=True):
            best, path = smallest_best(chain)
            assert score == pytest.approx(best, abs=1e-5)
            if ties:
                assert tuple(got) == path
            else:
                assert chain.score(got.tolist()) == pytest.approx(best, abs=1e-5)


@given(small, seeds, st.sampled_from([1.0, 8.0, 50.0, 400.0]), st.sampled_from([1.0, 8.0, 50.0, 300.0]))
@settings(max_examples=60, deadline=None)
def test_chances_are_sums_over_all_paths(sizes, seed, node, edge):
    chains, layout = random_chains(sizes, seed, node, edge), laid(sizes)
    for dtype, near in ((np.float32, 1e-4), (np.float64, 1e-9)):
        nodes, log_z = plain.chances(layout, flat_of(chains, dtype))
        assert nodes.dtype == dtype and len(nodes) == layout.n_tokens + layout.n_cells
        null, link = np.split(nodes, [layout.n_tokens])
        cells = np.split(link, layout.cell_start[1:])
        for chain, (m, n), a, b, z in zip(chains, sizes, of_pairs(layout, null), cells, log_z, strict=True):
            expected = np.array(chain.counts()[0])
            assert np.column_stack([a, b.reshape(m, n)]) == pytest.approx(expected, abs=near)
            assert z == pytest.approx(chain.log_z(), abs=near, rel=1e-5 if dtype is np.float32 else 1e-12)


@given(small, seeds, st.sampled_from(["edge", "start", "end", "node"]))
@settings(max_examples=40, deadline=None)
def test_what_is_forbidden_never_happens(sizes, seed, space):
    chains, layout = random_chains(sizes, seed), laid(sizes)
    for chain in chains:  # NULL always remains
        if space == "edge":
            for row in chain.edge[1:]:
                row[1:] = [-math.inf] * len(row[1:])
        elif space == "node":
            chain.node[0][1:] = [-math.inf] * len(chain.node[0][1:])
        else:
            getattr(chain, space)[1] = -math.inf
    flat = flat_of(chains, np.float64)
    nodes, _ = plain.chances(layout, flat)
    states, scores = plain.best_paths(layout, flat)
    null, link = np.split(nodes, [layout.n_tokens])
    cells = np.split(link, layout.cell_start[1:])
    for k, (chain, (m, n)) in enumerate(zip(chains, sizes, strict=True)):
        got = np.column_stack([of_pairs(layout, null)[k], cells[k].reshape(m, n)])
        paths = [(score, path) for score, path in chain.paths() if score > -math.inf]
        total = math.fsum(math.exp(score) for score, _ in paths)
        expected = np.zeros((m, n + 1))
        for score, path in paths:
            expected[range(m), path] += math.exp(score) / total
        assert got == pytest.approx(expected, abs=1e-9)
        assert chain.score(of_pairs(layout, states)[k].tolist()) == pytest.approx(scores[k])
        assert scores[k] == pytest.approx(max(score for score, _ in paths))


@given(sizes_of_any_kind, seeds, st.booleans(), either)
@settings(max_examples=60, deadline=None)
def test_paths_are_those_of_torch_to_the_last_tie(sizes, seed, ties, dtype):
    layout = laid(sizes)
    flat = drawn(layout, seed, 50.0, 50.0, dtype, whole=ties)
    mine, theirs = plain.best_paths(layout, flat), bucketed.best_paths(layout, [torch.as_tensor(x) for x in flat])
    assert np.array_equal(mine[0], theirs[0]) and np.array_equal(mine[1], theirs[1])


@given(sizes_of_any_kind, seeds, st.sampled_from([1.0, 12.0, 50.0, 600.0]), either)
@settings(max_examples=60, deadline=None)
def test_chances_are_those_of_torch(sizes, seed, scale, dtype):
    layout = laid(sizes)
    flat = drawn(layout, seed, 50.0, scale, dtype)
    nodes, log_z = plain.chances(layout, flat)
    theirs, their_log_z = bucketed.chances(layout, [torch.as_tensor(x, dtype=torch.float64) for x in flat])
    assert nodes == pytest.approx(theirs, abs=1e-4 if dtype is np.float32 else 1e-9)
    assert log_z == pytest.approx(their_log_z, abs=1e-4, rel=1e-5 if dtype is np.float32 else 1e-12)


@given(sizes_of_any_kind, seeds)
@settings(max_examples=30, deadline=None)
def test_company_changes_no_path(sizes, seed):
    layout = laid(sizes)
    flat = drawn(layout, seed, 3.0, 3.0, np.float32)
    states, scores = plain.best_paths(layout, flat)
    nodes, _ = plain.chances(layout, flat)
    for k, (m, n) in enumerate(sizes):
        alone, which = laid([(m, n)]), int(np.searchsorted(layout.distinct, n))
        a, b = int(layout.edge_start[which]), int(layout.first_start[which])
        token, cell = int(layout.token_start[k]), layout.n_tokens + int(layout.cell_start[k])
        own = [np.append(flat[0][token : token + m], flat[0][cell : cell + m * n]), flat[1][a : a + (n + 1) ** 2],
               flat[2][b : b + n + 1], flat[3][b : b + n + 1]]  # fmt: skip
        path, score = plain.best_paths(alone, own)
        assert np.array_equal(path, states[token : token + m]) and score[0] == scores[k]
        assert plain.chances(alone, own)[0][m:] == pytest.approx(nodes[cell : cell + m * n], abs=1e-5)


def test_strips_hold_every_pair_once_however_they_are_cut(monkeypatch):
    rng = np.random.default_rng(3)
    layout = laid(np.column_stack([rng.integers(1, 60, 200), rng.integers(1, 40, 200)]))
    flat = drawn(layout, 3, 2.0, 2.0, np.float32)
    whole = plain.chances(layout, flat)[0]
    for step, places in ((1 << 17, 1 << 18), (1, 1), (1 << 12, 1 << 13)):
        monkeypatch.setattr(strips, "_STEP", step)
        monkeypatch.setattr(strips, "_PLACES", places)
        seen = np.concatenate([s.pairs[s.pairs >= 0] for s in strips.strips(layout)])
        assert sorted(seen) == list(range(200))
        assert plain.chances(layout, flat)[0] == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("space", [PLAIN, REMEMBERING])
def test_lanes_hold_every_pair_once_however_they_are_cut(monkeypatch, space):
    rng = np.random.default_rng(3)
    layout = Layout(rng.integers(1, 60, 400), rng.integers(1, 40, 400), 10**6, "cpu", space)
    flat = drawn(layout, 3, 2.0, 2.0, np.float32)
    expected = bucketed.best_paths(layout, [torch.as_tensor(x) for x in flat])
    for step, places, waste in ((1 << 18, 1 << 19, 10**6), (1, 1, 0), (1 << 12, 1 << 13, 10**4), (10**9,) * 3):
        for few in (0, 4, 10**9):  # how the numbers stand in memory
            for name, value in (("_STEP", step), ("_PLACES", places), ("_WASTE", waste), ("_FEW", few)):
                monkeypatch.setattr(best, name, value)
            lanes = list(best.cut(layout))
            assert sorted(np.concatenate([own.pairs for own in lanes])) == list(range(400))
            found = plain.best_paths(layout, flat)
            assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


def test_lanes_take_target_lengths_that_are_near_each_other():
    layout = laid([(5, n) for n in range(1, 60) for _ in range(40)])
    lanes = sorted((own.targets[0][[0, -1]].tolist() for own in best.cut(layout)), key=lambda own: own[0])
    assert 3 < len(lanes) < 30 and lanes[0][0] == 1 and lanes[-1][1] == 59
    assert all(a[1] <= b[0] for a, b in zip(lanes, lanes[1:], strict=False))


def test_a_long_pair_stands_alone_and_holds_no_empty_chains():
    layout = laid([(3, 4)] * 30 + [(20_000, 4)])
    (own,) = [s for s in strips.strips(layout) if 30 in s.pairs]
    assert own.pairs.tolist() == [[30]] and own.width == 8


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("space", [0, 1, 2, 3])
def test_scores_that_mean_nothing_are_an_error(value, space):
    layout = laid([(3, 2), (2, 5)])
    flat = drawn(layout, 0, 1.0, 1.0, np.float32)
    flat[space][0] = value
    with pytest.raises(JacanaError, match="log Z is .* for chain 0 .*NaN or infinity"):
        plain.chances(layout, flat)


def test_forbidding_every_path_is_an_error():
    layout = laid([(2, 5), (3, 2)])
    flat = drawn(layout, 0, 1.0, 1.0, np.float64)
    flat[2][:3] = -math.inf  # of the shorter length, which the second pair has
    with pytest.raises(JacanaError, match="log Z is -inf for chain 1 "):
        plain.chances(layout, flat)
