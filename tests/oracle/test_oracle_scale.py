"""Lattices of real size: precision against a plain log-space recursion, and what inference may cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from jacana_torch.crf.inference import kbest, log_partition, marginals, viterbi
from jacana_torch.crf.potentials import Potentials


def batch(lengths, tables, S, node=1.0, edge=1.0, dtype=torch.float32, seed=0) -> Potentials:
    """Uniform in ±node and ±edge; `tables` of them, each with its own number of states."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(scale, *shape):
        return (torch.rand(*shape, generator=generator) * 2 - 1) * scale

    U, B = len(tables), len(lengths)
    table = torch.arange(B) % U
    scores = numbers(node, B, max(lengths), S), numbers(edge, U, S, S), numbers(edge, U, S), numbers(edge, U, S)
    return Potentials.build(
        *(x.to(dtype) for x in scores), table, torch.tensor(lengths), torch.tensor(tables)[table]
    )  # fmt: skip


def plain(p: Potentials) -> tuple[list[float], list[np.ndarray]]:
    """log Z and marginals, one chain at a time, in numpy's float64 logarithms."""
    log_z, chances = [], []
    for b in range(len(p)):
        u, M, S = int(p.table[b]), int(p.lengths[b]), int(p.sizes[b])
        node, edge = p.node[b, :M, :S].double().numpy(), p.edge[u, :S, :S].double().numpy()
        alpha, beta = [p.start[u, :S].double().numpy() + node[0]], [p.end[u, :S].double().numpy()]
        for row in node[1:]:
            alpha.append(np.logaddexp.reduce(alpha[-1][:, None] + edge, axis=0) + row)
        for row in node[:0:-1]:
            beta.append(np.logaddexp.reduce(edge + (beta[-1] + row)[None, :], axis=1))
        log_z.append(float(np.logaddexp.reduce(alpha[-1] + beta[0])))
        chances.append(np.exp(np.array(alpha) + np.array(beta[::-1]) - log_z[-1]))
    return log_z, chances


@pytest.mark.parametrize("node, edge", [(1, 1), (50, 1), (50, 20), (3, 12), (1000, 8)])
@pytest.mark.parametrize("tables", [[40], [40, 31, 12, 2, 1]])
def test_float32_over_long_chains(node, edge, tables):
    lengths = [60, 1, 33, 60, 59, 7, 2, 48]
    p = batch(lengths, tables, 40, node, edge)
    expected, _ = plain(p)
    assert log_partition(p.to(dtype=torch.float64)).tolist() == pytest.approx(expected, rel=1e-12)
    # Beyond 2**10 a float32 itself is coarser than 1e-4.
    assert log_partition(p).tolist() == pytest.approx(expected, abs=1e-4, rel=2e-7)
    low, high = marginals(p), marginals(p.to(dtype=torch.float64))
    for a, b in zip(low, high, strict=True):
        assert torch.allclose(a.double(), b, atol=1e-4, rtol=1e-4)
    assert torch.allclose(high.node.sum(2), (torch.arange(60) < p.lengths[:, None]).double())
    assert high.edge.sum().item() == pytest.approx(sum(lengths) - len(lengths))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("states", [3, 30])
@pytest.mark.parametrize("edge", [2, 8, 9.5, 15, 20, 40, 140, 300, 1000])
@pytest.mark.parametrize("node", [0, 50])
def test_every_step_is_the_least_likely_one(node, edge, states, dtype):
    """The one good transition belongs to a state that no path can afford: all else shrinks by the whole spread."""
    p = batch([40], [states], states, 1, 1, torch.float64)
    scores, steps = p.node.clone(), torch.full_like(p.edge, -edge)
    scores[:, torch.arange(40), 1 + torch.arange(40) % 2] += node
    scores[:, :, 0] = -8.0 * edge - node
    steps[:, 0, 0] = edge
    p = Potentials.build(scores, steps, p.start, p.end, p.table, p.lengths, p.sizes).to(dtype=dtype)
    (log_z,), (chances,) = plain(p)
    assert log_partition(p).item() == pytest.approx(log_z, abs=1e-4, rel=2e-7)
    assert marginals(p).node[0].double().numpy() == pytest.approx(chances, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_only_way_to_the_end_may_be_one_that_had_long_looked_lost(dtype):
    """Staying in state 1 costs 30 a step, but state 0, which costs nothing, may not end or leave."""
    node = torch.tensor([0.0, -30.0]).expand(1, 60, 2).to(dtype)
    inf = float("inf")
    edge = torch.tensor([[[0.0, -inf], [-inf, 0.0]]], dtype=dtype)
    end = torch.tensor([[-inf, 0.0]], dtype=dtype)
    one = torch.tensor([0]), torch.tensor([60]), torch.tensor([2])
    p = Potentials.build(node, edge, torch.zeros(1, 2, dtype=dtype), end, *one)
    assert log_partition(p).tolist() == [-1800.0]
    assert marginals(p).node[0].tolist() == [[0.0, 1.0]] * 60
    assert viterbi(p)[0].tolist() == [[1] * 60]


def test_half_precision_scores_are_computed_in_float32():
    p = batch([20, 7], [12], 12, 3, 2).to(dtype=torch.bfloat16)
    assert log_partition(p).dtype == torch.bfloat16
    expected, _ = plain(p.to(dtype=torch.float64))
    assert log_partition(p).float().tolist() == pytest.approx(expected, rel=1e-2)


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
                self.largest = max(self.largest, tensor.numel())
        return out


def cost(run, p: Potentials) -> Counter:
    with Counter() as counter:
        run(p)
    return counter


def gradient(p: Potentials) -> None:
    leaves = [x.requires_grad_() for x in (p.node.clone(), p.edge.clone(), p.start.clone(), p.end.clone())]
    log_partition(Potentials(*leaves, p.table, p.lengths, p.sizes)).sum().backward()


RUNS = {"gradient": gradient, "marginals": marginals, "viterbi": viterbi, "kbest": lambda p: kbest(p, 3)}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("tables", [1, 3])
def test_operations_depend_on_the_longest_chain_alone(name, tables):
    def calls(B, M, N):
        sizes = [N + 1 - i for i in range(tables)]
        return cost(RUNS[name], batch([M] * (B - 1) + [1], sizes, N + 1)).calls

    reference = calls(8, 16, 12)
    assert [calls(80, 16, 12), calls(8, 16, 50), calls(6, 16, 3)] == [reference] * 3
    assert calls(8, 48, 12) - calls(8, 32, 12) == calls(8, 32, 12) - reference  # linear in M
    assert reference < 16 * 40


@pytest.mark.parametrize("tables", [1, 4])
def test_memory_of_the_gradient(tables):
    B, M, N = 12, 40, 30
    largest = cost(gradient, batch([M] * B, [N + 1 - i for i in range(tables)], N + 1)).largest
    assert largest <= 6 * B * M * (N + 1) < B * M * (N + 1) ** 2 / 4
