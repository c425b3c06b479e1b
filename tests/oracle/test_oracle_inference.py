"""Inference against the enumeration of all paths, on every pair of every batch, in NumPy and in PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from enumeration import Chain, laid_out, layout_of, node_rows, of_pairs, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch.crf.differentiable import log_partition, path_scores, softmax_margin
from jacana_torch.crf.kernel import posteriors
from jacana_torch.crf.viterbi import best_paths, k_best
from jacana_torch.errors import JacanaError

SIZES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)
SMALL = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4)
SEEDS = st.integers(0, 10**6)
# Spreads that take each way of computing: products in either precision, and log space.
SPREADS = st.sampled_from([(0.0, 0.0), (1.0, 1.0), (5.0, 3.0), (50.0, 20.0), (50.0, 90.0), (300.0, 400.0)])
quick = settings(max_examples=25, deadline=None)


def close(got, expected, absolute: float, relative: float = 1e-12) -> None:
    assert float(got) == pytest.approx(float(expected), abs=absolute, rel=relative)


def as_numpy(flat) -> list[np.ndarray]:
    return [x.numpy() for x in flat]


def counts_of(layout, flat) -> list[np.ndarray]:
    """Expected counts of the whole batch, which are the gradient of the sum of log Z."""
    leaves = [x.clone().requires_grad_() for x in flat]
    log_partition(layout, leaves).sum().backward()
    return [x.grad.double().numpy() for x in leaves]


def check_counts(chains: list[Chain], layout, flat, tolerance: float) -> None:
    tables: dict = {}
    expected = [c.counts() for c in chains]
    for c, (_, *steps) in zip(chains, expected, strict=True):
        own = [np.array(x) for x in steps]
        tables[len(c.start)] = [a + b for a, b in zip(tables.get(len(c.start), (0, 0, 0)), own, strict=True)]
    rows = [
        np.array(node).reshape(len(c.node), len(c.start)) for c, (node, *_) in zip(chains, expected, strict=True)
    ]
    nodes, *steps = counts_of(layout, flat)
    for found in (nodes, posteriors(layout, flat).nodes, posteriors(layout, as_numpy(flat)).nodes):
        for b, (got, row) in enumerate(zip(node_rows(layout, found), rows, strict=True)):
            np.testing.assert_allclose(got, row, atol=tolerance, rtol=0, err_msg=f"chain {b}")
    for k, got in enumerate(steps):
        right = np.concatenate([tables[n][k].ravel() for n in sorted(tables)])
        np.testing.assert_allclose(got, right, atol=len(chains) * tolerance, rtol=0)


@quick
@given(SIZES, SEEDS, SPREADS)
def test_log_partition_and_posteriors(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    layout, flat = laid_out(chains)
    for found in (log_partition(layout, flat), posteriors(layout, as_numpy(flat)).log_z):
        for b, (z, c) in enumerate(zip(found, chains, strict=True)):
            assert float(z) == pytest.approx(c.log_z(), abs=1e-10, rel=1e-12), f"chain {b}"
    check_counts(chains, layout, flat, 1e-9)


@quick
@given(SIZES, SEEDS, st.sampled_from([(50.0, 20.0), (50.0, 5.0), (1.0, 1.0), (300.0, 25.0), (50.0, 300.0)]))
def test_float32_is_within_1e_4(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    layout, flat = laid_out(chains, torch.float32)
    for found in (log_partition(layout, flat), posteriors(layout, as_numpy(flat)).log_z):
        for z, c in zip(found, chains, strict=True):
            close(z, c.log_z(), 1e-4, 1e-6)
    check_counts(chains, layout, flat, 1e-4)


@quick
@given(SIZES, SEEDS, SPREADS, st.booleans())
def test_viterbi(sizes, seed, spread, whole):
    chains = random_chains(sizes, seed, *spread, whole=whole)
    layout, flat = laid_out(chains)
    for scores in (flat, as_numpy(flat)):
        states, scores = best_paths(layout, scores)
        for c, path, score in zip(chains, of_pairs(layout, states), scores, strict=True):
            top = max(score for score, _ in c.paths())
            close(score, top, 1e-9)
            close(c.score(path), top, 1e-9)
            if whole:  # the tie rule: smallest last state, then the one before it, and so on
                ties = [q for score, q in c.paths() if score == top]
                assert tuple(path) == min(ties, key=lambda q: q[::-1])


@quick
@given(SIZES, SEEDS, st.integers(1, 40), st.booleans())
def test_k_best(sizes, seed, k, whole):
    chains = random_chains(sizes, seed, 3.0, 2.0, whole=whole)
    layout, flat = laid_out(chains)
    states, scores = k_best(layout, flat, k)
    assert states.shape == (k, layout.n_tokens) and scores.shape == (k, len(chains))
    ranked = [of_pairs(layout, row) for row in states]
    for b, c in enumerate(chains):
        expected = sorted((score for score, _ in c.paths()), reverse=True)[:k]
        paths = [tuple(row[b]) for row in ranked]
        assert len(set(paths[: len(expected)])) == len(expected), "paths are distinct"
        for path, got, score in zip(paths, scores[:, b].tolist(), expected, strict=False):
            close(got, score, 1e-9)
            close(c.score(path), score, 1e-9)
        assert (scores[len(expected) :, b] == -math.inf).all()
        assert all(set(path) <= {-1} for path in paths[len(expected) :])


@quick
@given(SIZES, SEEDS, SPREADS)
def test_posterior_decoding_and_path_scores(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    layout, flat = laid_out(chains)
    paths = [row.argmax(1) for row in node_rows(layout, posteriors(layout, flat).nodes)]
    for got, c, path in zip(path_scores(layout, flat, paths), chains, paths, strict=True):
        for row, state in zip(c.counts()[0], path, strict=True):
            assert row[state] == pytest.approx(max(row), abs=1e-9)
        close(got, c.score(path.tolist()), 1e-9)


def gold_of(chains, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(len(c.start), (len(c.node),), generator=generator).tolist() for c in chains]


@quick
@given(SIZES, SEEDS, SPREADS, st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 2))
def test_softmax_margin(sizes, seed, spread, costs):
    chains = random_chains(sizes, seed, *spread)
    gold = gold_of(chains, seed)
    found = softmax_margin(*laid_out(chains), [np.array(path, np.int64) for path in gold], *costs)
    for got, c, path in zip(found, chains, gold, strict=True):
        close(got, c.softmax_margin(path, *costs), 1e-9)


@settings(max_examples=6, deadline=None)
@given(SMALL, SEEDS, st.sampled_from([(2.0, 2.0), (2.0, 400.0)]))
def test_gradients_against_differences_of_the_enumeration(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    gold = gold_of(chains, seed)
    costs, weights = (0.5, 1.0), torch.rand(len(chains), dtype=torch.float64)
    layout, flat = laid_out(chains)
    leaves = [x.requires_grad_() for x in flat]
    margins = softmax_margin(layout, leaves, [np.array(path, np.int64) for path in gold], *costs)
    (margins * weights).sum().backward(retain_graph=True)
    once = [x.grad.clone() for x in leaves]
    (margins * weights).sum().backward()
    for x, first in zip(leaves, once, strict=True):  # asked for twice, it is the same twice
        assert torch.allclose(x.grad, 2 * first, atol=1e-12)
    nodes, edges, starts, ends = (x.numpy() for x in once)
    rows, users = node_rows(layout, nodes), {}
    for b, c in enumerate(chains):
        users.setdefault(len(c.start), []).append(b)
        for m, row in enumerate(c.node):
            difference(row, rows[b][m], lambda: loss(chains, [b], gold, weights, costs))  # noqa: B023
    at = outer = 0
    for size in sorted(users):
        c = chains[users[size][0]]
        tables = [(c.start, starts[outer : outer + size]), (c.end, ends[outer : outer + size])]
        tables += [(row, edges[at + s * size : at + (s + 1) * size]) for s, row in enumerate(c.edge)]
        at, outer = at + size**2, outer + size
        for row, gradient in tables:
            difference(row, gradient, lambda: loss(chains, users[size], gold, weights, costs))  # noqa: B023


def loss(chains, users, gold, weights, costs) -> float:
    return math.fsum(float(weights[b]) * chains[b].softmax_margin(gold[b], *costs) for b in users)


def difference(row: list, gradient: np.ndarray, function) -> None:
    """Central differences over a list that the enumeration reads."""
    for s, value in enumerate(row):
        row[s] = value + 1e-4
        up = function()
        row[s] = value - 1e-4
        down = function()
        row[s] = value
        assert float(gradient[s]) == pytest.approx((up - down) / 2e-4, abs=2e-6)


@quick
@given(SIZES, SEEDS, SPREADS)
def test_a_batch_is_its_chains_one_by_one(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    layout, flat = laid_out(chains)
    z, rows = log_partition(layout, flat), node_rows(layout, posteriors(layout, flat).nodes)
    paths = of_pairs(layout, best_paths(layout, flat)[0])
    for b, c in enumerate(chains):
        alone = laid_out([c])
        close(z[b], log_partition(*alone), 1e-12, 1e-13)
        np.testing.assert_allclose(
            rows[b], node_rows(alone[0], posteriors(*alone).nodes)[0], atol=1e-12, rtol=1e-12
        )
        assert paths[b] == best_paths(*alone)[0].tolist()


@quick
@given(SIZES, SEEDS, st.randoms(use_true_random=False))
def test_order_does_not_matter(sizes, seed, shuffler):
    chains = random_chains(sizes, seed)
    order = list(range(len(chains)))
    shuffler.shuffle(order)
    p, q = laid_out(chains), laid_out([chains[b] for b in order])
    assert torch.allclose(log_partition(*p)[order], log_partition(*q), atol=1e-12, rtol=1e-13)
    a, b = (node_rows(x[0], posteriors(*x).nodes) for x in (p, q))
    paths, others = (of_pairs(x[0], best_paths(*x)[0]) for x in (p, q))
    for place, k in enumerate(order):
        np.testing.assert_allclose(a[k], b[place], atol=1e-12)
        assert paths[k] == others[place]
    for one, other in zip(counts_of(*p)[1:], counts_of(*q)[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


def test_forbidden_transitions_states_and_paths():
    chains = random_chains([(4, 3), (3, 3), (2, 2)], 7)
    chains[0].edge[1][2] = chains[0].edge[0][0] = -math.inf  # the two of size 3 share their table
    chains[2].node[0][1] = -math.inf
    chains[2].start[0] = -math.inf
    layout, flat = laid_out(chains)
    for z, c in zip(log_partition(layout, flat), chains, strict=True):
        close(z, c.log_z(), 1e-10)
    check_counts(chains, layout, flat, 1e-9)
    states, scores = best_paths(layout, flat)
    for c, path, score in zip(chains, of_pairs(layout, states), scores, strict=True):
        close(score, max(score for score, _ in c.paths()), 1e-9)
        close(c.score(path), score, 1e-9)
    chains[2].node[1] = [-math.inf] * 3
    with pytest.raises(JacanaError, match="chain 2 "):
        log_partition(*laid_out(chains))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_not_numbers_are_an_error(bad):
    for name in ("node", "edge", "start", "end"):
        chains = random_chains([(3, 2), (3, 1)], 1)
        values = getattr(chains[1], name)
        (values[1] if name in ("node", "edge") else values)[1] = bad
        with pytest.raises(JacanaError, match=r"chain 1 \(1 of 2 such\)"):
            log_partition(*laid_out(chains))


def test_empty_batches_and_chains():
    layout, flat = laid_out(random_chains([(0, 0), (0, 4)], 3))
    assert log_partition(layout, flat).tolist() == [0.0, 0.0]
    assert best_paths(layout, flat)[1].tolist() == [0.0, 0.0] and best_paths(layout, flat)[0].shape == (0,)
    assert k_best(layout, flat, 3)[1].T.tolist() == [[0.0, -math.inf, -math.inf]] * 2
    assert not counts_of(layout, flat)[1].any()
    nothing, none = layout_of([]), [x[:0] for x in flat]
    assert log_partition(nothing, none).shape == (0,) and posteriors(nothing, none).nodes.shape == (0,)
    assert best_paths(nothing, none)[1].shape == (0,) and k_best(nothing, none, 2)[0].shape == (2, 0)


def test_paths_and_numbers_of_paths_that_there_cannot_be():
    layout, flat = laid_out(random_chains([(3, 2)], 1))
    with pytest.raises(ValueError, match="a path has as many states as its pair"):
        softmax_margin(layout, flat, [np.array([0, 3, 1])])
    with pytest.raises(ValueError, match="k=0"):
        k_best(layout, flat, 0)
