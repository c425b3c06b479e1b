"""Forward-backward in log space: slower than sweep.py, for scores that probabilities cannot hold.

Needed where a transition is forbidden (-inf) or transition scores spread over hundreds. In and out as in sweep.py;
a step makes a [rows, W, W] intermediate, but nothing of that size is kept.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .sweep import Counts, Forward, Lattice


def forward(x: Lattice) -> Forward:
    alive, alpha = x.clock.alive, x.emission.clone()
    steps = alpha.split(alive)
    for t, table in enumerate(x.tables(x.table)[1:], 1):
        steps[t].add_(torch.logsumexp(steps[t - 1][: alive[t]].unsqueeze(3) + table.unsqueeze(1), 2))
    return Forward(alpha, alpha, alpha.index_select(0, x.clock.last)[:, :, x.final])


def backward(x: Lattice, f: Forward, weight: Tensor) -> Counts:
    alive, alphas, emissions = x.clock.alive, f.alpha.split(x.clock.alive), x.emission.split(x.clock.alive)
    weight, log_z = weight.to(f.alpha.dtype).unsqueeze(2), f.log_z.unsqueeze(2)  # [G, c, 1]
    pairs, ahead = torch.zeros_like(x.table), torch.zeros_like(x.emission[: alive[0]])  # of groups that end: 0
    joint = torch.zeros_like(f.alpha)
    joints = joint.split(alive)
    for t in range(len(alive) - 1, 0, -1):
        k = alive[t]
        chance = (alphas[t] + ahead[:k] - log_z[:k]).exp()
        torch.mul(chance, weight[:k], out=joints[t])
        both = (ahead[:k] + emissions[t]).unsqueeze(2) + x.table[:k].unsqueeze(1)  # [k, c, W, W]
        chance = (alphas[t - 1][:k] - log_z[:k]).unsqueeze(3) + both
        pairs[:k] += (chance.exp() * weight[:k].unsqueeze(3)).sum(1)
        ahead[:k] = torch.logsumexp(both, 3)
    return Counts(joint, pairs)
