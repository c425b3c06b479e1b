"""Compare probabilities with outcomes: a reliability curve, its error, and the log loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, JacanaError


@dataclass(frozen=True)
class Reliability:
    """A reliability curve of K bins; empty bins have probability and share 0."""

    edges: np.ndarray  # [K + 1]
    count: np.ndarray  # [K] probabilities in the bin
    probability: np.ndarray  # [K] their mean
    share: np.ndarray  # [K] the share of them that came true

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of gold shares from probabilities, by count."""
        return float((self.count * np.abs(self.probability - self.share)).sum() / self.count.sum())

    @property
    def worst(self) -> float:
        """The largest distance of any bin that is not empty."""
        return float(np.abs(self.probability - self.share).max())


def reliability(probabilities: np.ndarray, outcomes: np.ndarray, bins: int = 10) -> Reliability:
    """The curve of [n] probabilities and [n] boolean outcomes, in bins of equal width.

    A probability on an edge belongs to the upper bin, and 1 to the last.
    """
    probabilities, outcomes = np.asarray(probabilities, dtype=np.float64), np.asarray(outcomes, dtype=bool)
    if bins < 1:
        raise ConfigError(f"{bins} bins: a reliability curve needs at least one")
    if probabilities.shape != outcomes.shape or probabilities.ndim != 1:
        raise JacanaError(f"{len(probabilities)} probabilities and {len(outcomes)} outcomes: one of each per link")
    if not len(probabilities):
        raise JacanaError("there are no probabilities: nothing was aligned, or the links have no confidences")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise JacanaError("probabilities must be between 0 and 1")
    edges = np.arange(bins + 1) / bins  # linspace has 0.6000000000000001
    bin_of = np.clip(np.searchsorted(edges, probabilities, side="right") - 1, 0, bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    some = np.maximum(count, 1)
    mean = np.bincount(bin_of, probabilities, bins) / some
    return Reliability(edges, count, mean, np.bincount(bin_of, outcomes.astype(float), bins) / some)


def log_loss(probabilities: np.ndarray, outcomes: np.ndarray) -> float:
    """The mean negative log probability of the outcomes. Probabilities are clipped to 1e-6 from 0 and 1."""
    clipped = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return float(-np.log(np.where(outcomes, clipped, 1 - clipped)).mean())
