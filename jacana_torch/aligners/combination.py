"""Two posteriors of a link combined into one that is calibrated: a logistic regression on their log-odds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from ..errors import ConfigError

CERTAIN = 1e-6  # probabilities nearer to 0 or 1 are taken for this near
STEPS = 50  # of Newton's method, which takes about ten
KEY = "together"  # of the parameters in a model's state


@dataclass(frozen=True)
class Combination:
    """The log-odds of a link, as a linear function of those of two directions.

    They are `forward` and `backward` times the directions' log-odds, plus `smaller` times the smaller of the two,
    plus `bias`. Cells whose probability is at least `threshold` are links. A chain gives a word one link: if gold
    has several, one of the directions must miss all but one. Its doubt means little, so `smaller` is mostly below
    0.

    The defaults, for models that were not calibrated, are what two corpora and several feature sets agreed on.
    """

    forward: float = 0.36
    backward: float = 0.41
    bias: float = 0.24
    threshold: float = 0.5
    smaller: float = 0.0

    def combine(self, forward: np.ndarray, backward: np.ndarray, least: float = 0.0) -> np.ndarray:
        """Return [C] probabilities; those below `least` may be given as 0, which saves time."""
        if (lowest := self._lowest(least)) > 0:
            out = np.zeros(len(forward))
            likely = np.flatnonzero(np.maximum(forward, backward) >= lowest)
            out[likely] = self.combine(forward[likely], backward[likely])
            return out
        one, other = log_odds(forward), log_odds(backward)
        odds = self.forward * one + self.backward * other + self.smaller * np.minimum(one, other) + self.bias
        return logistic(odds)

    def _lowest(self, least: float) -> float:
        """Return what one direction at least must give a cell whose combined probability is `least`."""
        both = self.forward + self.backward + self.smaller
        least_weight = min(self.forward, self.backward) + min(self.smaller, 0.0)
        if least <= 0 or least_weight < 0 or both < 1e-3:  # then a higher posterior may make a link less likely
            return 0.0
        odds = (math.log(least / (1 - least)) - self.bias) / both
        lowest = (1 - 1e-6) / (1 + math.exp(min(-odds, 700.0)))
        return min(lowest, 1 - CERTAIN) if lowest > CERTAIN else 0.0

    def state(self) -> dict[str, np.ndarray]:
        return {KEY: np.array(astuple(self))}

    @classmethod
    def restored(cls, state: Mapping[str, object]) -> Combination:
        """Return the combination that a model's state holds, or the default one if it holds none."""
        if KEY not in state:
            return cls()
        figures = np.asarray(state[KEY], dtype=np.float64)
        if figures.shape not in ((4,), (5,)) or not np.isfinite(figures).all() or not 0 < figures[3] < 1:
            raise ConfigError(
                f"{KEY!r} holds {figures.tolist()}: expected two weights, a bias and a threshold, and perhaps the "
                "weight of the smaller"
            )
        return cls(*figures.tolist())  # a model of an older version has four figures

    def __str__(self) -> str:
        return (
            f"log-odds {self.forward:.3f} forward + {self.backward:.3f} backward + {self.smaller:.3f} the smaller "
            f"+ {self.bias:.3f}, links from {self.threshold:.2f}"
        )


@dataclass(frozen=True)
class Sample:
    """Cells of pairs: `forward`, `backward` [C] posteriors, `gold` [C] whether gold links them, `pair` [C]."""

    forward: np.ndarray
    backward: np.ndarray
    gold: np.ndarray
    pair: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Sample]) -> Sample:
        """Concatenate samples, numbering their pairs consecutively."""
        if not parts:
            raise ConfigError("there are no pairs with words on both sides to calibrate on")
        first = np.cumsum([0, *(int(part.pair.max()) + 1 for part in parts[:-1])])
        return cls(
            np.concatenate([part.forward for part in parts]),
            np.concatenate([part.backward for part in parts]),
            np.concatenate([part.gold for part in parts]),
            np.concatenate([part.pair + at for part, at in zip(parts, first.tolist(), strict=True)]),
        )


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    p = np.clip(probabilities, CERTAIN, 1 - CERTAIN)
    odds: np.ndarray = np.log(p) - np.log1p(-p)
    return odds


def logistic(odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # of odds below -700, whose probability is 0
        p: np.ndarray = 1 / (1 + np.exp(-odds))
    return p


def fitted(sample: Sample) -> Combination:
    """Return the most likely weights and bias, by Newton's method.

    A Gaussian prior, as strong as a few cells, keeps them near the default combination.
    """
    one, other = log_odds(sample.forward), log_odds(sample.backward)
    x = np.column_stack([one, other, np.ones(len(one)), np.minimum(one, other)])
    usual = Combination()
    prior = np.array([usual.forward, usual.backward, usual.bias, usual.smaller])
    weights = prior.copy()
    loss = _loss(x, sample.gold, weights, prior)
    for _ in range(STEPS):
        p = logistic(x @ weights)
        gradient = x.T @ (p - sample.gold) + weights - prior
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.eye(len(prior))
        step = np.linalg.solve(curvature, gradient)
        while (after := _loss(x, sample.gold, weights - step, prior)) > loss and np.abs(step).max() > 1e-12:
            step /= 2
        weights, before, loss = weights - step, loss, after
        if before - loss <= 1e-12 * abs(before):
            break
    forward, backward, bias, smaller = weights.tolist()
    return Combination(forward, backward, bias, smaller=smaller)


def _loss(x: np.ndarray, gold: np.ndarray, weights: np.ndarray, prior: np.ndarray) -> float:
    odds = x @ weights
    return float(np.logaddexp(0, np.where(gold, -odds, odds)).sum() + ((weights - prior) ** 2).sum() / 2)
