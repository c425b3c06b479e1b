"""Inference of three libraries on the same lattices, and the bare matrix products that inference consists of.

A maker turns lattices into functions by name: `marginals` (log Z with all marginals, by autograd in the other
libraries), `partition` (log Z alone), `viterbi`, and for ours `gradient` (by autograd). Inputs are made
beforehand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from jacana_torch.crf.arrays import TorchArrays
from jacana_torch.crf.differentiable import log_partition
from jacana_torch.crf.kernel import Chains
from jacana_torch.crf.layout import Layout, packs
from jacana_torch.crf.viterbi import best_paths
from jacana_torch.util.geometry import Geometry

from .measure import free_memory

Runs = dict[str, Callable[[], object]]
Shape = tuple[int, int, int]  # B chains, M positions, N target tokens


@dataclass
class Lattices:
    """Padded scores of chains that share their transitions.

    node [B, M, S]; edge [S, S], from row to column; start and end [S]; lengths [B].
    """

    node: torch.Tensor
    edge: torch.Tensor
    start: torch.Tensor
    end: torch.Tensor
    lengths: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """[B, M] whether a chain has this position."""
        return torch.arange(self.node.shape[1]) < self.lengths[:, None]

    @cached_property
    def layout(self) -> Layout:
        n_source = self.lengths.numpy()
        return Layout(Geometry(n_source, np.full(len(n_source), self.node.shape[2] - 1)))

    @cached_property
    def flat(self) -> list[torch.Tensor]:
        """The scores as a `Layout` has them."""
        rows = self.node[self.mask]
        return [torch.cat([rows[:, 0], rows[:, 1:].reshape(-1)]), self.edge.reshape(-1), self.start, self.end]


def lattices(B: int, M: int, N: int, ragged: bool = False, dtype: torch.dtype = torch.float32) -> Lattices:
    """Random scores with one transition table, as the other libraries need; `ragged`: lengths from M/2 to M."""
    torch.manual_seed(0)
    S = N + 1
    lengths = torch.randint(max(1, M // 2), M + 1, (B,)) if ragged else torch.full((B,), M)
    lengths[0] = M
    return Lattices(*(torch.randn(*shape, dtype=dtype) for shape in ((B, M, S), (S, S), (S,), (S,))), lengths)


def jacana(p: Lattices) -> Runs:
    layout, flat = p.layout, p.flat
    chains = Chains(layout, packs(layout), TorchArrays("cpu"))

    @torch.no_grad()
    def marginals() -> None:
        _, counts = chains.sweep(flat, lambda x: chains.backward(x, edges=True))
        nodes, steps = zip(*counts, strict=True)
        chains.node_counts(nodes, "float32")
        chains.step_counts(steps)

    @torch.no_grad()
    def partition() -> torch.Tensor:
        log_z, _ = chains.sweep(flat, lambda x: None)
        return log_z

    def gradient() -> None:
        log_partition(layout, [x.detach().requires_grad_() for x in flat]).sum().backward()

    return {
        "gradient": gradient,
        "marginals": marginals,
        "partition": partition,
        "viterbi": lambda: best_paths(layout, flat),
    }


def pytorch_crf(p: Lattices) -> Runs:
    crf, node, mask = _crf(p)

    def gradient() -> None:
        emissions = node.clone().requires_grad_()
        for parameter in crf.parameters():
            parameter.grad = None
        crf._compute_normalizer(emissions, mask).sum().backward()

    @torch.no_grad()
    def partition() -> torch.Tensor:
        return crf._compute_normalizer(node, mask)

    @torch.no_grad()
    def decode() -> None:
        crf.decode(node, mask)

    return {"marginals": gradient, "partition": partition, "viterbi": decode}


def _crf(p: Lattices) -> tuple:
    from torchcrf import CRF

    crf = CRF(p.node.shape[2]).to(p.node.dtype)
    with torch.no_grad():
        crf.transitions.copy_(p.edge)
        crf.start_transitions.copy_(p.start)
        crf.end_transitions.copy_(p.end)
    mask = p.mask.T.contiguous()
    node = p.node.transpose(0, 1).masked_fill(~mask[:, :, None], 0.0).contiguous()
    return crf, node, mask


def torch_struct(p: Lattices) -> Runs | None:
    """None if the memory of its scan, several arrays of [B, M/2, S, S, S], would not fit."""
    from torch_struct import LinearChainCRF

    B, M, S = p.node.shape
    if B * (M // 2) * S**3 * 4 * 6 > free_memory() / 2:
        return None
    warnings.simplefilter("ignore")
    node = p.node
    scores = node[:, 1:, :, None] + p.edge.T  # [B, M-1, S (this), S (previous)]
    scores[:, 0] += (p.start + node[:, 0])[:, None, :]
    scores[torch.arange(B), p.lengths - 2] += p.end[None, :, None]

    def chain() -> LinearChainCRF:
        return LinearChainCRF(scores.clone().requires_grad_(), lengths=p.lengths)

    return {
        "marginals": lambda: chain().marginals,
        "partition": lambda: chain().partition,
        "viterbi": lambda: chain().argmax,
    }


MAKERS: dict[str, Callable[[Lattices], Runs | None]] = {
    "jacana": jacana,
    "pytorch-crf": pytorch_crf,
    "torch-struct": torch_struct,
}


def one_run(system: str, what: str, shape: Shape) -> Callable[[], object] | None:
    """One function of one library, which is loaded and warm."""
    warm = MAKERS[system](lattices(2, 4, 3))
    if warm:
        warm[what]()
    runs = MAKERS[system](lattices(*shape))
    return runs[what] if runs else None


def products(p: Lattices) -> Callable[[], None]:
    """Only the matrix products of log Z and its gradient, with one more state for start and end."""
    B, M, S = p.node.shape
    table, rows = torch.rand(S + 1, S + 1), torch.rand(M + 1, B, S + 1)
    out = torch.empty(M + 1, B, S + 1)
    steps, outs = rows.unbind(0), out.unbind(0)

    def run() -> None:
        for t in range(M + 1):
            torch.mm(steps[t], table, out=outs[t])
        for t in range(M + 1):
            torch.mm(steps[t], table.t(), out=outs[t])
        torch.mm(rows.view(-1, S + 1).t(), out.view(-1, S + 1))

    return run


def operations(p: Lattices) -> int:
    """The number of multiplications and additions in `products`."""
    B, M, S = p.node.shape
    return 3 * 2 * (M + 1) * B * (S + 1) ** 2


def dispatched(run: Callable[[], object]) -> int:
    """The number of tensor operations that a function dispatches."""
    with _Counter() as counter:
        run()
    return counter.calls


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.calls += 1
        return function(*args, **(kwargs or {}))


def peak_rate(size: int = 1024) -> Callable[[], object]:
    """A product of 2 * size**3 operations, large enough to reach the machine's peak rate."""
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out)


def check(p: Lattices) -> None:
    """Exit unless all libraries compute the same log Z."""
    ours = log_partition(p.layout, p.flat).float()
    for name in ("pytorch-crf", "torch-struct"):
        runs = MAKERS[name](p)
        theirs = runs["partition"]() if runs else ours
        if not torch.allclose(ours, theirs.detach(), atol=1e-3, rtol=1e-4):
            worst = (ours - theirs).abs().max().item()
            raise SystemExit(f"log Z differs from that of {name} by up to {worst:.2g}")
