"""Forward-backward over a batch of chains: the arithmetic behind inference.py, without autograd.

In comes `Potentials`; out come log Z and, from a second sweep, expected counts. Probabilities are multiplied as
they are, one matrix product a step, and brought back to scale every few steps; `choose` says when that is safe,
and logspace.py is for when it is not. All chains run on one clock: a boundary state F stands before the first
position and after the last one, so lengths need no masks, and start and end scores are rows of the table.

Why it is exact enough: let R be the spread of the finite transition scores. A step changes the sum of a row by a
factor within e^±H, H = (R + log S) / 2 (tables are shifted to the middle of that range), so K steps without
rescaling stay within e^±KH. What underflows at a position could count for at most e^R more than its share, as
the continuations of two states differ by at most e^R. Node scores may be of any size: a position's are shifted
by their maximum, and some state always has the emission 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .groups import Groups, group_rows
from .potentials import Potentials

# The log of a dtype's largest number, less room for what a sum over positions and states still has to resolve.
_ROOM = {torch.float32: 87.0 - 18.0, torch.float64: 708.0 - 50.0}


def choose(spread: float, states: int, dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The dtype to compute in and after how many steps to rescale; 0 means that only log space will do."""
    half = (spread + math.log(states + 1)) / 2
    for kind in (torch.float32, torch.float64):
        for every in (4, 1):
            if (kind != torch.float32 or dtype != torch.float64) and 2 * every * half + spread <= _ROOM[kind]:
                return kind, every
    return torch.float64, 0


@dataclass(frozen=True)
class Lattice:
    """One batch, ready to sweep over T = M + 2 times, in the rows that `groups` lays out.

    `emission` [T, G, c, S+1] exp(node - its position's maximum), or the difference itself where `every` is 0;
    `table`    [G, S+1, S+1] likewise, with the boundary state F = S;  `offset` [B] what the shifts took.
    """

    p: Potentials
    groups: Groups
    every: int
    emission: Tensor
    table: Tensor
    offset: Tensor


def lattice(p: Potentials) -> Lattice:
    groups = group_rows(p.table, p.edge.shape[0])
    full, shift, spread = _bounded_tables(p)
    dtype, every = choose(spread, p.shape[2], p.node.dtype)
    table = groups.per_group((full if every == 0 else full.exp()).to(dtype))
    node = p.node.detach()
    top = node.amax(2)  # [B, M]
    top = torch.where(top == -torch.inf, 0.0, top)
    emission = _emissions(p, groups, (node - top[:, :, None]).to(dtype), log=every == 0)
    # A chain of M_b >= 1 positions takes an edge M_b - 1 times, a start and an end once.
    some = (p.lengths > 0).double()
    times = torch.stack([(p.lengths - 1).clamp_min(0).double(), some, some], 1)  # [B, 3]
    offset = (shift[p.table] * times).sum(1) + top.sum(1, dtype=torch.float64)  # [B]
    return Lattice(p, groups, every, emission, table, offset)


def _bounded_tables(p: Potentials) -> tuple[Tensor, Tensor, float]:
    """[U, S+1, S+1] log tables with F, in float64 (they are small and everything rests on them), what was taken
    from edge, start and end scores [U, 3], and the widest spread of any of them."""
    U, S = p.start.shape
    edge, start, end = (x.detach().double() for x in (p.edge, p.start, p.end))
    exists = start != -torch.inf  # [U, S]
    pair = exists[:, :, None] & exists[:, None, :]
    low = torch.stack([_low(edge, pair), _low(start, exists), _low(end, exists)], 1)  # [U, 3]
    high = torch.stack([x.reshape(U, -1).amax(1) for x in (edge, start, end)], 1)  # [U, 3]
    middle = (low + high + math.log(S + 1)) / 2
    middle = torch.where(middle.isfinite(), middle, 0.0)
    full = torch.zeros(U, S + 1, S + 1, dtype=torch.float64, device=edge.device)
    full[:, :S, :S] = edge - middle[:, 0, None, None]
    full[:, S, :S] = start - middle[:, 1, None]
    full[:, :S, S] = end - middle[:, 2, None]
    return full, middle, (high - low).amax().item()


def _low(scores: Tensor, exists: Tensor) -> Tensor:
    """[U] the lowest score among those that exist; -inf is one that somebody forbids."""
    return torch.where(exists, scores, torch.inf).reshape(len(scores), -1).amin(1)


