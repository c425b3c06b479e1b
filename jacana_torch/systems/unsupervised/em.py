"""Expectation-maximisation of a translation table and moves, for one direction or several together.

`agreed` makes two directions learn together (Liang, Taskar & Klein 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ...aligners.training import UNKEPT, Arrays, Checkpoint
from .hmm_lattice import JumpCounts, Jumps, Moves, Posterior, independent, posteriors
from .translation_table import Batch, Table, Text

Counted = tuple[Tensor, Tensor]  # posteriors of links [M, B, N] and of NULL [M, B], as a direction counts them


@dataclass(frozen=True)
class Settings:
    """How parameters are estimated from counts.

    `prior` is a symmetric Dirichlet prior of the source words of each target word, over the whole vocabulary. If
    `variational`, expected logarithms are taken, so that rare words do not collect their accidental contexts; else
    as many occurrences are added to the counts. `null_prior` occurrences of every word are added to NULL's.
    `learn_p0` estimates the probability of NULL, which is constant otherwise.
    """

    prior: float
    null_prior: float
    variational: bool
    learn_p0: bool
    device: str


class Direction:
    """A direction in training. `values` [U+1] and `null` [V+1] are its probabilities, with a 0 for padding.

    Before any training, every source word is equally likely; `known` continues an earlier training.
    """

    def __init__(self, text: Text, known: Table, moves: Moves, settings: Settings) -> None:
        self.text, self.moves, self.settings = text, moves, settings
        self.row = torch.as_tensor(text.numbers[1], device=settings.device)
        V = len(text.source)
        values = known.between(text) if len(known) else np.full(len(text.keys), 1.0 / V)
        null = known.of_null(text.source) if len(known) else np.full(V, 1.0 / V)
        self.values = torch.as_tensor(np.append(values, 0.0), device=settings.device)
        self.null = torch.as_tensor(np.append(null, 0.0), device=settings.device)
        self._cost = 0.0  # of the present parameters, under their prior
        self.clear()

    def clear(self) -> None:
        """Reset all counts before an iteration."""
        self._links, self._nulls = torch.zeros_like(self.values), torch.zeros_like(self.null)
        self._jumps = JumpCounts.zeros(int(self.text.n_target.max()), self.settings.device)
        self._log_likelihood, self._tokens = 0.0, 0.0

    def expect(self, batch: Batch, jumping: bool) -> Posterior:
        """Posteriors under the present parameters. Jumps and likelihood are counted."""
        x = batch.chains(self.values, self.null)
        found = posteriors(x, self.moves, self._jumps) if jumping else independent(x, self.moves.p0)
        self._log_likelihood += float(found.log_likelihood @ batch.weight)
        return found

    def count(self, batch: Batch, link: Tensor, null: Tensor) -> None:
        """Count these posteriors of links and NULL, which are overwritten."""
        self._links.index_add_(0, batch.cell.flatten(), link.mul_(batch.weight[:, None]).flatten())
        self._nulls.index_add_(0, batch.word.flatten(), null.mul_(batch.weight).flatten())
        self._tokens += float(batch.sizes.double() @ batch.weight)

    @property
    def objective(self) -> float:
        """Log-likelihood plus log prior (for a variational prior, their lower bound) of the parameters before the
        last update. No iteration lowers it."""
        return self._log_likelihood - self._cost_before

    def update(self, jumping: bool) -> None:
        """Set the parameters that fit the counts best."""
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

    def state(self) -> dict[str, np.ndarray]:
        """The parameters, as a training that goes on needs them."""
        jumps = self.moves.jumps
        arrays = {"values": self.values, "null": self.null, "jumps": jumps.weights, "starts": jumps.starts}
        figures = {"figures": np.array([self.moves.p0, self._cost])}
        return {**{name: array.cpu().numpy().copy() for name, array in arrays.items()}, **figures}

    def resume(self, state: Arrays) -> None:
        """Take the parameters of `state`."""
        names = ("values", "null", "jumps", "starts")
        found = [torch.as_tensor(state[name].copy(), device=self.settings.device) for name in names]
        p0, self._cost = map(float, state["figures"])
        self.values, self.null, self.moves = (
            found[0],
            found[1],
            replace(self.moves, p0=p0, jumps=Jumps(*found[2:])),
        )

    def table(self) -> Table:
        values, null = self.values[:-1].cpu().numpy().copy(), self.null[:-1].cpu().numpy().copy()
        return Table(self.text.source, self.text.target, self.text.keys, values, null)


def shares(counts: Tensor, row: Tensor, V: int, prior: float, variational: bool) -> tuple[Tensor, float]:
    """[U] each count's share of its row of V places, and the cost of the prior.

    Places without a count are equally likely. A variational prior costs the divergence of the rows' distributions
    from it.
    """
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


def separate(found: Sequence[Posterior], iteration: int) -> list[Counted]:
    """Each direction counts its own posteriors."""
    return [(part.link, part.null) for part in found]


def agreed(found: Sequence[Posterior]) -> list[Counted]:
    """Both directions count the product of their posteriors, and the rest of each word as NULL."""
    forward, backward = found
    both = forward.link * backward.link.permute(2, 1, 0)  # [M, B, N]
    out = []
    for own, link in ((forward, both), (backward, both.permute(2, 1, 0).clone())):
        left = (1 - link.sum(2)).clamp_min(0.0)
        out.append((link, torch.where(own.null > 0, left, 0.0)))  # no NULL in the padding
    return out


def iterate(
    directions: Sequence[Direction],
    stages: Sequence[bool],
    most_cells: int,
    combine: Callable[[Sequence[Posterior], int], Sequence[Counted]],
    after: Callable[[int], None],
    checkpoint: Checkpoint = UNKEPT,
) -> int:
    """Train directions over the same pairs together, one iteration for each of `stages`: True if words jump.

    `combine(posteriors, iteration)` makes what each direction counts of the posteriors of all,
    `after(iteration)` is called at the end of each; iterations count from 1. Returns how many were done: Ctrl-C
    after the first ends the training. What the checkpoint kept is not done again.
    """
    device = directions[0].settings.device
    groups = directions[0].text.groups(most_cells)
    batches = [[direction.text.batch(group, device) for direction in directions] for group in groups]
    done = begun = _resumed(directions, checkpoint)
    try:
        for jumping in stages[begun:]:
            for direction in directions:
                direction.clear()
            for batch in batches:
                both = list(zip(directions, batch, strict=True))
                found = combine([direction.expect(part, jumping) for direction, part in both], done + 1)
                for (direction, part), (link, null) in zip(both, found, strict=True):
                    direction.count(part, link, null)
            for direction in directions:
                direction.update(jumping)
            done += 1
            after(done)
            if done < len(stages):
                checkpoint.keep(partial(dict, _state(directions, done)))
    except KeyboardInterrupt:
        if done == begun:
            raise
    return done


def _state(directions: Sequence[Direction], done: int) -> dict[str, np.ndarray]:
    """The parameters of all directions after so many iterations."""
    state = {"done": np.array([done])}
    for number, direction in enumerate(directions):
        for name, array in direction.state().items():
            state[f"{number}.{name}"] = array
    return state


def _resumed(directions: Sequence[Direction], checkpoint: Checkpoint) -> int:
    """Give all directions the parameters that an interrupted training kept; return its number of iterations."""
    kept = checkpoint.kept()
    if kept is None:
        return 0
    for number, direction in enumerate(directions):
        start = f"{number}."
        direction.resume({name.removeprefix(start): kept[name] for name in kept if name.startswith(start)})
    return int(kept["done"][0])
