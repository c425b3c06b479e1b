"""Lattices of real size: precision against a plain log-space recursion, and what inference may cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from enumeration import layout_of, node_rows
from torch.utils._python_dispatch import TorchDispatchMode

from jacana_torch.crf.differentiable import log_partition
from jacana_torch.crf.kernel import posteriors
from jacana_torch.crf.layout import Layout
from jacana_torch.crf.viterbi import best_paths


def batch(lengths, tables, node=1.0, edge=1.0, dtype=torch.float32, seed=0) -> tuple[Layout, list[torch.Tensor]]:
    """Uniform in ±node and ±edge; `tables` are numbers of states, which the chains have in turn."""
    generator = torch.Generator().manual_seed(seed)
    layout = layout_of([(m, tables[b % len(tables)] - 1) for b, m in enumerate(lengths)])
    sizes = layout.n_nodes, *list(layout.sizes.values())[2:]
    scales = node, edge, edge, edge
    flat = [(torch.rand(k, generator=generator) * 2 - 1) * scale for k, scale in zip(sizes, scales, strict=True)]
    return layout, [x.to(dtype) for x in flat]


def plain(layout: Layout, flat) -> tuple[list[float], list[np.ndarray]]:
    """log Z and posteriors, one chain at a time, in NumPy's float64 logarithms."""
    nodes, edges, starts, ends = (x.double().numpy() for x in flat)
    log_z, found = [], []
    for pair, node in enumerate(node_rows(layout, nodes)):
        u, S = layout.table[pair], node.shape[1]
        at, outer = int(layout.edge_start[u]), int(layout.first_start[u])
        edge = edges[at : at + S * S].reshape(S, S)
        alpha, beta = [starts[outer : outer + S] + node[0]], [ends[outer : outer + S]]
        for row in node[1:]:
            alpha.append(np.logaddexp.reduce(alpha[-1][:, None] + edge, axis=0) + row)
        for row in node[:0:-1]:
            beta.append(np.logaddexp.reduce(edge + (beta[-1] + row)[None, :], axis=1))
        log_z.append(float(np.logaddexp.reduce(alpha[-1] + beta[0])))
        found.append(np.exp(np.array(alpha) + np.array(beta[::-1]) - log_z[-1]))
    return log_z, found


def doubled(flat) -> list[torch.Tensor]:
    return [x.double() for x in flat]


def counts_of(layout: Layout, flat) -> list[torch.Tensor]:
    leaves = [x.clone().requires_grad_() for x in flat]
    log_partition(layout, leaves).sum().backward()
    return [x.grad for x in leaves]


@pytest.mark.parametrize("node, edge", [(1, 1), (50, 1), (50, 20), (3, 12), (1000, 8)])
@pytest.mark.parametrize("tables", [[40], [40, 31, 12, 2, 1]])
def test_float32_over_long_chains(node, edge, tables):
    lengths = [60, 1, 33, 60, 59, 7, 2, 48]
    layout, flat = batch(lengths, tables, node, edge)
    expected, _ = plain(layout, flat)
    assert log_partition(layout, doubled(flat)).tolist() == pytest.approx(expected, rel=1e-12)
    # Beyond 2**10 a float32 itself is coarser than 1e-4.
    assert log_partition(layout, flat).tolist() == pytest.approx(expected, abs=1e-4, rel=2e-7)
    low, high = counts_of(layout, flat), counts_of(layout, doubled(flat))
    for a, b in zip(low, high, strict=True):
        assert torch.allclose(a.double(), b, atol=1e-4, rtol=1e-4)
    assert all(row.sum(1) == pytest.approx(np.ones(len(row))) for row in node_rows(layout, high[0]))
    assert high[1].sum().item() == pytest.approx(sum(lengths) - len(lengths))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("states", [3, 30])
