"""Two chances of a link weighed against each other: a calibrated one comes out.

A sample of cells with gold in, a `Weighing` out; chances of both directions in, one chance a cell out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from ..errors import ConfigError

SUREST = 1e-6  # chances nearer to 0 or 1 say no more than this
STEPS = 50  # of Newton's method, which takes about ten
KEY = "together"  # of what is learnt, in a model's state


@dataclass(frozen=True)
class Weighing:
    """The log-odds of a link are `forward` and `backward` times those of the directions, plus `smaller` times the
    smaller of the two, plus `bias`; links are what is likelier than `threshold`.

    A chain has room for one of several links of a word: one direction's doubt says little, and `smaller` is mostly
    below 0.
    Until something is learnt it is what two corpora and several sets of features agreed on, to a few hundredths.
    """

    forward: float = 0.36
    backward: float = 0.41
    bias: float = 0.24
    threshold: float = 0.5
    smaller: float = 0.0

    def chances(self, forward: np.ndarray, backward: np.ndarray, least: float = 0.0) -> np.ndarray:
        """[C]; what is less likely than `least` may be told as 0."""
        if (lowest := self._lowest(least)) > 0:
            out = np.zeros(len(forward))
            likely = np.flatnonzero(np.maximum(forward, backward) >= lowest)
            out[likely] = self.chances(forward[likely], backward[likely])
            return out
        one, other = log_odds(forward), log_odds(backward)
        odds = self.forward * one + self.backward * other + self.smaller * np.minimum(one, other) + self.bias
        return likelihood(odds)

    def _lowest(self, least: float) -> float:
        """Where both directions' chances are lower than this, the weighed one is lower than `least`."""
        both = self.forward + self.backward + self.smaller
        least_weight = min(self.forward, self.backward) + min(self.smaller, 0.0)
        if least <= 0 or least_weight < 0 or both < 1e-3:  # a higher chance must never make a link less likely
            return 0.0
        odds = (math.log(least / (1 - least)) - self.bias) / both
        lowest = (1 - 1e-6) / (1 + math.exp(min(-odds, 700.0)))
        return min(lowest, 1 - SUREST) if lowest > SUREST else 0.0

    def state(self) -> dict[str, np.ndarray]:
        return {KEY: np.array(astuple(self))}

    @classmethod
    def restored(cls, state: Mapping[str, object]) -> Weighing:
        """What a state holds; as nothing was learnt where it holds none."""
        if KEY not in state:
            return cls()
        figures = np.asarray(state[KEY], dtype=np.float64)
        if figures.shape not in ((4,), (5,)) or not np.isfinite(figures).all() or not 0 < figures[3] < 1:
            raise ConfigError(
                f"{KEY!r} holds {figures.tolist()}: two weights, a bias and a threshold are expected, and perhaps "
                "the weight of the smaller"
            )
        return cls(*figures.tolist())  # four figures are those of an older version

    def __str__(self) -> str:
        return (
            f"log-odds {self.forward:.3f} forward + {self.backward:.3f} backward + {self.smaller:.3f} the smaller "
            f"+ {self.bias:.3f}, links from {self.threshold:.2f}"
        )


@dataclass(frozen=True)
class Sample:
    """Cells of pairs: `forward`, `backward` [C] chances, `hit` [C] whether gold links them, `pair` [C] whose."""

    forward: np.ndarray
    backward: np.ndarray
    hit: np.ndarray
    pair: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Sample]) -> Sample:
        """One after the other; their pairs are numbered on."""
        if not parts:
            raise ConfigError("there are no pairs with words on both sides to judge")
        first = np.cumsum([0, *(int(part.pair.max()) + 1 for part in parts[:-1])])
        pair = np.concatenate([part.pair + at for part, at in zip(parts, first.tolist(), strict=True)])
        forward, backward, hit = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("forward", "backward", "hit")
        )
        return cls(forward, backward, hit, pair)


def log_odds(chances: np.ndarray) -> np.ndarray:
    certain = np.clip(chances, SUREST, 1 - SUREST)
    return np.log(certain) - np.log1p(-certain)


def likelihood(odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # of odds beyond e^-700, which are 0
        return 1 / (1 + np.exp(-odds))


def weighed(sample: Sample) -> Weighing:
    """The likeliest weights and bias by Newton's method, under a prior as strong as a few cells that keeps them
    near what they are where nothing is learnt."""
    one, other = log_odds(sample.forward), log_odds(sample.backward)
    x = np.column_stack([one, other, np.ones(len(one)), np.minimum(one, other)])
    usual = Weighing()
    prior = np.array([usual.forward, usual.backward, usual.bias, usual.smaller])
    weights = prior.copy()
    loss = _loss(x, sample.hit, weights, prior)
    for _ in range(STEPS):
        chances = likelihood(x @ weights)
        gradient = x.T @ (chances - sample.hit) + weights - prior
        curvature = (x * (chances * (1 - chances))[:, None]).T @ x + np.eye(len(prior))
        step = np.linalg.solve(curvature, gradient)
        while (after := _loss(x, sample.hit, weights - step, prior)) > loss and np.abs(step).max() > 1e-12:
            step /= 2
        weights, before, loss = weights - step, loss, after
        if before - loss <= 1e-12 * abs(before):
            break
    forward, backward, bias, smaller = weights.tolist()
    return Weighing(forward, backward, bias, smaller=smaller)


def _loss(x: np.ndarray, hit: np.ndarray, weights: np.ndarray, prior: np.ndarray) -> float:
    odds = x @ weights
    return float(np.logaddexp(0, np.where(hit, -odds, odds)).sum() + ((weights - prior) ** 2).sum() / 2)
