"""Best paths and posteriors in NumPy: the same as in PyTorch to the last tie, however chains are packed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from enumeration import laid_out, layout_of, node_rows, of_pairs, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st
from variants import variants

from jacana_torch.crf import layout as pack
from jacana_torch.crf import viterbi
from jacana_torch.crf.kernel import posteriors
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.states import PLAIN, REMEMBERING
from jacana_torch.crf.viterbi import best_paths
from jacana_torch.errors import JacanaError

small = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=12)
sizes_of_any_kind = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=60
) | st.lists(st.tuples(st.integers(1, 9), st.sampled_from([7, 8])), min_size=40, max_size=80)
either = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 10**6)


def drawn(layout: Layout, seed: int, node: float, edge: float, dtype, whole: bool = False) -> list[np.ndarray]:
    rng, size = np.random.default_rng(seed), layout.sizes
    counts = layout.n_nodes, size["edge"], size["start"], size["end"]
    scales = (node, edge, edge, edge)
    if whole:
        return [rng.integers(-1, 2, k).astype(dtype) for k in counts]
    return [rng.uniform(-s, s, k).astype(dtype) for k, s in zip(counts, scales, strict=True)]


def tensors(flat, dtype=None) -> list[torch.Tensor]:
    return [torch.as_tensor(x, dtype=dtype) for x in flat]


@given(small, seeds, st.sampled_from(["edge", "start", "end", "node"]))
@settings(max_examples=40, deadline=None)
def test_what_is_forbidden_never_happens(sizes, seed, space):
    chains = random_chains(sizes, seed)
    for chain in chains:  # NULL always remains
        if space == "edge":
            for row in chain.edge[1:]:
                row[1:] = [-math.inf] * len(row[1:])
        elif space == "node":
            chain.node[0][1:] = [-math.inf] * len(chain.node[0][1:])
        else:
            getattr(chain, space)[1] = -math.inf
    layout, flat = laid_out(chains)
    flat = [x.numpy() for x in flat]
    states, scores = best_paths(layout, flat)
    rows = zip(
        chains, node_rows(layout, posteriors(layout, flat).nodes), of_pairs(layout, states), scores, strict=True
    )
    for chain, got, found, score in rows:
        paths = [(score, path) for score, path in chain.paths() if score > -math.inf]
        total = math.fsum(math.exp(score) for score, _ in paths)
        expected = np.zeros(got.shape)
        for value, path in paths:
            expected[range(len(got)), path] += math.exp(value) / total
        assert got == pytest.approx(expected, abs=1e-9)
        assert chain.score(found) == pytest.approx(score)
        assert score == pytest.approx(max(score for score, _ in paths))


@given(sizes_of_any_kind, seeds, st.booleans(), either)
@settings(max_examples=60, deadline=None)
def test_paths_are_those_of_torch_to_the_last_tie(sizes, seed, ties, dtype):
    layout = layout_of(sizes)
    flat = drawn(layout, seed, 50.0, 50.0, dtype, whole=ties)
    mine, theirs = best_paths(layout, flat), best_paths(layout, tensors(flat))
    assert np.array_equal(mine[0], theirs[0]) and np.array_equal(mine[1], theirs[1])
    assert mine[1].dtype == dtype


@given(sizes_of_any_kind, seeds, st.sampled_from([1.0, 12.0, 50.0, 600.0]), either)
@settings(max_examples=60, deadline=None)
def test_posteriors_are_those_of_torch(sizes, seed, scale, dtype):
    layout = layout_of(sizes)
    flat = drawn(layout, seed, 50.0, scale, dtype)
    nodes, log_z = posteriors(layout, flat)
    assert nodes.dtype == log_z.dtype == dtype
    theirs, their_log_z = posteriors(layout, tensors(flat, torch.float64))
    assert nodes == pytest.approx(theirs, abs=1e-4 if dtype is np.float32 else 1e-9)
    assert log_z == pytest.approx(their_log_z, abs=1e-4, rel=1e-5 if dtype is np.float32 else 1e-12)


@given(sizes_of_any_kind, seeds)
@settings(max_examples=30, deadline=None)
def test_the_other_pairs_change_no_path(sizes, seed):
    layout = layout_of(sizes)
    flat = drawn(layout, seed, 3.0, 3.0, np.float32)
    paths, scores = best_paths(layout, flat)
    rows, paths = node_rows(layout, posteriors(layout, flat).nodes), of_pairs(layout, paths)
    for k, (m, n) in enumerate(sizes):
        alone, which = layout_of([(m, n)]), layout.table[k]
        a, b = int(layout.edge_start[which]), int(layout.first_start[which])
        token, cell = int(layout.geometry.source_start[k]), layout.n_tokens + int(layout.geometry.cell_start[k])
        own = [np.append(flat[0][token : token + m], flat[0][cell : cell + m * n]), flat[1][a : a + (n + 1) ** 2],
               flat[2][b : b + n + 1], flat[3][b : b + n + 1]]  # fmt: skip
        path, score = best_paths(alone, own)
        assert path.tolist() == paths[k] and score[0] == scores[k]
        assert node_rows(alone, posteriors(alone, own).nodes)[0] == pytest.approx(rows[k], abs=1e-5)


@pytest.mark.parametrize("space", variants([REMEMBERING, PLAIN]))
def test_packs_hold_every_pair_once_however_they_are_cut(monkeypatch, space):
    rng = np.random.default_rng(3)
    layout = layout_of(np.column_stack([rng.integers(0, 60, 200), rng.integers(0, 40, 200)]), space)
    flat = drawn(layout, 3, 2.0, 2.0, np.float32)
    whole, real = posteriors(layout, flat).nodes, pack.packs
    for places, numbers, together in (
        (1 << 18, 1 << 17, 4),
        (1, 1, 1),
        (1 << 13, 1 << 12, 3),
        (1 << 30, 1 << 30, 50),
    ):
        cut = real(layout, places, together, numbers)
        seen = np.concatenate([own.pairs[own.pairs >= 0] for own in cut])
        assert sorted(seen) == np.flatnonzero(layout.geometry.n_source).tolist()
        monkeypatch.setattr("jacana_torch.crf.kernel.packs", lambda *_, **__: cut)  # noqa: B023
        assert posteriors(layout, flat).nodes == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("space", variants([REMEMBERING, PLAIN]))
def test_lanes_hold_every_pair_once_however_they_are_cut(monkeypatch, space):
    rng = np.random.default_rng(3)
    layout = layout_of(np.column_stack([rng.integers(1, 60, 400), rng.integers(1, 40, 400)]), space)
    flat = drawn(layout, 3, 2.0, 2.0, np.float32)
    expected = best_paths(layout, tensors(flat))
    for step, places, waste in ((1 << 18, 1 << 19, 10**6), (1, 1, 0), (1 << 12, 1 << 13, 10**4), (10**9,) * 3):
        for name, value in (("LANE_NUMBERS", step), ("LANE_PLACES", places), ("LANE_WASTE", waste)):
            monkeypatch.setattr(pack, name, value)
        assert sorted(np.concatenate([own.pairs[:, 0] for own in pack.lanes(layout)])) == list(range(400))
        for few in (0, 4, 10**9):  # how the numbers stand in memory
            monkeypatch.setattr(viterbi, "STATES_LAST", few)
            found = best_paths(layout, flat)
            assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


def test_lanes_take_target_lengths_that_are_near_each_other():
    layout = layout_of([(5, n) for n in range(1, 60) for _ in range(40)])
    lengths = [layout.distinct[own.tables] for own in pack.lanes(layout)]
    ends = sorted((int(own[0]), int(own[-1])) for own in lengths)
    assert 3 < len(ends) < 30 and ends[0][0] == 1 and ends[-1][1] == 59
    assert all(a[1] <= b[0] for a, b in zip(ends, ends[1:], strict=False))


def test_a_long_pair_stands_alone_and_holds_no_empty_chains():
    layout = layout_of([(3, 4)] * 30 + [(20_000, 4)])
    (own,) = [found for found in pack.packs(layout, together=4) if 30 in found.pairs]
    assert own.pairs.tolist() == [[30]] and own.width == 8


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("space", [0, 1, 2, 3])
def test_scores_that_mean_nothing_are_an_error(value, space):
    layout = layout_of([(3, 2), (2, 5)])
    flat = drawn(layout, 0, 1.0, 1.0, np.float32)
    flat[space][0] = value
    with pytest.raises(JacanaError, match="log Z is .* for chain 0 .*NaN or infinity"):
        posteriors(layout, flat)


def test_forbidding_every_path_is_an_error():
    layout = layout_of([(2, 5), (3, 2)])
    flat = drawn(layout, 0, 1.0, 1.0, np.float64)
    flat[2][:3] = -math.inf  # of the shorter length, which the second pair has
    with pytest.raises(JacanaError, match="log Z is -inf for chain 1 "):
        posteriors(layout, flat)
