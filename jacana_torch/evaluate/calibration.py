"""Do chances mean what they say? Chances and what came true in, a reliability curve and its error out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, JacanaError


@dataclass(frozen=True)
class Reliability:
    """Chances by the bin: `edges` [K + 1], `count` [K] how many, `chance` [K] their mean, `share` [K] how many of
    them came true (both 0 where there are none)."""

    edges: np.ndarray
    count: np.ndarray
    chance: np.ndarray
    share: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error: how far shares are from chances, on average over all chances."""
        return float((self.count * np.abs(self.chance - self.share)).sum() / self.count.sum())

    @property
    def worst(self) -> float:
        """The largest distance of any bin that is not empty."""
        return float(np.abs(self.chance - self.share).max())


def reliability(chances: np.ndarray, hits: np.ndarray, bins: int = 10) -> Reliability:
    """Bins of equal width; a chance on an edge belongs to the upper one, and 1 to the last."""
    chances, hits = np.asarray(chances, dtype=np.float64), np.asarray(hits, dtype=bool)
    if bins < 1:
        raise ConfigError(f"{bins} bins: at least one")
    if chances.shape != hits.shape or chances.ndim != 1:
        raise JacanaError(f"{len(chances)} chances and {len(hits)} outcomes: one of each a link")
    if not len(chances):
        raise JacanaError("there are no chances to judge: nothing was aligned, or without confidence")
    if not ((chances >= 0) & (chances <= 1)).all():
        raise JacanaError("chances are between 0 and 1")
    edges = np.arange(bins + 1) / bins  # linspace has 0.6000000000000001
    of = np.clip(np.searchsorted(edges, chances, side="right") - 1, 0, bins - 1)
    count = np.bincount(of, minlength=bins)
    some = np.maximum(count, 1)
    return Reliability(
        edges, count, np.bincount(of, chances, bins) / some, np.bincount(of, hits.astype(float), bins) / some
    )


def log_loss(chances: np.ndarray, hits: np.ndarray) -> float:
    """The mean of -log of what was thought of what came true; chances nearer to 0 or 1 than 1e-6 count as that."""
    certain = np.clip(chances, 1e-6, 1 - 1e-6)
    return float(-np.log(np.where(hits, certain, 1 - certain)).mean())
