"""What is fitted on a task's training pairs: a threshold on one score, and a small regression on features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import JacanaError

Fit = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]

_STEPS = 100  # of Newton's method
_TOLERANCE = 1e-8


def threshold(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the threshold above which pairs are predicted true, for the highest accuracy.

    It lies midway between two scores; of equally good ones, the lowest is taken.
    """
    values, truth = np.asarray(scores, float), np.asarray(labels, float) > 0
    if not values.size or values.shape != truth.shape:
        raise JacanaError(f"a threshold needs as many labels as scores: {truth.size} and {values.size}")
    order = np.argsort(values, kind="stable")
    values, truth = values[order], truth[order]
    # right[k]: pairs that are right if the k lowest are predicted false
    right = np.concatenate([[0], np.cumsum(~truth)]) + truth.sum() - np.concatenate([[0], np.cumsum(truth)])
    between = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))
    best = int(between[np.argmax(right[between])])
    if best in (0, len(values)):
        return float(values[0] - 1) if best == 0 else float(values[-1] + 1)
    return float((values[best - 1] + values[best]) / 2)


@dataclass(frozen=True)
class Regression:
    """A linear model of standardised features: probabilities of labels if `logistic`, else values.

    `weights` [features] and `bias` count features as they are given. See `fit`.
    """

    weights: np.ndarray
    bias: float
    logistic: bool

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """[pairs] the predictions for [pairs, features]."""
        values = features @ self.weights + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(values, -500, 500))) if self.logistic else values)

    @classmethod
    def fit(cls, features: np.ndarray, wanted: np.ndarray, logistic: bool, l2: float = 30.0) -> Regression:
        """Fit with an L2 penalty of standardised weights, by Newton's method; the bias is not penalised."""
        x, y = np.asarray(features, float), np.asarray(wanted, float)
        if x.ndim != 2 or len(x) != len(y) or not len(y):
            raise JacanaError(f"a regression needs features [pairs, features]: {x.shape} for {len(y)} values")
        if logistic and not set(np.unique(y)) <= {0.0, 1.0}:
            raise JacanaError("labels have to be 0 or 1")
        centre, scale = x.mean(0), x.std(0)
        scale = np.where(scale > 1e-12, scale, np.inf)  # a constant feature gets no weight
        z = np.column_stack([(x - centre) / scale, np.ones(len(x))])
        penalty = np.full(z.shape[1], l2)
        penalty[-1] = 1e-9
        solution = _newton(z, y, penalty) if logistic else np.linalg.solve(z.T @ z + np.diag(penalty), z.T @ y)
        weights = solution[:-1] / scale
        return cls(weights, float(solution[-1] - weights @ centre), logistic)


def _newton(z: np.ndarray, y: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    solution = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ solution, -500, 500)))
        gradient = z.T @ (p - y) + penalty * solution
        curvature = (z * np.maximum(p * (1 - p), 1e-9)[:, None]).T @ z + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        solution = solution - step
        if np.abs(step).max() < _TOLERANCE:
            break
    return solution


def folds(n: int, k: int, seed: int = 1) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers of training and test pairs of each of k folds."""
    if not 2 <= k <= n:
        raise JacanaError(f"{k} folds of {n} pairs: a fold needs at least one pair, and two folds are the fewest")
    parts = np.array_split(np.random.default_rng(seed).permutation(n), k)
    for part in parts:
        rest = np.setdiff1d(np.arange(n), part)
        yield rest, np.sort(part)


def cross_validated(fit: Fit, features: np.ndarray, wanted: np.ndarray, k: int, seed: int = 1) -> np.ndarray:
    """[pairs] predictions for each pair, by what was fitted without its fold."""
    predicted = np.zeros(len(wanted))
    for rest, part in folds(len(wanted), k, seed):
        predicted[part] = fit(features[rest], wanted[rest])(features[part])
    return predicted


def by_threshold(scores: np.ndarray, labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A `Fit` of one column: predicts 1 above the threshold that is best in training."""
    best = threshold(scores, labels)
    return lambda values: np.asarray(values > best, dtype=float)


def by_regression(logistic: bool, l2: float) -> Fit:
    """A `Fit` of a `Regression`; logistic ones predict probabilities."""
    return lambda features, wanted: Regression.fit(features, wanted, logistic, l2)


@dataclass(frozen=True)
class KernelRegression:
    """Kernel ridge regression with a Gaussian kernel of standardised features, for values that are not linear.

    `points` [N, features] are the training pairs, `weights` [N] theirs.
    """

    points: np.ndarray
    weights: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    gamma: float
    mean: float

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """[pairs] the predictions for [pairs, features]."""
        points = (np.asarray(features, float) - self.centre) / self.scale
        return np.asarray(_gaussian(points, self.points, self.gamma) @ self.weights + self.mean)

    @classmethod
    def fit(
        cls, features: np.ndarray, wanted: np.ndarray, l2: float = 0.5, gamma: float = 0.005
    ) -> KernelRegression:
        x, y = np.asarray(features, float), np.asarray(wanted, float)
        if x.ndim != 2 or len(x) != len(y) or not len(y):
            raise JacanaError(f"a regression needs features [pairs, features]: {x.shape} for {len(y)} values")
        centre, scale = x.mean(0), x.std(0)
        scale = np.where(scale > 1e-12, scale, np.inf)
        points, mean = (x - centre) / scale, float(y.mean())
        kernel = _gaussian(points, points, gamma)
        weights = np.linalg.solve(kernel + l2 * np.eye(len(points)), y - mean)
        return cls(points, weights, centre, scale, gamma, mean)


def _gaussian(one: np.ndarray, other: np.ndarray, gamma: float) -> np.ndarray:
    """[len(one), len(other)] the similarity of points."""
    squares = (one * one).sum(1)[:, None] + (other * other).sum(1) - 2 * one @ other.T
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0)))


def by_kernel(l2: float, gamma: float) -> Fit:
    """A `Fit` of a `KernelRegression`."""
    return lambda features, wanted: KernelRegression.fit(features, wanted, l2, gamma)
