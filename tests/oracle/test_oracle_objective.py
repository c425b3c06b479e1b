"""The loss of training and its gradient against the enumeration of all paths, on every pair and every score."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import Chain, layout_of, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st
from test_oracle_scale import Counter

from jacana_torch.crf.differentiable import softmax_margin
from jacana_torch.crf.layout import packs
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.scores import ChainScores

SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6)
# Spreads of node and of transition scores: products that are rescaled seldom, each step, and log space.
SPREADS = st.sampled_from([(1.0, 1.0), (50.0, 20.0), (50.0, 90.0), (300.0, 400.0)])
COSTS = st.sampled_from([0.0, 0.5, 3.0])
quick = settings(max_examples=25, deadline=None)


def scores_of(sizes) -> ChainScores:
    """Scores of which each is a weight of its own: null, link, edge, start, end."""
    layout, blocks, first = layout_of(sizes), {}, 0
    for name, size in layout.sizes.items():
        blocks[name] = [(np.arange(first, first + size), None, None)]
        first += size
    return ChainScores(layout, blocks, first)


def weights_of(chains: list[Chain]) -> list[float]:
    """The scores in the order of the flat vectors: pairs as they come, tables by their size."""
    tables = {len(c.start): c for c in chains}
    return [
        *(row[0] for c in chains for row in c.node),
        *(score for c in chains for row in c.node for score in row[1:]),
        *(score for n in sorted(tables) for row in tables[n].edge for score in row),
        *(score for n in sorted(tables) for score in tables[n].start),
        *(score for n in sorted(tables) for score in tables[n].end),
    ]


def less(counts, path) -> tuple:
    """Expected counts less those of a path."""
    node, edge, start, end = counts
    for m, s in enumerate(path):
        node[m][s] -= 1
    for a, b in zip(path, path[1:], strict=False):
        edge[a][b] -= 1
    start[path[0]] -= 1
    end[path[-1]] -= 1
    return node, edge, start, end


def charged(c: Chain, readings, costs) -> Chain:
    """The chain whose paths pay for each state that no reading of gold has."""
    price = [costs["cost_link" if s else "cost_null"] for s in readings[0]]
    rows = zip(c.node, zip(*readings, strict=True), price, strict=True)
    node = [[x + (s not in right) * pay for s, x in enumerate(row)] for row, right, pay in rows]
    return replace(c, node=node)


def averaged(each) -> tuple:
    """Counts, table by table."""
    return tuple(np.mean([np.array(counts) for counts in table], axis=0) for table in zip(*each, strict=True))


def added(chains: list[Chain]) -> list[Chain]:
    """Transition scores of those that share a table, added up."""
    sums: dict = {}
    for c in chains:
        parts = np.array(c.edge), np.array(c.start), np.array(c.end)
        sums[len(c.start)] = tuple(a + b for a, b in zip(sums.get(len(c.start), (0, 0, 0)), parts, strict=True))
    return [Chain(c.node, *(x.tolist() for x in sums[len(c.start)])) for c in chains]


@quick
@given(SIZES, st.integers(0, 10**6), SPREADS, st.sampled_from([1, 300, 10**6]), COSTS, COSTS)
def test_loss_and_gradient(sizes, seed, spread, max_cells, cost_null, cost_link):
    chains, draw = random_chains(sizes, seed, *spread), np.random.default_rng(seed)
    costs = {"cost_null": cost_null, "cost_link": cost_link}
    gold = [draw.integers(0, n + 1, m) for m, n in sizes]
    scores, weights = scores_of(sizes), np.array(weights_of(chains))
    loss, gradient = Objective([Part(scores, [[g] for g in gold])], 0.0, costs, max_cells)(weights)
    paths = [g.tolist() for g in gold]
    margins = [c.softmax_margin(p, cost_null, cost_link) for c, p in zip(chains, paths, strict=True)]
    assert loss == pytest.approx(math.fsum(margins), abs=1e-9, rel=1e-12)
    slopes = [Chain(*less(charged(c, [p], costs).counts(), p)) for c, p in zip(chains, paths, strict=True)]
    np.testing.assert_allclose(gradient, weights_of(added(slopes)), atol=1e-9, rtol=0)


@quick
@given(SIZES, st.integers(0, 10**6), SPREADS, st.integers(1, 4), COSTS, COSTS)
def test_readings_of_gold_have_equal_shares(sizes, seed, spread, ways, cost_null, cost_link):
    chains, draw = random_chains(sizes, seed, *spread), np.random.default_rng(seed)
    costs = {"cost_null": cost_null, "cost_link": cost_link}
    linked = [draw.integers(0, 2, m) for m, _ in sizes]
    gold = [
        [on * draw.integers(1, n + 1, m) for _ in range(ways)] for on, (m, n) in zip(linked, sizes, strict=True)
    ]
    loss, gradient = Objective([Part(scores_of(sizes), gold)], 0.0, costs)(np.array(weights_of(chains)))
    readings = [[path.tolist() for path in paths] for paths in gold]
    paying = [charged(c, paths, costs) for c, paths in zip(chains, readings, strict=True)]
    margins = [
        c.log_z() - math.fsum(c.score(path) for path in paths) / ways
        for c, paths in zip(paying, readings, strict=True)
    ]
    assert loss == pytest.approx(math.fsum(margins), abs=1e-9, rel=1e-12)
    slopes = [
        Chain(*averaged([less(c.counts(), path) for path in paths]))
        for c, paths in zip(paying, readings, strict=True)
    ]
    np.testing.assert_allclose(gradient, weights_of(added(slopes)), atol=1e-9, rtol=0)


@quick
@given(SIZES, st.integers(0, 10**6), SPREADS, st.sampled_from([1, 300, 10**6]))
def test_a_pair_counts_by_its_weight(sizes, seed, spread, max_cells):
    chains, draw = random_chains(sizes, seed, *spread), np.random.default_rng(seed)
    costs = {"cost_null": 0.5, "cost_link": 3.0}
    gold = [draw.integers(0, n + 1, m) for m, n in sizes]
    counts = draw.choice([0.0, 0.25, 1.0, 2.0], len(sizes))
    scores, weights = scores_of(sizes), np.array(weights_of(chains))
    paths = [[g] for g in gold]
    loss, gradient = Objective([Part(scores, paths, counts)], 0.0, costs, max_cells)(weights)
    margins = [c.softmax_margin(g.tolist(), **costs) for c, g in zip(chains, gold, strict=True)]
    assert loss == pytest.approx(math.fsum(counts * margins), abs=1e-9, rel=1e-12)
    slopes = []
    for c, g, times in zip(chains, gold, counts, strict=True):
        own = less(charged(c, [g.tolist()], costs).counts(), g.tolist())
        slopes.append(Chain(*(times * np.array(part) for part in own)))
    np.testing.assert_allclose(gradient, weights_of(added(slopes)), atol=1e-9, rtol=0)


def mixed(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    n_target = draw.integers(4, 60, pairs)
    return np.clip(n_target + draw.integers(-10, 40, pairs), 1, None), n_target


@pytest.mark.parametrize("places", [3_000, 10**6])
def test_pairs_of_real_size_cost_what_autograd_says(places):
    sizes = list(zip(*mixed(120), strict=True))
    scores, draw = scores_of(sizes), np.random.default_rng(2)
    weights = draw.normal(size=sum(scores.layout.sizes.values())) * 2
    gold, costs = [draw.integers(0, n + 1, m) for m, n in sizes], {"cost_null": 0.7, "cost_link": 1.3}
    loss, gradient = Objective([Part(scores, [[g] for g in gold])], 0.0, costs, places)(weights)
    flat = [x.requires_grad_() for x in scores.flat(torch.from_numpy(weights))]
    each = softmax_margin(scores.layout, flat, gold, **costs)
    each.sum().backward()
    assert loss == pytest.approx(each.sum().item(), rel=1e-12)
    np.testing.assert_allclose(gradient, np.concatenate([x.grad for x in flat]), atol=1e-9)


def test_little_of_a_pack_is_padding():
    layout = layout_of(list(zip(*mixed(2000), strict=True)))
    cut = packs(layout, 200_000)
    sizes = [pack.has_token.size * pack.width for pack in cut]
    assert max(sizes) <= 200_000
    assert max(pack.has_token.size * pack.width for pack in packs(layout, 20_000)) <= 20_000
    assert sum(sizes) < 2.5 * layout.n_nodes
    assert len(cut) < 2 * sum(sizes) / 200_000 + 10
    assert sorted(np.concatenate([pack.places[0][pack.places[0] < layout.n_nodes] for pack in cut])) == list(
        range(layout.n_tokens)
    )


def calls(sizes) -> int:
    scores = scores_of(sizes)
    gold = [[np.zeros(m, dtype=np.int64)] for m, _ in sizes]
    objective = Objective([Part(scores, gold)], 0.0, {"cost_null": 1.0, "cost_link": 1.0})
    weights = np.zeros(sum(scores.layout.sizes.values()))
    with Counter() as counter:
        objective(weights)
    return counter.calls


def test_operations_depend_on_the_longest_pair_alone():
    reference = calls([(16, 9)] * 8)
    assert [calls([(16, 9)] * 80), calls([(16, 13)] * 8), calls([(16, 9), (16, 12), (16, 8)])] == [reference] * 3
    assert calls([(48, 9)] * 8) - calls([(32, 9)] * 8) == calls([(32, 9)] * 8) - reference
    ragged = [(m, n) for m in range(1, 49) for n in (3, 9)]
    assert calls(ragged) < 2 * calls([(48, 9)] * 8)  # where groups end, views are taken


def test_a_path_must_be_one_of_its_pair():
    scores = scores_of([(2, 3), (1, 1)])
    for gold in ([[0, 4], [1]], [[0, -1], [1]], [[0, 1, 2], [1]], [[0, 1], [2]]):
        with pytest.raises(ValueError, match="a path has as many states as its pair"):
            Objective([Part(scores, [[np.array(g)] for g in gold])], 0.0, {"cost_null": 1, "cost_link": 1})


def test_evaluations_keep_nothing():
    """Only arrays that all evaluations share are sent to the device once and held on to."""
    scores = scores_of([(3, 2), (5, 4), (2, 2)])
    gold = [[np.zeros(m, dtype=np.int64)] for m in (3, 5, 2)]
    objective = Objective([Part(scores, gold)], 0.0, {"cost_null": 1.0, "cost_link": 1.0})
    weights = np.zeros(sum(scores.layout.sizes.values()))
    sent = []
    for _ in range(4):
        objective(weights)
        sent.append(len(objective._parts[0][1]._ns._sent))
    assert sent == [sent[0]] * 4