def _emissions(p: Potentials, groups: Groups, scores: Tensor, log: bool) -> Tensor:
    S, T = p.shape[2], p.shape[1] + 2
    nothing, sure = (-torch.inf, 0.0) if log else (0.0, 1.0)
    values = (scores if log else scores.exp_()).transpose(0, 1)  # [M, B, S]
    out = scores.new_full((T, groups.rows, S + 1), nothing)
    if groups.row is None:
        out[1:-1, :, :S] = values
    else:
        out[1:-1, groups.row, :S] = values
    clock = torch.arange(T, device=scores.device)[:, None]
    length = groups.scatter(p.lengths, 0)  # [rows]
    out[:, :, S].masked_fill_((clock == 0) | (clock > length), sure)
    return out.view(T, groups.count, groups.width, S + 1)


@dataclass(frozen=True)
class Forward:
    """`alpha` [T, G, c, S+1] probabilities up to each time, `scale` [T, G, c, 1] what each was divided by."""

    alpha: Tensor
    scale: Tensor
    log_z: Tensor


def forward(x: Lattice) -> Forward:
    T, last = x.emission.shape[0], x.emission.shape[0] - 1
    alpha, scale = torch.empty_like(x.emission), x.emission.new_ones(*x.emission.shape[:3], 1)
    alpha[0] = x.emission[0]
    steps, emissions, scales = alpha.unbind(0), x.emission.unbind(0), scale.unbind(0)
    for t in range(1, T):
        torch.bmm(steps[t - 1], x.table, out=steps[t])
        steps[t].mul_(emissions[t])
        if t % x.every == 0:
            torch.sum(steps[t], -1, keepdim=True, out=scales[t])
            steps[t].div_(scales[t])
    ending = alpha[last, :, :, -1].double().log() + scale.double().log().sum(0).squeeze(-1)  # [G, c]
    log_z = x.groups.gather(ending.view(-1, 1)).squeeze(-1) + x.offset  # [B]
    return Forward(alpha, scale, log_z)


@dataclass(frozen=True)
class Counts:
    """Expected counts, each chain's weighted: `node` [B, M, S], `edge` [U, S, S], `start` and `end` [U, S]."""

    node: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor


def backward(x: Lattice, f: Forward, weight: Tensor) -> Counts:
    """Sweep back and count; chain b counts `weight[b]` times."""
    ahead, beta, scale = _backward_probabilities(x)
    g, S = x.groups, x.emission.shape[-1] - 1
    weight = g.scatter(weight.to(beta.dtype), 0.0).view(g.count, g.width, 1)
    joint = f.alpha * ahead  # [T, G, c, S+1]
    total = joint.sum(-1, keepdim=True)  # [T, G, c, 1] the same Z each time, under that time's scales
    node = g.gather((joint[1:-1, ..., :S] * (weight / total[1:-1])).flatten(1, 2))  # [M, B, S]
    # alpha[t-1] E beta[t] sums to scale_t total_t / (beta's scale at t).
    share = weight * scale[1:] / (f.scale[1:] * total[1:])  # [T-1, G, c, 1]
    left = (f.alpha[:-1] * share).transpose(0, 1).flatten(1, 2)  # [G, (T-1)*c, S+1]
    right = beta[1:].transpose(0, 1).flatten(1, 2)
    pairs = torch.bmm(left.transpose(1, 2), right).mul_(x.table)  # [G, S+1, S+1]
    pairs = g.per_table(pairs, x.p.edge.shape[0])
    return Counts(node.transpose(0, 1), pairs[:, :S, :S], pairs[:, S, :S], pairs[:, :S, S])


def _backward_probabilities(x: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """What follows each time, without (`ahead`) and with (`beta`) its own emission, and beta's scales."""
    T = x.emission.shape[0]
    ahead, beta = torch.empty_like(x.emission), torch.empty_like(x.emission)
    scale = x.emission.new_ones(*x.emission.shape[:3], 1)
    ahead[-1] = 1.0
    beta[-1] = x.emission[-1]
    aheads, betas, emissions, scales = ahead.unbind(0), beta.unbind(0), x.emission.unbind(0), scale.unbind(0)
    table = x.table.transpose(1, 2)
    for t in range(T - 2, -1, -1):
        torch.bmm(betas[t + 1], table, out=aheads[t])
        torch.mul(aheads[t], emissions[t], out=betas[t])
        if t % x.every == 0:
            torch.sum(betas[t], -1, keepdim=True, out=scales[t])
            betas[t].div_(scales[t])
    return ahead, beta, scale
