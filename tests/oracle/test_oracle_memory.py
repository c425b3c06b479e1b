"""Chains whose NULLs remember the last link, against the enumeration of all paths, on every pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from enumeration import layout_of, node_rows, of_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_enumeration import Remembered, flat_places, flat_scores, random_memories

from jacana_torch.crf.kernel import posteriors
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.scores import ChainScores
from jacana_torch.crf.states import REMEMBERING
from jacana_torch.crf.viterbi import best_paths

SIZES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 3)) | st.tuples(st.integers(1, 3), st.sampled_from([7, 8])),
    min_size=1,
    max_size=6,
)
SEEDS = st.integers(0, 10**6)
# Spreads of node and of transition scores: products that are rescaled seldom, each step, and log space.
SPREADS = st.sampled_from([(1.0, 1.0), (50.0, 8.0), (50.0, 20.0), (50.0, 90.0), (300.0, 400.0)])
COSTS = st.sampled_from([0.0, 0.5, 3.0])
quick = settings(max_examples=25, deadline=None)


def laid(sizes) -> Layout:
    return layout_of(sizes, REMEMBERING)


def each_library(chains: list[Remembered]):
    """The flat scores as NumPy and as PyTorch take them, in both precisions, and how near results must come."""
    null, link, *steps = flat_scores(chains)
    for dtype, near in ((np.float32, 1e-4), (np.float64, 1e-9)):
        flat = [np.array(x, dtype) for x in (null + link, *steps)]
        yield flat, near
        yield [torch.as_tensor(x) for x in flat], near


@quick
@given(SIZES, SEEDS, SPREADS, st.booleans())
def test_best_paths_are_the_best_of_all(sizes, seed, spread, ties):
    chains, layout = random_memories(sizes, seed, *spread, whole=ties), laid(sizes)
    best = [max(score for score, _ in chain.paths()) for chain in chains]
    for flat, near in each_library(chains):
        states, scores = best_paths(layout, flat)
        for chain, top, path, score in zip(chains, best, of_pairs(layout, states), scores, strict=True):
            assert score == pytest.approx(top, abs=near, rel=1e-6)
            assert chain.score(path) == pytest.approx(top, abs=near, rel=1e-6)


@quick
@given(SIZES, SEEDS, SPREADS)
def test_posteriors_are_sums_over_all_paths(sizes, seed, spread):
    chains, layout = random_memories(sizes, seed, *spread), laid(sizes)
    expected = [(np.array(chain.posteriors()), chain.log_z()) for chain in chains]
    for flat, near in each_library(chains):
        nodes, log_z = posteriors(layout, flat)
        for (rows, total), got, z in zip(expected, node_rows(layout, nodes), log_z, strict=True):
            assert got == pytest.approx(rows, abs=near)
            assert z == pytest.approx(total, abs=near, rel=1e-6)


def objective_of(sizes, gold, costs, places: int = 10**6) -> Objective:
    """In which every score is a weight of its own."""
    layout, blocks, first = laid(sizes), {}, 0
    for name, size in layout.sizes.items():
        blocks[name] = [(np.arange(first, first + size), None, None)]
        first += size
    named = dict(zip(("cost_null", "cost_link"), costs, strict=True))
    part = Part(ChainScores(layout, blocks, first), [[path] for path in gold])
    return Objective([part], 0.0, named, places)


@quick
@given(SIZES, SEEDS, SPREADS, st.sampled_from([1, 300, 10**6]), st.tuples(COSTS, COSTS))
def test_loss_and_gradient(sizes, seed, spread, places, costs):
    chains, draw = random_memories(sizes, seed, *spread), np.random.default_rng(seed)
    gold = [draw.integers(0, n + 1, m) * draw.integers(0, 2, m) for m, n in sizes]
    loss, gradient = objective_of(sizes, gold, costs, places)(np.concatenate(flat_scores(chains)))
    paths = [g.tolist() for g in gold]
    margins = [c.softmax_margin(p, *costs) for c, p in zip(chains, paths, strict=True)]
    assert loss == pytest.approx(math.fsum(margins), abs=1e-9, rel=1e-12)
    counts = [c.counts(p, costs) for c, p in zip(chains, paths, strict=True)]
    expected = [slope(chains, counts, *entry) for part in flat_places(chains) for entry in part]
    np.testing.assert_allclose(gradient, expected, atol=1e-9, rtol=0)


def slope(chains: list[Remembered], counts, k: int, name: str, place: tuple) -> float:
    """Of one score: node scores are one chain's own, the others are those of all that have as many states."""
    if name == "node":
        return counts[k][name, place]
    same = (own for c, own in zip(chains, counts, strict=True) if len(c.start) == len(chains[k].start))
    return math.fsum(own[name, place] for own in same)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=4), SEEDS, SPREADS)
