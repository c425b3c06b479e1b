"""The softmax margin of gold paths, for scores of any origin; objective.py has it for scores linear in weights.

In come `Potentials` and gold states [B, M] (-1 past the length); out goes a loss per chain, differentiable.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .decode import path_score
from .inference import log_partition
from .potentials import Potentials

__all__ = ["path_score", "softmax_margin"]


def softmax_margin(
    p: Potentials, gold: Tensor, cost_null: float = 1.0, cost_link: float = 1.0, cost_missed: float | None = None
) -> Tensor:
    """[B] log of the sum over paths of exp(score + cost) minus the gold path's score (Gimpel & Smith).

    Every position with another state than gold's costs: `cost_null` where gold is NULL, `cost_link` where gold
    is a link, but `cost_missed` (by default the same) where gold is a link and the path says NULL. With all of
    them 0 it is the negative log-likelihood.
    """
    B, M, S = p.shape
    inside = torch.arange(M, device=p.node.device) < p.lengths[:, None]  # [B, M]
    _check_gold(p, gold, inside)
    safe = torch.where(inside, gold, 0)
    missed = cost_link if cost_missed is None else cost_missed
    # Filled in the scores' own type: torch.where of two numbers would round them to 32 bits.
    cost = torch.full_like(safe, cost_link, dtype=p.node.dtype).masked_fill(safe == 0, cost_null)
    wrong = cost * inside  # [B, M]
    # Everybody pays the cost outside of the sum, and gold gets it back: only a column of node scores changes.
    refund = torch.zeros_like(p.node).scatter_(2, safe.unsqueeze(2), -wrong.unsqueeze(2))
    if missed != cost_link and M:
        refund[:, :, 0] += (missed - cost_link) * (inside & (safe > 0))
    costly = log_partition(p.with_node(p.node + refund)) + wrong.sum(1)
    return costly - path_score(p, gold)


def _check_gold(p: Potentials, gold: Tensor, inside: Tensor) -> None:
    if gold.shape != inside.shape:
        raise ValueError(f"gold must be {[*inside.shape]}, not {[*gold.shape]}")
    bad = inside & ((gold < 0) | (gold >= p.sizes[:, None]))
    if bad.any():
        b, t = bad.nonzero()[0].tolist()
        raise ValueError(
            f"gold state {gold[b, t].item()} at position {t} of chain {b} is not among its "
            f"{p.sizes[b].item()} states"
        )
