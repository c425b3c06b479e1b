"""Exact inference over a batch of chains: log Z, expected counts, best paths, best links.

In comes `Potentials`; out go tensors on its device. Nothing here loops over chains or states: the number of tensor
operations depends on the longest chain alone. `log_partition` is differentiable, everything else is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import JacanaError
from . import logspace, sweep
from .decode import expected_f1_links, kbest, posterior_decode, viterbi
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
    x, f = _forward(p)
    counts = _backward(x, f, torch.ones_like(f.log_z))
    return Marginals(
        *(c.to(p.node.dtype) for c in (counts.node, counts.edge, counts.start, counts.end, f.log_z))
    )


def _forward(p: Potentials, keep: bool = True) -> tuple[sweep.Lattice, sweep.Forward]:
    x = sweep.lattice(p)
    f = sweep.forward(x, keep) if x.every else logspace.forward(x)
    if not f.log_z.isfinite().all():
        bad = (~f.log_z.isfinite()).nonzero().flatten().tolist()
        raise JacanaError(
            f"log Z is {f.log_z[bad[0]].item()} for chain {bad[0]} ({len(bad)} of {len(p)} such): its scores hold "
            "NaN or infinity, or forbid every path; look for a diverged weight or a feature that is not finite"
        )
    return x, f


def _backward(x: sweep.Lattice, f: sweep.Forward, weight: Tensor) -> sweep.Counts:
    return (sweep if x.every else logspace).backward(x, f, weight)


class _LogPartition(torch.autograd.Function):
    """log Z, whose gradient is the expected counts: one sweep each way, nothing of size [B, M, S, S]."""

    @staticmethod
    def forward(ctx: Any, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, p: Potentials) -> Tensor:
        x, f = _forward(p, keep=any(ctx.needs_input_grad))
        if any(ctx.needs_input_grad):
            ctx.lattice, ctx.swept = x, f
        return f.log_z.to(node.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        c, kind = _backward(ctx.lattice, ctx.swept, weight), ctx.lattice.p.node.dtype
        return c.node.to(kind), c.edge.to(kind), c.start.to(kind), c.end.to(kind), None
