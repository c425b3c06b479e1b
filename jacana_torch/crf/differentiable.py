"""The softmax margin of any scores, such as a network's, and log Z: differentiable by autograd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .arrays import TorchArrays
from .kernel import Chains
from .layout import Layout, packs
from .objective import Path, entry_pairs, margin, of_chains


def softmax_margin(
    layout: Layout, flat: Sequence[Tensor], gold: Sequence[Path], cost_null: float = 1.0, cost_link: float = 1.0
) -> Tensor:
    """Return [P] log of the sum over paths of exp(score + cost), minus the score of the gold path; differentiable.

    With costs of 0 it is the negative log-likelihood. A loss that is not finite is for the optimiser to report.
    """
    _, refund, paid = margin(layout, [[path] for path in gold], cost_null, cost_link, flat[0].device)
    nodes, *steps = flat
    costly = log_partition(layout, [nodes + refund.to(nodes), *steps], check=False)
    return costly + paid.to(nodes) - path_scores(layout, flat, gold)


def path_scores(layout: Layout, flat: Sequence[Tensor], paths: Sequence[Path]) -> Tensor:
    """Return [P] the score of a path of each pair; differentiable."""
    device = flat[0].device
    total = flat[0].new_zeros(len(layout.geometry.n_source))
    for scores, entries, pair in zip(flat, layout.path_entries(paths), entry_pairs(layout), strict=True):
        entry, pairs = (torch.as_tensor(x, device=device) for x in (entries, pair))
        total = total.index_add(0, pairs, scores.index_select(0, entry))
    return total


def log_partition(layout: Layout, flat: Sequence[Tensor], check: bool = True) -> Tensor:
    """Return [P] the log of the sum of exp(score) over all paths; differentiable in all scores.

    One that is not finite is an error if `check` is set, for which a device is waited for.
    """
    chains = Chains(layout, packs(layout), TorchArrays(flat[0].device))
    return _LogPartition.apply(chains, check, *flat)  # type: ignore[no-any-return, no-untyped-call]


class _LogPartition(torch.autograd.Function):
    """log Z, whose gradient is the expected counts: one sweep each way, and no [B, M, S, S] tensor."""

    @staticmethod
    def forward(ctx: Any, chains: Chains, check: bool, *flat: Tensor) -> Tensor:
        log_z: Tensor
        log_z, ctx.lattices = chains.sweep([x.detach() for x in flat], lambda x: x, check)
        ctx.chains, ctx.dtype = chains, flat[0].dtype
        return log_z.to(ctx.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        chains, counts = ctx.chains, []
        for x in ctx.lattices:
            # The sweep back takes the emission's place, and autograd may ask for it again.
            own = replace(x, emission=x.emission.clone())
            counts.append(chains.backward(own, of_chains(x, weight), edges=True))
        joints, pairs = zip(*counts, strict=True) if counts else ((), ())
        found = chains.node_counts(joints, torch.float64), *chains.step_counts(pairs)
        return None, None, *(x.to(ctx.dtype) for x in found)
