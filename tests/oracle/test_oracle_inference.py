"""Inference against the enumeration of all paths, on every chain of every batch."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from enumeration import Chain, pack, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch.crf.inference import kbest, log_partition, marginals, posterior_decode, viterbi
from jacana_torch.crf.loss import path_score, softmax_margin
from jacana_torch.crf.potentials import Potentials
from jacana_torch.errors import JacanaError

SIZES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)
SMALL = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4)
SEEDS = st.integers(0, 10**6)
# Spreads that take each way of computing: products in either precision, and log space.
SPREADS = st.sampled_from([(0.0, 0.0), (1.0, 1.0), (5.0, 3.0), (50.0, 20.0), (50.0, 90.0), (300.0, 400.0)])
EXTRA = st.sampled_from([(0, 0), (3, 2)])
quick = settings(max_examples=25, deadline=None)


def close(got, expected, absolute: float, relative: float = 1e-12) -> None:
    assert float(got) == pytest.approx(float(expected), abs=absolute, rel=relative)


def check_counts(chains: list[Chain], p, m, tolerance: float) -> None:
    U, S = p.start.shape
    edge, start, end = torch.zeros(U, S, S).double(), torch.zeros(U, S).double(), torch.zeros(U, S).double()
    for b, c in enumerate(chains):
        node, *sums = c.counts()
        n, u = len(c.start), int(p.table[b])
        expected = torch.zeros(p.shape[1], S).double()
        if node:
            expected[: len(node), :n] = torch.tensor(node, dtype=torch.float64)
        assert torch.allclose(m.node[b].double(), expected, atol=tolerance, rtol=0), f"chain {b}"
        edge[u, :n, :n] += torch.tensor(sums[0], dtype=torch.float64)
        start[u, :n] += torch.tensor(sums[1], dtype=torch.float64)
        end[u, :n] += torch.tensor(sums[2], dtype=torch.float64)
    for got, expected in ((m.edge, edge), (m.start, start), (m.end, end)):
        assert torch.allclose(got.double(), expected, atol=len(chains) * tolerance, rtol=0)


@quick
@given(SIZES, SEEDS, SPREADS, EXTRA)
def test_log_partition_and_marginals(sizes, seed, spread, extra):
    chains = random_chains(sizes, seed, *spread)
    p = pack(chains, extra=extra)
    for b, (z, c) in enumerate(zip(log_partition(p), chains, strict=True)):
        assert float(z) == pytest.approx(c.log_z(), abs=1e-10, rel=1e-12), f"chain {b}"
    check_counts(chains, p, marginals(p), 1e-9)


@quick
@given(SIZES, SEEDS, st.sampled_from([(50.0, 20.0), (50.0, 5.0), (1.0, 1.0), (300.0, 25.0)]))
def test_float32_is_within_1e_4(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    p = pack(chains, torch.float32)
    for z, c in zip(log_partition(p), chains, strict=True):
        close(z, c.log_z(), 1e-4, 1e-6)
    check_counts(chains, p, marginals(p), 1e-4)


@quick
@given(SIZES, SEEDS, SPREADS, st.booleans(), EXTRA)
def test_viterbi(sizes, seed, spread, whole, extra):
    chains = random_chains(sizes, seed, *spread, whole=whole)
    p = pack(chains, extra=extra)
    states, scores = viterbi(p)
    for b, c in enumerate(chains):
        top = max(score for score, _ in c.paths())
        close(scores[b], top, 1e-9)
        path = states[b].tolist()
        assert all(s == -1 for s in path[len(c.node) :])
        close(c.score(path[: len(c.node)]), top, 1e-9)
        if whole:  # the tie rule: smallest last state, then the one before it, and so on
            ties = [q for score, q in c.paths() if score == top]
            assert tuple(path[: len(c.node)]) == min(ties, key=lambda q: q[::-1])


@quick
@given(SIZES, SEEDS, st.integers(1, 40), st.booleans(), EXTRA)
def test_kbest(sizes, seed, k, whole, extra):
    chains = random_chains(sizes, seed, 3.0, 2.0, whole=whole)
    states, scores = kbest(pack(chains, extra=extra), k)
    assert states.shape[:2] == scores.shape == (len(chains), k)
    for b, c in enumerate(chains):
        expected = sorted((score for score, _ in c.paths()), reverse=True)[:k]
        M = len(c.node)
        paths = [tuple(row[:M]) for row in states[b, : len(expected)].tolist()]
        assert len(set(paths)) == len(expected), "paths are distinct"
        for path, got, score in zip(paths, scores[b].tolist(), expected, strict=False):
            close(got, score, 1e-9)
            close(c.score(path), score, 1e-9)
        assert (scores[b, len(expected) :] == -math.inf).all()
        assert (states[b, len(expected) :] == -1).all() and (states[b, :, M:] == -1).all()


@quick
@given(SIZES, SEEDS, SPREADS)
def test_posterior_decoding_and_path_scores(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    p = pack(chains)
    node = marginals(p).node
    states = posterior_decode(node, p.lengths)
    got = path_score(p, states)
    for b, c in enumerate(chains):
        chances = c.counts()[0]
        path = states[b].tolist()
        for m, row in enumerate(chances):
            assert row[path[m]] == pytest.approx(max(row), abs=1e-9)
        assert path[len(chances) :] == [-1] * (len(path) - len(chances))
        close(got[b], c.score(path[: len(chances)]), 1e-9)


def gold_of(chains, seed: int) -> tuple[list, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    gold = [torch.randint(len(c.start), (len(c.node),), generator=generator).tolist() for c in chains]
    padded = torch.full((len(chains), max(map(len, gold))), -1)
    for row, path in zip(padded, gold, strict=True):
        row[: len(path)] = torch.tensor(path, dtype=torch.long)
    return gold, padded


@quick
@given(SIZES, SEEDS, SPREADS, st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 3))
def test_softmax_margin(sizes, seed, spread, costs):
    chains = random_chains(sizes, seed, *spread)
    gold, padded = gold_of(chains, seed)
    for got, c, path in zip(softmax_margin(pack(chains), padded, *costs), chains, gold, strict=True):
        close(got, c.softmax_margin(path, *costs), 1e-9)


@settings(max_examples=6, deadline=None)
@given(SMALL, SEEDS, st.sampled_from([(2.0, 2.0), (2.0, 400.0)]))
def test_gradients_against_differences_of_the_enumeration(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    gold, padded = gold_of(chains, seed)
    costs, weights = (0.5, 1.0, 2.0), torch.rand(len(chains), dtype=torch.float64)
    p = pack(chains)
    leaves = {name: getattr(p, name).clone().requires_grad_() for name in ("node", "edge", "start", "end")}
    (softmax_margin(replace(p, **leaves), padded, *costs) * weights).sum().backward()
    tables = {}
    for b, c in enumerate(chains):
        u = int(p.table[b])
        tables.setdefault(u, []).append(b)
        for m, row in enumerate(c.node):
            difference(row, leaves["node"].grad[b, m], lambda: loss(chains, [b], gold, weights, costs))  # noqa: B023
    for u, users in tables.items():
        c = chains[users[0]]
        rows = [(c.start, leaves["start"].grad[u]), (c.end, leaves["end"].grad[u])]
        rows += [(row, leaves["edge"].grad[u, s]) for s, row in enumerate(c.edge)]
        for row, gradient in rows:
            difference(row, gradient, lambda: loss(chains, users, gold, weights, costs))  # noqa: B023


def loss(chains, users, gold, weights, costs) -> float:
    return math.fsum(float(weights[b]) * chains[b].softmax_margin(gold[b], *costs) for b in users)


def difference(row: list, gradient: torch.Tensor, function) -> None:
    """Central differences over a list that the enumeration reads."""
    for s, value in enumerate(row):
        row[s] = value + 1e-4
        up = function()
        row[s] = value - 1e-4
        down = function()
        row[s] = value
        assert float(gradient[s]) == pytest.approx((up - down) / 2e-4, abs=2e-6)
    assert (gradient[len(row) :] == 0).all()


@quick
@given(SIZES, SEEDS, SPREADS)
def test_a_batch_is_its_chains_one_by_one(sizes, seed, spread):
    chains = random_chains(sizes, seed, *spread)
    together = pack(chains, extra=(2, 3))
    z, node, (states, _) = log_partition(together), marginals(together).node, viterbi(together)
    for b, c in enumerate(chains):
        alone = pack([c])
        M, S = alone.shape[1:]
        close(z[b], log_partition(alone), 1e-12, 1e-13)
        assert torch.allclose(node[b, :M, :S], marginals(alone).node[0], atol=1e-12, rtol=1e-12)
        assert torch.equal(states[b, :M], viterbi(alone)[0][0])
        assert not node[b, M:].any() and not node[b, :, S:].any()


@quick
@given(SIZES, SEEDS, st.randoms(use_true_random=False))
def test_order_does_not_matter(sizes, seed, shuffler):
    chains = random_chains(sizes, seed)
    order = list(range(len(chains)))
    shuffler.shuffle(order)
    p, q = pack(chains), pack([chains[b] for b in order])
    assert torch.allclose(log_partition(p)[order], log_partition(q), atol=1e-12, rtol=1e-13)
    a, b = marginals(p), marginals(q)
    assert torch.allclose(a.node[order], b.node, atol=1e-12)
    assert torch.allclose(a.edge, b.edge, atol=1e-11)
    assert torch.equal(viterbi(p)[0][order], viterbi(q)[0])


def test_forbidden_transitions_states_and_paths():
    chains = random_chains([(4, 3), (3, 3), (2, 2)], 7)
    chains[0].edge[1][2] = chains[0].edge[0][0] = -math.inf  # the two of size 3 share their table
    chains[2].node[0][1] = -math.inf
    chains[2].start[0] = -math.inf
    p = pack(chains)
    for z, c in zip(log_partition(p), chains, strict=True):
        close(z, c.log_z(), 1e-10)
    check_counts(chains, p, marginals(p), 1e-9)
    states, scores = viterbi(p)
    for b, c in enumerate(chains):
        close(scores[b], max(score for score, _ in c.paths()), 1e-9)
        close(c.score(states[b, : len(c.node)].tolist()), scores[b], 1e-9)
    chains[2].node[1] = [-math.inf] * 3
    with pytest.raises(JacanaError, match="chain 2 "):
        log_partition(pack(chains))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_not_numbers_are_an_error(bad):
    for name in ("node", "edge", "start", "end"):
        chains = random_chains([(3, 2), (3, 1)], 1)
        values = getattr(chains[1], name)
        (values[1] if name in ("node", "edge") else values)[1] = bad
        with pytest.raises(JacanaError, match="chain 1 "):
            log_partition(pack(chains))


def test_empty_batches_and_chains():
    p = pack(random_chains([(0, 0), (0, 4)], 3))
    assert log_partition(p).tolist() == [0.0, 0.0]
    assert viterbi(p)[0].shape == (2, 0) and kbest(p, 3)[1].tolist() == [[0.0, -math.inf, -math.inf]] * 2
    assert not marginals(p).edge.any()
    nothing = replace(p, node=p.node[:0], table=p.table[:0], lengths=p.lengths[:0], sizes=p.sizes[:0])
    assert log_partition(nothing).shape == (0,) and marginals(nothing).node.shape == (0, 0, 5)
    assert viterbi(nothing)[1].shape == (0,) and kbest(nothing, 2)[0].shape == (0, 2, 0)


def test_build_says_what_does_not_fit():
    p = pack(random_chains([(3, 2)], 1))
    with pytest.raises(ValueError, match="start must be"):
        Potentials.build(p.node, p.edge, p.start[:, :1], p.end, p.table, p.lengths, p.sizes)
    with pytest.raises(ValueError, match="lengths must be between 0 and 3"):
        Potentials.build(p.node, p.edge, p.start, p.end, p.table, p.lengths + 1, p.sizes)
    with pytest.raises(ValueError, match="not among its 3 states"):
        softmax_margin(p, torch.tensor([[0, 3, 1]]))
