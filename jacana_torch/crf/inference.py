"""Exact inference over a batch of chains: log Z, expected counts, best paths, best links.

In comes `Potentials`; out go tensors on its device. Nothing here loops over chains or states: the number of tensor
operations depends on the longest chain alone. `log_partition` is differentiable, everything else is not.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import logspace, sweep
from .arrange import Arranged, arranged
from .decode import kbest, posterior_decode, viterbi
from .expected import expected_f1_links
from .plain import check_finite
from .potentials import Potentials

__all__ = [
    "Marginals", "expected_f1_links", "kbest", "log_partition", "marginals", "posterior_decode", "viterbi",
]  # fmt: skip


class Marginals(NamedTuple):
    """Posterior chances: `node` [B, M, S] of each state; `edge` [U, S, S], `start` and `end` [U, S] how often
    each transition is expected in the whole batch, by table; `log_z` [B], as log_partition has it."""

    node: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor
    log_z: Tensor


def log_partition(p: Potentials) -> Tensor:
    """[B] log of the sum of exp(score) over all paths of each chain; differentiable in all four scores."""
    return _LogPartition.apply(p.node, p.edge, p.start, p.end, p)


@torch.no_grad()
def marginals(p: Potentials) -> Marginals:
    """Posterior marginals and expected counts, outside of any autograd graph."""
    x, f, log_z = _forward(p)
    counts = _backward(x, f, torch.ones_like(log_z), len(p.edge))
    return Marginals(*(c.to(p.node.dtype) for c in (*counts, log_z)))


def _forward(p: Potentials) -> tuple[Arranged, sweep.Forward, Tensor]:
    x = arranged(p)
    f = _method(x.lattice).forward(x.lattice)
    log_z = x.log_z(f.log_z)
    if not log_z.isfinite().all():
        check_finite(log_z.cpu().numpy())
    return x, f, log_z


def _backward(x: Arranged, f: sweep.Forward, weight: Tensor, n_tables: int) -> tuple[Tensor, ...]:
    return x.counts(_method(x.lattice).backward(x.lattice, f, x.weights(weight)), n_tables)


def _method(x: sweep.Lattice) -> ModuleType:
    return sweep if x.every else logspace


class _LogPartition(torch.autograd.Function):
    """log Z, whose gradient is the expected counts: one sweep each way, nothing of size [B, M, S, S]."""

    @staticmethod
    def forward(ctx: Any, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, p: Potentials) -> Tensor:
        x, f, log_z = _forward(p)
        if any(ctx.needs_input_grad):
            ctx.arranged, ctx.swept, ctx.n_tables = x, f, len(edge)
        return log_z.to(node.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        counts = _backward(ctx.arranged, ctx.swept, weight, ctx.n_tables)
        return *(c.to(weight.dtype) for c in counts), None
