"""The averaged perceptron of MacCartney et al. (2008), Figure 3.

Training can be stopped after any epoch, saved and resumed. The remaining epochs do not change by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ConfigError
from .edit_features import Columns, Edit, Problem

Decode = Callable[[Problem, np.ndarray, np.random.Generator], list[Edit]]


@dataclass(frozen=True)
class Rates:
    """Settings of the perceptron.

    `epochs` (N), of which the first `burn_in` (N0) are not averaged. The learning rate of epoch i is `rate` (R0)
    times `decay` (r) to the power of i. `normalise`: scale the weights to length 1 after every epoch, as in the
    paper; Thadani & McKeown do not.
    """

    epochs: int = 50
    burn_in: int = 10
    rate: float = 1.0
    decay: float = 0.8
    normalise: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.burn_in < self.epochs):
            raise ConfigError(f"burn_in={self.burn_in} must be at least 0 and below epochs={self.epochs}")
        if not (0 < self.rate < np.inf and 0 < self.decay <= 1):
            raise ConfigError(f"rate={self.rate}, decay={self.decay}: both must be positive, and decay at most 1")


@dataclass
class Progress:
    """State between epochs: `current` weights, the `total` over the averaged epochs, and the epochs done."""

    current: np.ndarray
    total: np.ndarray
    epoch: int = 0

    def state(self) -> dict[str, np.ndarray]:
        return {"current": self.current, "total": self.total, "epoch": np.array([self.epoch])}

    def average(self, rates: Rates) -> np.ndarray:
        """The weights to align with: the mean of the averaged epochs; during the burn-in, the current weights."""
        counted = self.epoch - rates.burn_in
        return self.total / counted if counted > 0 else self.current


@dataclass(frozen=True)
class Epoch:
    """`loss`: the mean margin by which the decoder's edits outscored gold. `change`: the norm of the update."""

    number: int
    loss: float
    change: float


def learn(
    problems: Sequence[Problem],
    gold: Sequence[list[Edit]],
    columns: Columns,
    decode: Decode,
    rates: Rates,
    seed: int,
    progress: Progress,
) -> Iterator[Epoch]:
    """Run the remaining epochs and yield each. `progress` changes only between epochs."""
    wanted = [columns.features(problem, edits) for problem, edits in zip(problems, gold, strict=True)]
    while progress.epoch < rates.epochs:
        epoch = progress.epoch + 1
        random = np.random.default_rng([seed, epoch])
        rate = rates.rate * rates.decay**epoch
        weights, loss = progress.current.copy(), 0.0
        mean = np.zeros_like(weights)
        for j in random.permutation(len(problems)).tolist():
            found = decode(problems[j], weights, random)
            if found != gold[j]:
                difference = wanted[j] - columns.features(problems[j], found)
                loss += max(0.0, -float(weights @ difference))
                weights += rate * difference
            mean += weights
        mean /= len(problems)
        if rates.normalise and (length := float(np.linalg.norm(weights))) > 0:
            weights, mean = weights / length, mean / length
        change = float(np.linalg.norm(weights - progress.current))
        total = progress.total + mean if epoch > rates.burn_in else progress.total
        progress.current, progress.total, progress.epoch = weights, total, epoch
        yield Epoch(epoch, loss / len(problems), change)
