"""What the tasks are scored by: accuracy, average precision, F1 and Pearson's correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import JacanaError

Numbers = Sequence[float] | np.ndarray


def accuracy(labels: Numbers, predicted: Numbers) -> float:
    """The share of predictions that are right."""
    found = _both(labels, predicted)
    return float((found[0] == found[1]).mean())


def average_precision(labels: Numbers, scores: Numbers) -> float:
    """The mean precision at the places of the true pairs, of all pairs by score, as the RTE challenges have it.

    Pairs of one score keep their order.
    """
    truth, values = _both(labels, scores)
    if not (truth > 0).any():
        raise JacanaError("average precision needs a pair with label 1")
    sorted_truth = truth[np.argsort(-values, kind="stable")] > 0
    precision = sorted_truth.cumsum() / np.arange(1, len(truth) + 1)
    return float(precision[sorted_truth].mean())


def f1(labels: Numbers, predicted: Numbers) -> tuple[float, float, float]:
    """Precision, recall and F1 of the pairs with label 1; 0 where nothing can be counted."""
    truth, found = (side > 0 for side in _both(labels, predicted))
    both = float((truth & found).sum())
    precision, recall = both / max(1, found.sum()), both / max(1, truth.sum())
    return precision, recall, 2 * both / max(1, truth.sum() + found.sum())


def pearson(one: Numbers, other: Numbers) -> float:
    """Pearson's r; 0 if one side is constant."""
    x, y = _both(one, other)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def weighted(figures: Sequence[float], sizes: Sequence[int]) -> float:
    """The mean of figures of several sets, weighted by their sizes."""
    return float(np.average(figures, weights=sizes))


def _both(one: Numbers, other: Numbers) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if x.shape != y.shape or not x.size:
        raise JacanaError(
            f"there are {x.size} and {y.size} values: a figure needs as many of each, and at least one"
        )
    return x, y
