"""The HMM over a batch of pairs: each source word takes a target position, or NULL, which remembers the position.

Emissions and transitions in; posteriors, expected jumps and best paths out. There are 2N states, but those of NULL
only keep or leave their position, so a step is one product of [B, N] with a [N, N] matrix that all lengths share.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .jumps import JumpCounts, Jumps


@dataclass(frozen=True)
class Chains:
    """B pairs of up to M source and N target words.

    `link` [M, B, N] is how likely each source word is given each target word, `null` [M, B] given none; both are 0
    where there is no word. `sizes`, `targets` [B] are the numbers of words, `weight` [B] how much a pair counts.
    """

    link: Tensor
    null: Tensor
    sizes: Tensor
    targets: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Moves:
    """Where a chain goes next: `p0` to NULL, `uniform` of the rest anywhere, and the rest of that by `jumps`."""

    p0: float
    uniform: float
    jumps: Jumps


@dataclass(frozen=True)
class Posterior:
    """`link` [M, B, N], `null` [M, B] the chance of each state, 0 beyond the sentences; `log_likelihood` [B]."""

    link: Tensor
    null: Tensor
    log_likelihood: Tensor


def independent(x: Chains, p0: float) -> Posterior:
    """IBM 1: every position is as likely as any other, whatever came before."""
    link = x.link * ((1 - p0) / x.targets.double())[:, None]
    null = x.null * p0
    total = link.sum(2) + null
    inside = _inside(x)
    total = torch.where(inside, total, 1.0)
    return Posterior(link / total[:, :, None], null / total, total.log().sum(0))


@torch.no_grad()
def posteriors(x: Chains, moves: Moves, counts: JumpCounts | None = None) -> Posterior:
    """Forward-backward; expected jumps, each pair's weighted, are added to `counts`."""
    link, null, scale, jump = _forward(x, moves)
    beta = _backward(x, moves, link, null, scale, jump, counts)
    posterior = Posterior(link.mul_(beta), null.mul_(beta).sum(2), scale.log().sum(0))
    if counts is not None:
        first = (posterior.link[0] + null[0]) * (1 - _shares(x, moves)[1]) * x.weight[:, None]
        S = first.shape[1]
        counts.first[:, :S].index_add_(0, x.targets - 1, first)
    return posterior


def _inside(x: Chains) -> Tensor:
    return torch.arange(len(x.null), device=x.sizes.device)[:, None] < x.sizes


def _jumping(x: Chains, moves: Moves) -> tuple[Tensor, Tensor]:
    """[S, S] the weights of jumps, and [B, S] what a chain at each position multiplies them with."""
    matrix = moves.jumps.matrix(x.link.shape[2])
    sums = moves.jumps.sums(matrix)[x.targets - 1]
    place = torch.arange(x.link.shape[2], device=sums.device)
    rate = (1 - moves.p0) * (1 - moves.uniform) / sums
    return matrix, torch.where(place < x.targets[:, None], rate, 0.0)


def _shares(x: Chains, moves: Moves) -> tuple[Tensor, Tensor]:
    """[B, S] the chance of each first position, and how much of it `uniform` is to thank for."""
    S = x.link.shape[2]
    first = (1 - moves.uniform) * moves.jumps.first(S)[x.targets - 1]
    place = torch.arange(S, device=first.device)
    flat = torch.where(place < x.targets[:, None], moves.uniform / x.targets.double()[:, None], 0.0)
    return first + flat, flat / (first + flat).clamp_min(1e-300)


def _forward(x: Chains, moves: Moves) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
    """[M, B, S] chances of each link and of each NULL given the words up to there, and [M, B] each word's chance
    given those before it (1 beyond the end)."""
    M = len(x.link)
    jump = _jumping(x, moves)
    flat = ((1 - moves.p0) * moves.uniform / x.targets.double())[:, None]  # [B, 1]
    link, null = torch.empty_like(x.link), torch.empty_like(x.link)
    scale = torch.empty_like(x.null)
    inside = _inside(x)
    first = _shares(x, moves)[0]
    for t in range(M):
        if t == 0:
            torch.mul(first, x.link[0] * (1 - moves.p0), out=link[0])
            torch.mul(first, (moves.p0 * x.null[0])[:, None], out=null[0])
        else:
            at = link[t - 1] + null[t - 1]
            torch.mul(at * jump[1] @ jump[0] + flat, x.link[t], out=link[t])
            torch.mul(at, (moves.p0 * x.null[t])[:, None], out=null[t])
        total = link[t].sum(1) + null[t].sum(1)
        scale[t] = torch.where(inside[t], total, 1.0)
        link[t] /= scale[t][:, None]
        null[t] /= scale[t][:, None]
    return link, null, scale, jump


