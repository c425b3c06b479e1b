"""How far the next word's position is from this one's: the HMM's transitions, for sentences of any length.

A weight a distance in, transition probabilities of every sentence length out; expected counts in, weights out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

STEPS = 8  # of the inner maximisation; each raises the likelihood, and the outer EM goes on from there


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

    @property
    def window(self) -> int:
        return len(self.starts) - 1

    def matrix(self, S: int) -> Tensor:
        """[S, S] the weight of each jump, from row to column."""
        return self.weights[distances(S, self.window, self.weights.device)]

    def sums(self, matrix: Tensor) -> Tensor:
        """[N, S] the sum of the jumps from each position in a sentence of N positions (row N - 1); 1 outside."""
        S = len(matrix)
        totals = matrix.cumsum(1).t()  # [N, S]
        place = torch.arange(S, device=matrix.device)
        return torch.where(place <= place[:, None], totals, 1.0)

    def first(self, S: int) -> Tensor:
        """[N, S] the chance of each first position in a sentence of N positions."""
        place = torch.arange(S, device=self.starts.device)
        weights = self.starts[place.clamp_max(self.window)]
        return torch.where(place <= place[:, None], weights / weights.cumsum(0)[:, None], 0.0)

    def updated(self, counts: JumpCounts) -> Jumps:
        """The weights under which jumps as often as in `counts` are likelier than under these.

        Each distance competes only with those that stay within the sentence, as in Bradley and Terry's model of
        contests, and Hunter's (2004) iteration for it never lowers the likelihood. Weights are shares: their scale
        says nothing.
        """
        S = len(counts.jump)
        which = distances(S, self.window, self.weights.device)
        made = self.weights.new_zeros(len(self.weights)).index_add_(0, which.flatten(), counts.jump.flatten())
        weights = self.weights
        for _ in range(STEPS):
            rate = counts.leave / self.sums(weights[which])  # [N, S]
            chances = rate.flip(0).cumsum(0).flip(0).t()  # [S, S]: of sentences that reach as far as the column
            chances = self.weights.new_zeros(len(weights)).index_add_(0, which.flatten(), chances.flatten())
            weights = _share(made, chances, weights)
        place = torch.arange(S, device=weights.device).clamp_max(self.window)
        begun = self.starts.new_zeros(len(self.starts)).index_add_(0, place, counts.first.sum(0))
        starts = self.starts
        for _ in range(STEPS):
            rate = counts.first.sum(1) / starts[place].cumsum(0)  # [N]
            chances = self.starts.new_zeros(len(starts)).index_add_(0, place, rate.flip(0).cumsum(0).flip(0))
            starts = _share(begun, chances, starts)
        return Jumps(weights, starts)


def _share(made: Tensor, chances: Tensor, before: Tensor) -> Tensor:
    """What was never possible stays as it was; nothing is ruled out for good."""
    found = torch.where(chances > 0, made / chances, before).clamp_min(1e-12)
    return found / found.mean()


@dataclass
class JumpCounts:
    """Expected numbers: `jump` [S, S] from row to column, `leave` [N, S] from a position in a sentence of N
    positions, `first` [N, S] of first positions."""

    jump: Tensor
    leave: Tensor
    first: Tensor

    @classmethod
    def none(cls, S: int, device: str) -> JumpCounts:
        return cls(*(torch.zeros(S, S, dtype=torch.float64, device=device) for _ in range(3)))


def distances(S: int, window: int, device: torch.device) -> Tensor:
    """[S, S] which weight the jump from row to column has."""
    place = torch.arange(S, device=device)
    return (place - place[:, None]).clamp(-window, window) + window
