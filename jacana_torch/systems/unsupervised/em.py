"""Expectation-maximisation of one direction: what is being learnt, and the two halves of an iteration.

A text and first parameters in; a table and moves that make the text likelier out. How two directions train
together is the business of agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .jumps import JumpCounts
from .lattice import Chains, Moves, Posterior, independent, posteriors
from .table import Table
from .text import Batch, Text


@dataclass(frozen=True)
class Settings:
    """`prior` is a Dirichlet prior of what each target word stands for, over the whole vocabulary. Where it is
    `variational`, expected logarithms count, so that rare words do not collect whatever they stand beside; else as
    many occurrences are added to those counted. `null_prior` occurrences of every word are added to NULL's.
    `learn_p0` estimates the chance of NULL, which stays as it is otherwise."""

    prior: float
    null_prior: float
    variational: bool
    learn_p0: bool
    device: str


class Direction:
    """A direction in training. `values` [U+1] and `null` [V+1] are its probabilities, with a 0 for padding."""

    def __init__(self, text: Text, known: Table, moves: Moves, settings: Settings) -> None:
        self.text, self.moves, self.settings = text, moves, settings
        self.row = torch.as_tensor(text.numbers[1], device=settings.device)
        values, null = first_values(text, known)
        self.values = torch.as_tensor(np.append(values, 0.0), device=settings.device)
        self.null = torch.as_tensor(np.append(null, 0.0), device=settings.device)
        self._cost = 0.0  # of the parameters as they are, under their prior
        self.clear()

    def clear(self) -> None:
        """Before an iteration: nothing is counted yet."""
        self._links, self._nulls = torch.zeros_like(self.values), torch.zeros_like(self.null)
        self._jumps = JumpCounts.none(int(self.text.n_target.max()), self.settings.device)
        self._log_likelihood, self._tokens = 0.0, 0.0

    def chains(self, batch: Batch) -> Chains:
        return batch.chains(self.values, self.null)

    def expect(self, batch: Batch, jumping: bool) -> Posterior:
        """Posteriors under the parameters as they are; jumps and likelihood are counted."""
        x = self.chains(batch)
        found = posteriors(x, self.moves, self._jumps) if jumping else independent(x, self.moves.p0)
        self._log_likelihood += float(found.log_likelihood @ batch.weight)
        return found

    def count(self, batch: Batch, link: Tensor, null: Tensor) -> None:
        """Take these as the chances of each link and of NULL; they are spent."""
        self._links.index_add_(0, batch.cell.flatten(), link.mul_(batch.weight[:, None]).flatten())
        self._nulls.index_add_(0, batch.word.flatten(), null.mul_(batch.weight).flatten())
        self._tokens += float(batch.sizes.double() @ batch.weight)

    @property
    def objective(self) -> float:
        """Log-likelihood plus log prior (of a variational one, the lower bound that takes their place) under the
        parameters that the last iteration started from. No iteration lowers it."""
        return self._log_likelihood - self._cost_before

    def update(self, jumping: bool) -> None:
        """The parameters that fit what was counted best."""
        self._cost_before = self._cost
        settings, V = self.settings, len(self.text.source)
        nulls = self._nulls[:-1] + settings.null_prior
        null = nulls / nulls.sum().clamp_min(1e-300)
        values, cost = shares(self._links[:-1], self.row, V, settings.prior, settings.variational)
        if settings.null_prior:
            cost -= settings.null_prior * float(null.log().sum())
        moves = self.moves
        if jumping:
            moves = replace(moves, jumps=moves.jumps.updated(self._jumps))
        if settings.learn_p0:
            share = float(self._nulls[:-1].sum()) / self._tokens
            moves = replace(moves, p0=min(max(share, 1e-4), 1 - 1e-4))
        self.values[:-1], self.null[:-1], self.moves, self._cost = values, null, moves, cost

    def table(self) -> Table:
        values, null = self.values[:-1].cpu().numpy().copy(), self.null[:-1].cpu().numpy().copy()
        return Table(self.text.source, self.text.target, self.text.keys, values, null)


def shares(counts: Tensor, row: Tensor, V: int, prior: float, variational: bool) -> tuple[Tensor, float]:
    """[U] each count's share of its row, of V places, most of them not counted and equally likely; and what the
    prior costs. A variational one costs the divergence of the rows' distributions from it."""
    n_rows = int(row.max()) + 1
    sums = counts.new_zeros(n_rows).index_add_(0, row, counts).add_(prior * V).clamp_min_(1e-300)
    if variational:
        logs = torch.digamma(counts + prior) - torch.digamma(sums)[row]
        constant = torch.lgamma(counts.new_tensor([prior * V, prior]))
        normal = torch.lgamma(sums) - constant[0]
        each = torch.lgamma(counts + prior) - constant[1] - counts * logs
        return logs.exp(), float(normal.sum() - each.sum())
    found = (counts + prior) / sums[row]
    if not prior:
        return found, 0.0
    uncounted = (V - torch.bincount(row, minlength=n_rows)).to(counts)
    return found, -prior * float(found.log().sum() + uncounted @ (prior / sums).log())


def first_values(text: Text, known: Table) -> tuple[np.ndarray, np.ndarray]:
    """What an earlier training found, where there was one; else every source word is as likely as any other."""
    if not len(known):
        flat = 1.0 / len(text.source)
        return np.full(len(text.keys), flat), np.full(len(text.source), flat)
    return known.between(text.source, text.target, *text.numbers), known.of_null(text.source)


def as_expected(found: Sequence[Posterior], iteration: int) -> list[tuple[Tensor, Tensor]]:
    """Directions that know nothing of each other."""
    return [(part.link, part.null) for part in found]


def iterate(
    directions: Sequence[Direction],
    stages: Sequence[bool],
    most_cells: int,
    meet: Callable[[Sequence[Posterior], int], Sequence[tuple[Tensor, Tensor]]],
    after: Callable[[int], None],
) -> int:
    """Train directions over the same pairs together, an iteration for each of `stages`: True where words jump.

    `meet` makes of the posteriors of all directions, in an iteration of that number (from 1), the chances of links
    and NULL that each one counts. `after` is called with the number of each iteration. Ctrl-C after the first ends
    the training; how many were done.
    """
    device = directions[0].settings.device
    groups = directions[0].text.buckets(most_cells)
    batches = [[direction.text.batch(group, device) for direction in directions] for group in groups]
    done = 0
    try:
        for jumping in stages:
            for direction in directions:
                direction.clear()
            for batch in batches:
                both = list(zip(directions, batch, strict=True))
                found = meet([direction.expect(part, jumping) for direction, part in both], done + 1)
                for (direction, part), (link, null) in zip(both, found, strict=True):
                    direction.count(part, link, null)
            for direction in directions:
                direction.update(jumping)
            done += 1
            after(done)
    except KeyboardInterrupt:
        if not done:
            raise
    return done