def test_the_gradient_is_the_slope_of_the_loss(sizes, seed, spread):
    draw = np.random.default_rng(seed)
    objective = objective_of(sizes, [draw.integers(0, n + 1, m) for m, n in sizes], (0.5, 2.0))
    weights = np.concatenate(flat_scores(random_memories(sizes, seed, *spread)))
    gradient = objective(weights)[1]
    for k in range(len(weights)):
        step = np.zeros(len(weights))
        step[k] = 1e-4
        difference = objective(weights + step)[0] - objective(weights - step)[0]
        assert gradient[k] == pytest.approx(difference / 2e-4, abs=1e-5)


@pytest.mark.parametrize("spread", [20.0, 100.0, 200.0, 320.0])
def test_what_had_long_looked_lost_may_be_half_of_it(spread):
    """Linking to 2 is worse than to 1 by twice the spread, and makes up for it: into NULL, and out of it."""
    half, never = spread / 2, -3000.0
    node = [[never, 0.0, -2 * spread, never], [0.0, never, never, never], [never, never, never, 0.0]]
    plain_edges = [[0.0] * 4, [-half] * 4, [half] * 4, [0.0] * 4]
    gap = [[-half] * 3, [half] * 3, [0.0] * 3]
    chain = Remembered(node, plain_edges, gap, [half, -half, -half, half], [half, 0.0, 0.0, -half])
    assert chain.posteriors()[0] == pytest.approx([0, 0.5, 0.5, 0])
    layout = laid([(3, 3)])
    for flat, near in each_library([chain]):
        nodes, log_z = posteriors(layout, flat)
        assert nodes[3:6] == pytest.approx([0.5, 0.5, 0], abs=near)
        assert log_z == pytest.approx([chain.log_z()], rel=1e-6)
    gradient = objective_of([(3, 3)], [np.array([1, 0, 3])], (0.0, 0.0))(np.concatenate(flat_scores([chain])))[1]
    assert gradient[3:6] == pytest.approx([-0.5, 0.5, 0], abs=1e-9)


def recursion(chain: Remembered) -> float:
    """log Z without enumerating: links, NULLs after each position, and NULLs before any link, kept apart."""
    node, table, gap, start, end = (np.array(getattr(chain, k)) for k in ("node", "plain", "gap", "start", "end"))
    linked, before, after = start[1:] + node[0, 1:], start[0] + node[0, 0], np.full(len(gap), -np.inf)
    for row in node[1:]:
        ways = [linked[:, None] + table[1:, 1:], after[:, None] + gap, before + table[:1, 1:]]
        after = row[0] + np.logaddexp(linked + table[1:, 0], after + table[0, 0])
        before += row[0] + table[0, 0]
        linked = row[1:] + np.logaddexp.reduce(np.vstack(ways))
    return float(np.logaddexp.reduce([*(linked + end[1:]), *(after + end[0]), before + end[0]]))


@pytest.mark.parametrize("spread", [(3.0, 3.0), (30.0, 12.0), (30.0, 60.0)])
def test_pairs_of_real_size(spread):
    draw = np.random.default_rng(1)
    sizes = [(max(n + int(draw.integers(-10, 40)), 1), n) for n in draw.integers(4, 40, 40).tolist()]
    chains, layout = random_memories(sizes, 2, *spread), laid(sizes)
    expected = [recursion(chain) for chain in chains]
    for flat, _ in each_library(chains):
        nodes, log_z = posteriors(layout, flat)
        assert log_z == pytest.approx(expected, rel=1e-6)
        null, link = np.split(np.asarray(nodes, np.float64), [layout.n_tokens])
        of_token = np.bincount(layout.geometry.source_token, link)
        assert null + of_token == pytest.approx(np.ones(layout.n_tokens), abs=1e-4)
    gold = [draw.integers(0, n + 1, m) for m, n in sizes]
    scores = [chain.score(path.tolist()) for chain, path in zip(chains, gold, strict=True)]
    for places in (3_000, 10**6):
        loss, _ = objective_of(sizes, gold, (0.0, 0.0), places)(np.concatenate(flat_scores(chains)))
        assert loss == pytest.approx(math.fsum(expected) - math.fsum(scores), rel=1e-12)