def _backward(
    x: Chains, moves: Moves, link: Tensor, null: Tensor, scale: Tensor, jump: tuple[Tensor, Tensor],
    counts: JumpCounts | None,
) -> Tensor:  # fmt: skip
    """[M, B, S] the chance of the words that follow, given the position, over what `_forward` divided by."""
    M, B, S = x.link.shape
    matrix, rate = jump
    flat = (1 - moves.p0) * moves.uniform / x.targets.double()  # [B]
    beta = torch.empty_like(x.link)
    last = (x.sizes - 1)[:, None]
    beta[M - 1] = 1.0
    jumped, left = x.link.new_zeros(S, S), x.link.new_zeros(B, S)
    for t in range(M - 1, 0, -1):
        ahead = x.link[t] * beta[t] / scale[t][:, None]  # [B, S]
        moved = rate * (ahead @ matrix.t())
        stay = moves.p0 * x.null[t] / scale[t]
        beta[t - 1] = torch.where(last >= t, moved + (flat * ahead.sum(1))[:, None] + stay[:, None] * beta[t], 1.0)
        if counts is not None:
            at = (link[t - 1] + null[t - 1]) * x.weight[:, None]
            jumped.addmm_((at * rate).t(), ahead)
            left.add_(at * moved)
    if counts is not None:
        counts.jump[:S, :S] += jumped * matrix
        counts.leave[:, :S].index_add_(0, x.targets - 1, left)
    return beta


@torch.no_grad()
def best_paths(x: Chains, moves: Moves) -> tuple[Tensor, Tensor]:
    """[M, B] the position of each source word on the best path, -1 for NULL and beyond the end, and [B] its log
    probability. Ties go to the earlier position, and to a link before NULL."""
    M, B, S = x.link.shape
    step = _log_steps(x, moves)
    link, null = (x.link * (1 - moves.p0)).log(), (x.null * moves.p0).log()[:, :, None]
    first = _shares(x, moves)[0].log()
    linked, skipped = first + link[0], first + null[0]
    came, is_link = [torch.empty(0)], []
    for t in range(1, M):
        is_link.append(linked >= skipped)
        at = torch.maximum(linked, skipped)
        best, where = (at[:, :, None] + step).max(1)
        came.append(where)
        alive = (x.sizes > t)[:, None]  # a chain that has ended stays as it is
        linked = torch.where(alive, best + link[t], linked)
        skipped = torch.where(alive, at + null[t], skipped)
    is_link.append(linked >= skipped)
    score, place = torch.maximum(linked, skipped).max(1)
    return _traced(x, place, came, is_link), score


def _log_steps(x: Chains, moves: Moves) -> Tensor:
    """[B, S, S] the log chance of going from one position (row) to another, to a link there."""
    matrix, rate = _jumping(x, moves)
    share = rate[:, :, None] / (1 - moves.p0) * matrix + (moves.uniform / x.targets.double())[:, None, None]
    outside = torch.arange(x.link.shape[2], device=matrix.device) >= x.targets[:, None]
    return share.log().masked_fill_(outside[:, None, :], -torch.inf)


def _traced(x: Chains, place: Tensor, came: list[Tensor], is_link: list[Tensor]) -> Tensor:
    """The way back from the last position."""
    path = torch.full((len(is_link), len(place)), -1, dtype=torch.long, device=place.device)
    at = place[:, None]
    for t in range(len(is_link) - 1, -1, -1):
        linked, alive = is_link[t].gather(1, at), (x.sizes > t)[:, None]
        path[t] = torch.where(linked & alive, at, -1)[:, 0]
        if t:
            at = torch.where(linked & alive, came[t].gather(1, at), at)
    return path
