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


def plain_log_z(p: Potentials) -> list[float]:
    """One chain at a time, float64, numpy."""
    out = []
    for b in range(len(p)):
        u, M, S = int(p.table[b]), int(p.lengths[b]), int(p.sizes[b])
        node, edge = p.node[b, :M, :S].double().numpy(), p.edge[u, :S, :S].double().numpy()
        alpha = p.start[u, :S].double().numpy() + node[0]
        for row in node[1:]:
            alpha = np.logaddexp.reduce(alpha[:, None] + edge, axis=0) + row
        out.append(float(np.logaddexp.reduce(alpha + p.end[u, :S].double().numpy())))
    return out


@pytest.mark.parametrize("node, edge", [(1, 1), (50, 1), (50, 20), (3, 12), (1000, 8)])
@pytest.mark.parametrize("tables", [[40], [40, 31, 12, 2, 1]])
def test_float32_over_long_chains(node, edge, tables):
    lengths = [60, 1, 33, 60, 59, 7, 2, 48]
    p = batch(lengths, tables, 40, node, edge)
    expected = plain_log_z(p)
    assert log_partition(p.to(dtype=torch.float64)).tolist() == pytest.approx(expected, rel=1e-12)
    # Beyond 2**10 a float32 itself is coarser than 1e-4.
    assert log_partition(p).tolist() == pytest.approx(expected, abs=1e-4, rel=2e-7)
    low, high = marginals(p), marginals(p.to(dtype=torch.float64))
    for a, b in zip(low, high, strict=True):
        assert torch.allclose(a.double(), b, atol=1e-4, rtol=1e-4)
    assert torch.allclose(high.node.sum(2), (torch.arange(60) < p.lengths[:, None]).double())
    assert high.edge.sum().item() == pytest.approx(sum(lengths) - len(lengths))


@pytest.mark.parametrize("node, edge", [(50, 20), (1, 30), (80, 3)])
def test_one_way_out_of_a_state_that_looked_hopeless(node, edge):
    """At each step the state that all others score worst leads on; products must not have lost it."""
    p = batch([30], [9], 9, 0, 0)
    scores, steps = p.node.clone(), p.edge.clone()
    scores[:, ::2, 4] = -node
    scores[:, 1::2, 3] = node
    steps[:, :, 4], steps[:, 4, :] = -edge, edge
    steps[:, 4, 3] = edge
    p = Potentials.build(scores, steps, p.start, p.end, p.table, p.lengths, p.sizes)
    assert log_partition(p).item() == pytest.approx(plain_log_z(p)[0], abs=1e-4, rel=2e-7)


def test_half_precision_scores_are_computed_in_float32():
    p = batch([20, 7], [12], 12, 3, 2).to(dtype=torch.bfloat16)
    assert log_partition(p).dtype == torch.bfloat16
    expected = plain_log_z(p.to(dtype=torch.float64))
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
