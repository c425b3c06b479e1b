"""The loss of training and its gradient against the enumeration of all paths, on every pair and every score."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import Chain, random_chains
from hypothesis import given, settings
from hypothesis import strategies as st
from test_oracle_scale import Counter

from jacana_torch.crf.bands import bands
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.loss import softmax_margin
from jacana_torch.crf.objective import Objective, lattices
from jacana_torch.crf.states import pad_states

SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6)
# Spreads of node and of transition scores: products that are rescaled seldom, each step, and log space.
SPREADS = st.sampled_from([(1.0, 1.0), (50.0, 20.0), (50.0, 90.0), (300.0, 400.0)])
COSTS = st.sampled_from([0.0, 0.5, 3.0])
quick = settings(max_examples=25, deadline=None)


def laid_out(sizes, max_cells: int = 10**6):
    """Lattices in which every score is a weight of its own: null, link, edge, start, end."""
    n_source, n_target = (np.array(side) for side in zip(*sizes, strict=True))
    layout = Layout(n_source, n_target, max_cells, "cpu")
    blocks, first = {}, 0
    for name, size in layout.sizes.items():
        blocks[name] = [(np.arange(first, first + size), None, None)]
        first += size
    return lattices(layout, blocks, first)


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
    space, weights = laid_out(sizes, max_cells), np.array(weights_of(chains))
    loss, gradient = Objective(space, [[g] for g in gold], 0.0, costs)(weights)
    paths = [g.tolist() for g in gold]
    margins = [c.softmax_margin(p, cost_null, cost_link, cost_link) for c, p in zip(chains, paths, strict=True)]
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
    loss, gradient = Objective(laid_out(sizes), gold, 0.0, costs)(np.array(weights_of(chains)))
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


def mixed(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    n_target = draw.integers(4, 60, pairs)
    return np.clip(n_target + draw.integers(-10, 40, pairs), 1, None), n_target


@pytest.mark.parametrize("max_cells", [3_000, 10**6])
def test_pairs_of_real_size_cost_what_they_cost_in_padded_batches(max_cells):
    sizes = list(zip(*mixed(120), strict=True))
    space, draw = laid_out(sizes, max_cells), np.random.default_rng(2)
    weights = draw.normal(size=sum(space.layout.sizes.values())) * 2
    gold, costs = [draw.integers(0, n + 1, m) for m, n in sizes], {"cost_null": 0.7, "cost_link": 1.3}
    loss, gradient = Objective(space, [[g] for g in gold], 0.0, costs)(weights)
    flat = [x.requires_grad_() for x in space.flat(torch.from_numpy(weights))]
    total = 0.0
    for bucket in space.layout.buckets:
        states = torch.from_numpy(pad_states([gold[k] for k in bucket.pairs]))
        each = softmax_margin(bucket.potentials(*flat), states, **costs)
        each.sum().backward()
        total += each.sum().item()
    assert loss == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(gradient, np.concatenate([x.grad[:-1] for x in flat]), atol=1e-9)


def test_little_of_a_band_is_padding():
    n_source, n_target = mixed(2000)
    layout = Layout(n_source, n_target, 10**6, "cpu")
    cut = bands(layout, 200_000)
    places = [band.size for band in cut]
    assert max(places) <= 200_000 and max(band.size for band in bands(layout, 20_000)) <= 20_000
    assert sum(places) < 2.5 * (layout.n_tokens + layout.n_cells)
    assert len(cut) < 2 * sum(places) / 200_000 + 10
    cells = torch.cat([band.cells for band in cut]).sort().values
    assert torch.equal(cells, torch.arange(layout.n_tokens + layout.n_cells))


def calls(sizes) -> int:
    space = laid_out(sizes)
    gold = [[np.zeros(m, dtype=np.int64)] for m, _ in sizes]
    objective = Objective(space, gold, 0.0, {"cost_null": 1.0, "cost_link": 1.0})
    weights = np.zeros(sum(space.layout.sizes.values()))
    with Counter() as counter:
        objective(weights)
    return counter.calls


def test_operations_depend_on_the_longest_pair_alone():
    reference = calls([(16, 9)] * 8)
    assert [calls([(16, 9)] * 80), calls([(16, 13)] * 8), calls([(16, 3), (16, 7), (16, 2)])] == [reference] * 3
    assert calls([(48, 9)] * 8) - calls([(32, 9)] * 8) == calls([(32, 9)] * 8) - reference
    ragged = [(m, n) for m in range(1, 49) for n in (3, 9)]
    assert calls(ragged) < 2 * calls([(48, 9)] * 8)  # where groups end, views are taken


def test_a_path_must_be_one_of_its_pair():
    space = laid_out([(2, 3), (1, 1)])
    for gold in ([[0, 4], [1]], [[0, -1], [1]], [[0, 1, 2], [1]], [[0, 1], [2]]):
        with pytest.raises(ValueError, match="a path has as many states as its pair"):
            Objective(space, [[np.array(g)] for g in gold], 0.0, {"cost_null": 1, "cost_link": 1})