@pytest.mark.parametrize("edge", [2, 8, 9.5, 15, 20, 40, 140, 300, 1000])
@pytest.mark.parametrize("node", [0, 50])
def test_every_step_is_the_least_likely_one(node, edge, states, dtype):
    """The one good transition belongs to a state that no path can afford: all else shrinks by the whole spread."""
    layout, flat = batch([40], [states], 1, 1, torch.float64)
    (scores,), steps = node_rows(layout, flat[0]), torch.full((states, states), -float(edge), dtype=torch.float64)
    scores[np.arange(40), 1 + np.arange(40) % 2] += node
    scores[:, 0] = -8.0 * edge - node
    steps[0, 0] = edge
    nodes = torch.as_tensor(np.concatenate([scores[:, 0], scores[:, 1:].ravel()]))
    flat = [x.to(dtype) for x in (nodes, steps.ravel(), *flat[2:])]
    (log_z,), (found,) = plain(layout, flat)
    for library in (flat, [x.numpy() for x in flat]):
        got = posteriors(layout, library)
        assert got.log_z.tolist() == pytest.approx([log_z], abs=1e-4, rel=2e-7)
        assert node_rows(layout, got.nodes)[0] == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_only_way_to_the_end_may_be_one_that_had_long_looked_lost(dtype):
    """Staying in state 1 costs 30 a step, but state 0, which costs nothing, may not end or leave."""
    layout, inf = layout_of([(60, 1)]), float("inf")
    scores = [0.0] * 60 + [-30.0] * 60, [0.0, -inf, -inf, 0.0], [0.0, 0.0], [-inf, 0.0]
    flat = [torch.tensor(x, dtype=dtype) for x in scores]
    assert log_partition(layout, flat).tolist() == [-1800.0]
    assert posteriors(layout, flat).nodes.tolist() == [0.0] * 60 + [1.0] * 60
    assert best_paths(layout, flat)[0].tolist() == [1] * 60


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [10, 40, 60, 65, 80, 300, 400, 600, 645, 700])
def test_a_state_as_unlikely_as_can_be_made_up_for(spread, dtype):
    """Every step costs half the spread, state 2 costs all of it, but it alone gains half of it on its way to 3."""
    states = 30
    (layout, _), never = batch([3], [states]), -3000.0
    node = torch.full((3, states), never, dtype=torch.float64)
    node[0, 1] = node[1, 1] = node[2, 3] = 0.0
    node[1, 2] = -float(spread)
    edge = torch.full((states, states), -spread / 2, dtype=torch.float64)
    edge[2, 3] = spread / 2
    outer = torch.zeros(states, dtype=torch.float64)
    flat = [torch.cat([node[:, 0], node[:, 1:].reshape(-1)]), edge.reshape(-1), outer, outer]
    for library in ([x.to(dtype) for x in flat], [x.to(dtype).numpy() for x in flat]):
        nodes, log_z = posteriors(layout, library)
        assert log_z.tolist() == pytest.approx([-spread + np.log(2)], abs=1e-4)
        assert node_rows(layout, nodes)[0][1, 1:3] == pytest.approx([0.5, 0.5], abs=1e-4)


def test_half_precision_scores_are_computed_in_float32():
    layout, flat = batch([20, 7], [12], 3, 2)
    flat = [x.to(torch.bfloat16) for x in flat]
    assert log_partition(layout, flat).dtype == torch.bfloat16
    assert log_partition(layout, flat).float().tolist() == pytest.approx(plain(layout, flat)[0], rel=1e-2)


class Counter(TorchDispatchMode):
    """How many tensor operations run, and the largest tensor that any of them makes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.calls += 1
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.itemsize)
        return out


def cost(run, layout: Layout, flat) -> Counter:
    with Counter() as counter:
        run(layout, flat)
    return counter


RUNS = {"gradient": counts_of, "posteriors": posteriors, "viterbi": best_paths}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("tables", [1, 3])
def test_operations_depend_on_the_longest_chain_alone(name, tables):
    def calls(B, M, N):
        return cost(RUNS[name], *batch([M] * (B - 1) + [1], [N + 1 - i for i in range(tables)])).calls

    reference = calls(8, 16, 12)
    assert [calls(80, 16, 12), calls(8, 16, 30), calls(6, 16, 3)] == [reference] * 3
    assert calls(8, 48, 12) - calls(8, 32, 12) == calls(8, 32, 12) - reference  # linear in M
    assert reference < 16 * 40


@pytest.mark.parametrize("tables", [1, 4])
def test_memory_of_the_gradient(tables):
    B, M, N = 12, 40, 30
    largest = cost(counts_of, *batch([M] * B, [N + 1 - i for i in range(tables)])).largest
    assert largest <= 6 * B * M * (N + 1) < B * M * (N + 1) ** 2 / 4
