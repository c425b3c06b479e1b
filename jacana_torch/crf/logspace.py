"""Forward-backward in log space: slower than sweep.py, for scores that probabilities cannot hold.

Needed where a transition is forbidden (-inf) or transition scores spread over hundreds. In and out as in sweep.py;
a step makes a [rows, S, S] intermediate, but nothing of that size is kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .sweep import Counts, Forward, Lattice


def forward(x: Lattice) -> Forward:
    alpha = torch.empty_like(x.emission)
    alpha[0] = x.emission[0]
    for t in range(1, len(alpha)):
        alpha[t] = torch.logsumexp(alpha[t - 1].unsqueeze(-1) + x.table.unsqueeze(1), 2) + x.emission[t]
    log_z = x.groups.gather(alpha[-1, :, :, x.p.shape[2]].reshape(-1, 1)).squeeze(-1) + x.offset  # [B]
    return Forward(alpha, alpha, log_z)


def backward(x: Lattice, f: Forward, weight: Tensor) -> Counts:
    g, S = x.groups, x.p.shape[2]
    weight = g.scatter(weight.to(x.table.dtype), 0.0).view(g.count, g.width, 1)
    ending = f.alpha[-1, :, :, S : S + 1]  # [G, c, 1] log Z without the offset
    joint = torch.empty_like(f.alpha)
    pairs = torch.zeros_like(x.table)
    ahead = torch.zeros_like(x.emission[-1])
    joint[-1] = f.alpha[-1]
    for t in range(len(f.alpha) - 1, 0, -1):
        beta = ahead + x.emission[t]  # [G, c, W]
        both = beta.unsqueeze(2) + x.table.unsqueeze(1)  # [G, c, W, W]
        ahead = torch.logsumexp(both, 3)
        chance = (f.alpha[t - 1] - ending).unsqueeze(-1) + both
        pairs += (chance.exp() * weight.unsqueeze(-1)).sum(1)
        joint[t - 1] = f.alpha[t - 1] + ahead
    node = (joint[1:-1, ..., :S] - ending).exp_() * weight  # [M, G, c, S]
    node = g.gather(node.flatten(1, 2))  # [M, B, S]
    pairs = g.per_table(pairs, x.p.edge.shape[0])
    return Counts(node.transpose(0, 1), pairs[:, :S, :S], pairs[:, S, :S], pairs[:, :S, S])
