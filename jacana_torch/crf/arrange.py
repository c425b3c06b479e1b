"""From padded potentials to the lattice that is swept over, and from its counts back.

In comes `Potentials`; out goes an `Arranged`, whose chains share a table within a group and last equally long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .groups import Groups, group_rows
from .potentials import Potentials
from .sweep import LOG2E, Clock, Counts, Lattice, choose, padded


@dataclass(frozen=True)
class Arranged:
    """`lattice` holds chains in the rows of `groups`; `offset` [B] is what shifting scores took from log Z."""

    lattice: Lattice
    groups: Groups
    offset: Tensor

    def log_z(self, of_rows: Tensor) -> Tensor:
        """[G, c] to [B]."""
        return self.groups.gather(of_rows.reshape(-1, 1)).squeeze(1) + self.offset

    def weights(self, of_chains: Tensor) -> Tensor:
        """[B] to [G, c]; rows without a chain weigh nothing."""
        return self.groups.scatter(of_chains, 0.0).view(self.groups.count, self.groups.width)

    def counts(self, c: Counts, n_tables: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Node counts [B, M, S]; edge [U, S, S], start [U, S] and end [U, S] counts."""
        g, S = self.groups, self.lattice.final
        node = c.node.view(len(self.lattice.clock.alive), g.rows, c.node.shape[2])[1:-1]  # [M, rows, W]
        pairs = g.per_table(c.edge, n_tables)
        return g.gather(node)[..., :S].transpose(0, 1), pairs[:, :S, :S], pairs[:, S, :S], pairs[:, :S, S]


def arranged(p: Potentials) -> Arranged:
    groups = group_rows(p.table, p.edge.shape[0])
    T, S, width = p.shape[1] + 2, p.shape[2], padded(p.shape[2])
    full, shift, spread = _bounded_tables(p, width)
    dtype, every = choose(spread, S, p.node.dtype)
    table = groups.per_group((full if every == 0 else full.exp_()).to(dtype))
    # One allocation, and of more than is used (what is not touched costs nothing): several smaller ones would each
    # go back to the system when freed, to be cleared page by page the next time, which takes as long as the sweep.
    room = p.node.new_empty((5, T * groups.count, groups.width, width), dtype=dtype)
    top = _emissions(p, groups, room[0].view(T, groups.rows, width))
    if every:  # by way of exp2, which has no slow path for -inf and tiny results
        room[0].mul_(LOG2E).exp2_()
    # A chain of M_b >= 1 positions takes an edge M_b - 1 times, a start and an end once.
    some = p.lengths.clamp_max(1)
    times = torch.stack([p.lengths - some, some, some], 1)  # [B, 3]
    offset = (shift[p.table] * times).sum(1) + top  # [B]
    clock = Clock.steady(groups.count, T, p.node.device)
    return Arranged(Lattice(clock, room[0], table, S, every, room[1:3]), groups, offset)


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
