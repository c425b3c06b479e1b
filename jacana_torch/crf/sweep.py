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
_EVERY = {torch.float32: (2, 1), torch.float64: (8, 1)}
_LOG2E = 1 / math.log(2.0)


def choose(spread: float, states: int, dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The dtype to compute in and after how many steps to rescale; 0 means that only log space will do."""
    # Any batch of fewer than a thousand states counts alike, so that its size does not change what is done.
    half = (spread + math.log(max(states, 1000) + 1)) / 2
    for kind, steps in _EVERY.items():
        for every in steps:
            if (kind != torch.float32 or dtype != torch.float64) and 2 * every * half + spread <= _ROOM[kind]:
                return kind, every
    return torch.float64, 0


@dataclass(frozen=True)
class Lattice:
    """One batch, ready to sweep over T = M + 2 times, in the rows that `groups` lays out.

    `emission` [T, G, c, W] exp(node - its position's maximum), or the difference itself where `every` is 0;
    `table`    [G, W, W] likewise, with the boundary state F = S;  `offset` [B] what the shifts took.
    `scratch`  [2, T, G, c, W] room for the sweeps. W is S + 1 rounded up: whole vector registers.
    """

    p: Potentials
    groups: Groups
    every: int
    emission: Tensor
    table: Tensor
    offset: Tensor
    scratch: Tensor


def lattice(p: Potentials) -> Lattice:
    groups = group_rows(p.table, p.edge.shape[0])
    width = -(-(p.shape[2] + 1) // 16) * 16
    full, shift, spread = _bounded_tables(p, width)
    dtype, every = choose(spread, p.shape[2], p.node.dtype)
    table = groups.per_group((full if every == 0 else full.exp_()).to(dtype))
    # One allocation, and of more than is used (what is not touched costs nothing): several smaller ones would each
    # go back to the system when freed, to be cleared page by page the next time, which takes as long as the sweep.
    room = p.node.new_empty((5, p.shape[1] + 2, groups.count, groups.width, width), dtype=dtype)
    emission = room[0]
    top = _emissions(p, groups, emission.flatten(1, 2))
    if every:  # by way of exp2, which has no slow path for -inf and tiny results
        emission.mul_(_LOG2E).exp2_()
    # A chain of M_b >= 1 positions takes an edge M_b - 1 times, a start and an end once.
    some = p.lengths.clamp_max(1)
    times = torch.stack([p.lengths - some, some, some], 1)  # [B, 3]
    offset = (shift[p.table] * times).sum(1) + top  # [B]
    return Lattice(p, groups, every, emission, table, offset, room[1:3])


def _bounded_tables(p: Potentials, width: int) -> tuple[Tensor, Tensor, float]:
    """[U, W, W] log tables with F, in float64 (they are small and everything rests on them), what was taken
    from edge, start and end scores [U, 3], and the widest spread of any of them."""
    U, S = p.start.shape
    edge, start, end = (x.detach().double() for x in (p.edge, p.start, p.end))
    exists = start != -torch.inf  # [U, S]
    pair = exists[:, :, None] & exists[:, None, :]
    low = torch.stack([_low(edge, pair), _low(start, exists), _low(end, exists)], 1)  # [U, 3]
    high = torch.stack([x.reshape(U, -1).amax(1) for x in (edge, start, end)], 1)  # [U, 3]
    middle = (low + high + math.log(S + 1)) / 2
    middle = torch.where(middle.isfinite(), middle, 0.0)
    full = edge.new_full((U, width, width), -torch.inf)
    full[:, :S, :S] = edge - middle[:, 0, None, None]
    full[:, S, :S] = start - middle[:, 1, None]
    full[:, :S, S] = end - middle[:, 2, None]
    full[:, S, S] = 0.0
    return full, middle, (high - low).amax().item()


def _low(scores: Tensor, exists: Tensor) -> Tensor:
    """[U] the lowest score among those that exist; -inf is one that somebody forbids."""
    return torch.where(exists, scores, torch.inf).reshape(len(scores), -1).amin(1)


def _emissions(p: Potentials, groups: Groups, out: Tensor) -> Tensor:
    """Write log emissions [T, rows, W], less each position's maximum; the sum of these maxima [B]."""
    node, S, T = p.node.detach().transpose(0, 1), p.shape[2], p.shape[1] + 2
    if groups.row is None:
        out[1:-1, :, :S] = node
        out[1:-1, :, S:] = -torch.inf
    else:
        out[1:-1] = -torch.inf
        out[1:-1, groups.row, :S] = node.to(out.dtype)
    top = out[1:-1].amax(2, keepdim=True)  # [M, rows, 1]
    top.masked_fill_(top == -torch.inf, 0.0)
    out[1:-1].sub_(top)
    clock = torch.arange(T, device=node.device)[:, None]
    inside = (clock > 0) & (clock <= groups.scatter(p.lengths, 0))  # [T, rows]
    out[0], out[-1] = -torch.inf, -torch.inf
    out[:, :, S] = torch.where(inside, -torch.inf, 0.0)
    return groups.gather(top.sum(0, dtype=torch.float64)).squeeze(1)


@dataclass(frozen=True)
class Forward:
    """`alpha` [T, G, c, W] probabilities up to each time, `scale` [T, G, c, 1] what each was divided by.

    `alpha` holds only a few times where no way back is meant.
    """

    alpha: Tensor
    scale: Tensor
    log_z: Tensor


def forward(x: Lattice, keep: bool = True) -> Forward:
    """Sweep to the end; `keep` what `backward` needs."""
    T = x.emission.shape[0]
    kept = T if keep else 2
    alpha, scale = x.scratch[0, :kept], x.emission.new_ones(*x.emission.shape[:3], 1)
    alpha[0] = x.emission[0]
    steps, emissions, scales = alpha.unbind(0), x.emission.unbind(0), scale.unbind(0)
    product = torch.empty_like(steps[0])
    for t in range(1, T):
        now = steps[t % kept]
        torch.bmm(steps[(t - 1) % kept], x.table, out=product)
        torch.mul(product, emissions[t], out=now)
        if t % x.every == 0:
            torch.sum(now, -1, keepdim=True, out=scales[t])
            now.div_(scales[t])
    ending = steps[(T - 1) % kept][:, :, x.p.shape[2]].double().log() + scale.double().log().sum(0).squeeze(
        -1
    )  # [G, c]
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
    beta, joint, scale = _backward_probabilities(x, f)
    g, S = x.groups, x.p.shape[2]
    weight = g.scatter(weight.to(beta.dtype), 0.0).view(g.count, g.width, 1)
    # The same Z each time, but under the scales of that time: what makes its chances sum to 1.
    share = weight / joint.sum(-1, keepdim=True)  # [T, G, c, 1]
    node = g.gather(joint[1:-1].mul_(share[1:-1]).flatten(1, 2))  # [M, B, W]
    # alpha[t-1] table beta[t] sums to joint[t] times what alpha[t], and not beta[t], was divided by.
    right = beta[1:].mul_(share[1:] * scale[1:] / f.scale[1:])  # [T-1, G, c, W]
    left, right = (y.transpose(0, 1).flatten(1, 2) for y in (f.alpha[:-1], right))  # [G, (T-1)*c, W]
    pairs = torch.bmm(left.transpose(1, 2), right).mul_(x.table)  # [G, W, W]
    pairs = g.per_table(pairs, x.p.edge.shape[0])
    return Counts(node[..., :S].transpose(0, 1), pairs[:, :S, :S], pairs[:, S, :S], pairs[:, :S, S])


def _backward_probabilities(x: Lattice, f: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """What follows each time and its own emission (`beta`), with what precedes it (`joint`), and beta's scales."""
    T = x.emission.shape[0]
    beta, joint = x.scratch[1], torch.empty_like(x.emission)
    scale = x.emission.new_ones(*x.emission.shape[:3], 1)
    beta[-1], joint[-1], joint[0] = x.emission[-1], f.alpha[-1], 1.0
    alphas, betas, joints = f.alpha.unbind(0), beta.unbind(0), joint.unbind(0)
    emissions, scales, table = x.emission.unbind(0), scale.unbind(0), x.table.transpose(1, 2)
    product = torch.empty_like(betas[0])
    for t in range(T - 2, 0, -1):
        torch.bmm(betas[t + 1], table, out=product)
        torch.mul(product, alphas[t], out=joints[t])
        torch.mul(product, emissions[t], out=betas[t])
        if t % x.every == 0:
            torch.sum(betas[t], -1, keepdim=True, out=scales[t])
            betas[t].div_(scales[t])
    return beta, joint, scale
