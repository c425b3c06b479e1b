"""The HMM over a batch of pairs: each source word takes a target position, or NULL, which remembers the position.

There are 2N states, but those of NULL only keep or leave their position. A step is one product of [B, N] with a
[N, N] matrix of jumps that sentences of all lengths share.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

STEPS = 8  # of the inner maximisation; each raises the likelihood, and the outer EM continues from there


@dataclass(frozen=True)
class Jumps:
    """`weights` [2J+1] of the distances -J..J (longer ones count as these), `starts` [J+1] of first positions.

    In a sentence of N positions, P(k | j, N) is weights[k - j] over the sum of those that stay within it.
    """

    weights: Tensor
    starts: Tensor

    @classmethod
    def uniform(cls, window: int, device: str) -> Jumps:
        weights = torch.ones(2 * window + 1, dtype=torch.float64, device=device)
        return cls(weights, weights[: window + 1].clone())

    def distances(self, S: int) -> Tensor:
        """[S, S] which weight the jump from row to column has."""
        window, place = len(self.starts) - 1, torch.arange(S, device=self.weights.device)
        return (place - place[:, None]).clamp(-window, window) + window

    def sums(self, matrix: Tensor) -> Tensor:
        """[N, S] the sum of the jumps [S, S] from each position in a sentence of N (row N - 1); 1 outside."""
        totals = matrix.cumsum(1).t()
        place = torch.arange(len(matrix), device=matrix.device)
        return torch.where(place <= place[:, None], totals, 1.0)

    def first(self, S: int) -> Tensor:
        """[N, S] the probability of each first position in a sentence of N positions."""
        place = torch.arange(S, device=self.starts.device)
        weights = self.starts[place.clamp_max(len(self.starts) - 1)]
        return torch.where(place <= place[:, None], weights / weights.cumsum(0)[:, None], 0.0)

    def updated(self, counts: JumpCounts) -> Jumps:
        """Weights under which the counted jumps are likelier than under these.

        Each distance competes only with those that stay within the sentence, as in Bradley and Terry's model of
        contests. Hunter's (2004) iteration for it never lowers the likelihood. The scale of the weights is free.
        """
        S = len(counts.jump)
        which = self.distances(S)
        made = torch.zeros_like(self.weights).index_add_(0, which.flatten(), counts.jump.flatten())
        weights = self.weights
        for _ in range(STEPS):
            rate = counts.leave / self.sums(weights[which])  # [N, S]
            possible = _at_least(rate).t()  # [S, S]: of sentences that reach as far as the column
            possible = torch.zeros_like(weights).index_add_(0, which.flatten(), possible.flatten())
            weights = _rescaled(made, possible, weights)
        place = torch.arange(S, device=weights.device).clamp_max(len(self.starts) - 1)
        begun = torch.zeros_like(self.starts).index_add_(0, place, counts.first.sum(0))
        starts = self.starts
        for _ in range(STEPS):
            rate = counts.first.sum(1) / starts[place].cumsum(0)  # [N]
            starts = _rescaled(begun, torch.zeros_like(starts).index_add_(0, place, _at_least(rate)), starts)
        return Jumps(weights, starts)


def _at_least(rate: Tensor) -> Tensor:
    """[N, ...] sums over sentences of at least so many positions."""
    return rate.flip(0).cumsum(0).flip(0)


def _rescaled(made: Tensor, possible: Tensor, before: Tensor) -> Tensor:
    """New weights, with mean 1. A jump that was never possible keeps its weight, and no weight becomes 0."""
    found = torch.where(possible > 0, made / possible, before).clamp_min(1e-12)
    return found / found.mean()


@dataclass
class JumpCounts:
    """Expected numbers: `jump` [S, S] from row to column, `leave` [N, S] from a position in a sentence of N
    positions, `first` [N, S] of first positions."""

    jump: Tensor
    leave: Tensor
    first: Tensor

    @classmethod
    def zeros(cls, S: int, device: str) -> JumpCounts:
        return cls(*(torch.zeros(S, S, dtype=torch.float64, device=device) for _ in range(3)))


@dataclass(frozen=True)
class Chains:
    """B pairs of up to M source and N target words.

    `link` [M, B, N] is the probability of each source word given each target word, `null` [M, B] given NULL; both
    are 0 in the padding. `sizes` and `targets` [B] are the numbers of words, `weight` [B] is that of each pair.
    """

    link: Tensor
    null: Tensor
    sizes: Tensor
    targets: Tensor
    weight: Tensor

    @property
    def inside(self) -> Tensor:
        """[M, B] whether there is a source word."""
        return torch.arange(len(self.null), device=self.sizes.device)[:, None] < self.sizes


@dataclass(frozen=True)
class Moves:
    """Transitions: `p0` of all go to NULL, `uniform` of the rest anywhere, and the others by `jumps`."""

    p0: float
    uniform: float
    jumps: Jumps

    def first(self, x: Chains) -> tuple[Tensor, Tensor]:
        """[B, S] the probability of each first position, and the share of it that `uniform` contributes."""
        S = x.link.shape[2]
        first = (1 - self.uniform) * self.jumps.first(S)[x.targets - 1]
        inside = torch.arange(S, device=first.device) < x.targets[:, None]
        flat = torch.where(inside, self.uniform / x.targets.double()[:, None], 0.0)
        return first + flat, flat / (first + flat).clamp_min(1e-300)

    def jump(self, x: Chains) -> tuple[Tensor, Tensor, Tensor]:
        """[S, S] the weights of jumps, [B, S] the factor of those from each position, and [B] the probability of
        any position by `uniform`."""
        S = x.link.shape[2]
        matrix = self.jumps.weights[self.jumps.distances(S)]
        rate = (1 - self.p0) * (1 - self.uniform) / self.jumps.sums(matrix)[x.targets - 1]
        inside = torch.arange(S, device=rate.device) < x.targets[:, None]
        flat = (1 - self.p0) * self.uniform / x.targets.double()
        return matrix, torch.where(inside, rate, 0.0), flat


@dataclass(frozen=True)
class Posterior:
    """`link` [M, B, N] and `null` [M, B] are the posteriors of states, 0 in the padding; `log_likelihood` [B]."""

    link: Tensor
    null: Tensor
    log_likelihood: Tensor


def independent(x: Chains, p0: float) -> Posterior:
    """Posteriors of IBM 1, where every position is equally likely."""
    link = x.link * ((1 - p0) / x.targets.double())[:, None]
    null = x.null * p0
    total = torch.where(x.inside, link.sum(2) + null, 1.0)
    return Posterior(link / total[:, :, None], null / total, total.log().sum(0))


@torch.no_grad()
def posteriors(x: Chains, moves: Moves, counts: JumpCounts | None = None) -> Posterior:
    """Forward-backward. Expected jumps, weighted by pair, are added to `counts`."""
    link, null, scale = _forward(x, moves)
    beta = _backward(x, moves, link, null, scale, counts)
    posterior = Posterior(link.mul_(beta), null.mul_(beta).sum(2), scale.log().sum(0))
    if counts is not None:
        first = (posterior.link[0] + null[0]) * (1 - moves.first(x)[1]) * x.weight[:, None]
        counts.first[:, : first.shape[1]].index_add_(0, x.targets - 1, first)
    return posterior


def _forward(x: Chains, moves: Moves) -> tuple[Tensor, Tensor, Tensor]:
    """[M, B, S] probabilities of each link and of each NULL given the words up to there, and [M, B] each word's
    probability given those before it (1 in the padding)."""
    matrix, rate, flat = moves.jump(x)
    link, null, scale = torch.empty_like(x.link), torch.empty_like(x.link), torch.empty_like(x.null)
    inside = x.inside
    for t in range(len(x.link)):
        if t == 0:
            first = moves.first(x)[0]
            torch.mul(first, x.link[0] * (1 - moves.p0), out=link[0])
            torch.mul(first, (moves.p0 * x.null[0])[:, None], out=null[0])
        else:
            at = link[t - 1] + null[t - 1]
            torch.mul(at * rate @ matrix + flat[:, None], x.link[t], out=link[t])
            torch.mul(at, (moves.p0 * x.null[t])[:, None], out=null[t])
        scale[t] = torch.where(inside[t], link[t].sum(1) + null[t].sum(1), 1.0)
        link[t] /= scale[t][:, None]
        null[t] /= scale[t][:, None]
    return link, null, scale


def _backward(
    x: Chains, moves: Moves, link: Tensor, null: Tensor, scale: Tensor, counts: JumpCounts | None
) -> Tensor:
    """[M, B, S] the probability of the words that follow, given the position, over the scales of `_forward`."""
    M, B, S = x.link.shape
    matrix, rate, flat = moves.jump(x)
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
    """[M, B] the position of each source word on the best path, -1 for NULL and in the padding, and [B] the log
    probability of the path. Ties go to the earlier position, and to a link before NULL."""
    M, B, S = x.link.shape
    matrix, rate, _ = moves.jump(x)
    outside = torch.arange(S, device=matrix.device) >= x.targets[:, None]
    step = rate[:, :, None] / (1 - moves.p0) * matrix + (moves.uniform / x.targets.double())[:, None, None]
    step = step.log().masked_fill_(outside[:, None, :], -torch.inf)  # [B, S, S] from row to column
    link, null = (x.link * (1 - moves.p0)).log(), (x.null * moves.p0).log()[:, :, None]
    first = moves.first(x)[0].log()
    linked, skipped = first + link[0], first + null[0]
    came, is_link = [], []
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
    path, at = torch.full((M, B), -1, dtype=torch.long, device=place.device), place[:, None]
    for t in range(M - 1, -1, -1):
        on_link = is_link[t].gather(1, at) & (x.sizes > t)[:, None]
        path[t] = torch.where(on_link, at, -1)[:, 0]
        if t:
            at = torch.where(on_link, came[t - 1].gather(1, at), at)
    return path, score
