"""Forward-backward over many chains: the arithmetic behind inference.py and objective.py, without autograd.

In comes a `Lattice`; out come log Z of each row and, from a second sweep, expected counts. Probabilities are
multiplied as they are, one batched matrix product a step, and brought back to scale every few steps; `choose` says
when that is safe, and logspace.py is for when it is not. All chains run on one clock: a boundary state F stands
before the first position and after the last one, so lengths need no masks, and start and end scores are rows and
columns of the table.

Why it is exact enough: let R be the spread of the finite transition scores. A step changes the sum of a row by a
factor within e^±H, H = (R + log S) / 2 (tables are shifted to the middle of that range), so K steps without
rescaling stay within e^±KH. What underflows at a position could count for at most e^R more than its share, as
the continuations of two states differ by at most e^R. Node scores may be of any size: a position's are shifted
by their maximum, and some state always has the emission 1. Where not every step is possible, every state can still
go on to every position and to some NULL, and continuations may differ by more: `Space.reach` multiplies R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# The log of a dtype's largest number, less room for what a sum over positions and states still has to resolve.
_ROOM = {torch.float32: 87.0 - 18.0, torch.float64: 708.0 - 50.0}
LOG2E = 1 / math.log(2.0)  # exp2 has no slow path for -inf and tiny results, as exp has
_EVERY = {torch.float32: (2, 1), torch.float64: (8, 1)}


def choose(spread: float, states: int, dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The dtype to compute in and after how many steps to rescale; 0 means that only log space will do."""
    # Any batch of fewer than a thousand states counts alike, so that its size does not change what is done.
    half = (spread + math.log(max(states, 1000) + 1)) / 2
    for kind, steps in _EVERY.items():
        for every in steps:
            if (kind != torch.float32 or dtype != torch.float64) and 2 * every * half + spread <= _ROOM[kind]:
                return kind, every
    return torch.float64, 0


def padded(states: Any) -> Any:
    """The width of rows with this many states and F (a number, or an array): whole vector registers."""
    return -(-(states + 1) // 16) * 16


@dataclass(frozen=True)
class Clock:
    """When groups of rows are alive: all from time 0 on, the longest first, `alive[t]` of them at time t.

    Rows of all times lie one after the other, R = sum(alive) of them, so that nothing is held of a group after its
    end. `group` [R] says whose each is, `last` [G] where each group's last one is.
    """

    alive: tuple[int, ...]
    group: Tensor
    last: Tensor

    @classmethod
    def steady(cls, groups: int, times: int, device: torch.device) -> Clock:
        """All groups alive throughout."""
        of = torch.arange(groups, device=device)
        return cls((groups,) * times, of.repeat(times), of + (times - 1) * groups)

    @classmethod
    def of(cls, durations: np.ndarray) -> Clock:
        """`durations` [G] in times, falling."""
        alive = (durations[:, None] > np.arange(durations[0])).sum(0)  # [T]
        first = np.cumsum(alive) - alive  # [T]
        group = np.arange(alive.sum()) - np.repeat(first, alive)
        last = first[durations - 1] + np.arange(len(durations))
        return cls(tuple(alive.tolist()), torch.as_tensor(group), torch.as_tensor(last))

    def to(self, device: torch.device | str) -> Clock:
        return Clock(self.alive, self.group.to(device), self.last.to(device))


@dataclass(frozen=True)
class Lattice:
    """Chains in rows, c rows a group, a table a group; every one begins and ends in F, at its group's ends.

    `emission` [R, c, W] probabilities, or their logs where `every` is 0;  `table` [G, W, W] likewise
    `final`    the number of the state F: what follows it is padding
    `scratch`  [2, R, c, W] room for the sweeps
    """

    clock: Clock
    emission: Tensor
    table: Tensor
    final: int
    every: int
    scratch: Tensor

    def tables(self, table: Tensor) -> list[Tensor]:
        """At each time, those of the groups that are alive."""
        upto = {k: table[:k] for k in set(self.clock.alive)}
        return [upto[k] for k in self.clock.alive]


@dataclass(frozen=True)
class Forward:
    """`alpha` [R, c, W] probabilities up to each time, `scale` [R, c, 1] their divisors, `log_z` [G, c]."""

    alpha: Tensor
    scale: Tensor
    log_z: Tensor


@dataclass(frozen=True)
class Counts:
    """Expected counts: `node` [R, c, W] of states at each time, `edge` [G, W, W] of steps, F's among them."""

    node: Tensor
    edge: Tensor


def forward(x: Lattice) -> Forward:
    alive = x.clock.alive
    alpha, scale = x.scratch[0], x.emission.new_ones(*x.emission.shape[:2], 1)
    alpha[: alive[0]] = x.emission[: alive[0]]
    steps, emissions, scales = (y.split(alive) for y in (alpha, x.emission, scale))
    for t, table in enumerate(x.tables(x.table)[1:], 1):
        now = steps[t]
        torch.bmm(_first(steps[t - 1], alive[t - 1], alive[t]), table, out=now)
        now.mul_(emissions[t])
        if t % x.every == 0:
            torch.sum(now, -1, keepdim=True, out=scales[t])
            now.div_(scales[t])
    log_z = alpha.index_select(0, x.clock.last)[:, :, x.final].double().log()
    return Forward(alpha, scale, log_z.index_add_(0, x.clock.group, scale.squeeze(2).double().log()))


def backward(x: Lattice, f: Forward, weight: Tensor) -> Counts:
    """Sweep back and count; each row counts by its `weight` [G, c]."""
    beta, joint, scale = _backward_probabilities(x, f)
    # The same Z each time, but under the scales of that time: what makes its chances sum to 1.
    share = weight.to(beta.dtype).index_select(0, x.clock.group).unsqueeze(2) / joint.sum(-1, keepdim=True)
    # alpha[t-1] table beta[t] sums to joint[t] times what alpha[t], and not beta[t], was divided by.
    right = beta.mul_(share * scale / f.scale)
    return Counts(joint.mul_(share), _products(x.clock.alive, f.alpha, right).mul_(x.table))


def _backward_probabilities(x: Lattice, f: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """What follows each time and its own emission (`beta`), with what precedes it (`joint`), and beta's scales."""
    alive = x.clock.alive
    beta, joint = x.scratch[1], torch.ones_like(x.emission)
    scale = x.emission.new_ones(*x.emission.shape[:2], 1)
    alphas, betas, joints, emissions, scales = (y.split(alive) for y in (f.alpha, beta, joint, x.emission, scale))
    tables = x.tables(x.table.transpose(1, 2))
    for t in range(len(alive) - 1, 0, -1):
        now = joints[t]
        if t + 1 < len(alive):
            torch.bmm(betas[t + 1], tables[t + 1], out=_first(now, alive[t], alive[t + 1]))
        torch.mul(now, emissions[t], out=betas[t])
        now.mul_(alphas[t])
        if t % x.every == 0:
            torch.sum(betas[t], -1, keepdim=True, out=scales[t])
            betas[t].div_(scales[t])
    return beta, joint, scale


def _products(alive: tuple[int, ...], left: Tensor, right: Tensor) -> Tensor:
    """[G, W, W]: left of each time but the last with right of the next time, added up over times and rows."""
    T, G, (_, c, W) = len(alive), alive[0], left.shape
    if alive[-1] == G:  # one product
        left, right = (y.view(T, G, c, W).transpose(0, 1) for y in (left, right))
        return torch.bmm(left[:, :-1].flatten(1, 2).transpose(1, 2), right[:, 1:].flatten(1, 2))
    lefts, rights, total = left.transpose(1, 2).split(alive), right.split(alive), left.new_zeros(G, W, W)
    for t in range(1, T):
        total[: alive[t]].baddbmm_(_first(lefts[t - 1], alive[t - 1], alive[t]), rights[t])
    return total


def _first(values: Tensor, n: int, k: int) -> Tensor:
    """The first k of n."""
    return values if k == n else values[:k]
