"""Are a model's chances worth their name? An aligner and pairs with gold in; precision-recall and reliability out.

What a training run shows of the chances of links, once it is over: curves, and the expected calibration error.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..aligners.base import Aligner, PosteriorOfCells
from ..evaluate.calibration import Reliability, reliability
from ..types import Alignment, Example
from . import lettering, pictures
from .tracking import Tracker

log = logging.getLogger(__name__)

CANDIDATE = 0.01  # less likely links say nothing of calibration, being nearly all there are and nearly all none

AXES = ("chance", "share that gold has")


@dataclass
class Judged:
    """Chances of cells, and whether gold links them: of all pairs that were `add`ed, each by whom it was given."""

    links: str = "sure"
    _chances: list[np.ndarray] = field(default_factory=list, repr=False)
    _hits: list[np.ndarray] = field(default_factory=list, repr=False)

    def add(self, aligner: Aligner, examples: Sequence[Example], found: Sequence[Alignment]) -> None:
        """All cells of these pairs. Two chains are asked for all chances; of others, `found` has those of the
        links that they chose, and the rest count as 0."""
        kept = [
            (e, alignment)
            for e, alignment in zip(examples, found, strict=True)
            if e.gold is not None and len(e.pair.source) and len(e.pair.target)
        ]
        if not kept:
            return
        posteriors = None
        if isinstance(aligner, PosteriorOfCells):
            posteriors = aligner.posteriors([example.pair for example, _ in kept])
        if posteriors is None and any(alignment.confidence for _, alignment in kept):
            posteriors = [_of_links(alignment) for _, alignment in kept]
        for (example, _), chances in zip(kept, posteriors or (), strict=False):
            assert example.gold is not None
            self._chances.append(chances.ravel())
            self._hits.append(pictures.cells(example.gold, self.links).ravel())

    @property
    def chances(self) -> np.ndarray:
        return np.concatenate(self._chances) if self._chances else np.zeros(0)

    @property
    def hits(self) -> np.ndarray:
        return np.concatenate(self._hits) if self._hits else np.zeros(0, dtype=bool)

    def reliability(self) -> Reliability:
        """Of the candidates: links that are not unthinkable."""
        chances, hits = self.chances, self.hits
        candidate = chances >= CANDIDATE
        return reliability(np.clip(chances[candidate], 0, 1), hits[candidate])  # sums may exceed 1 by a last bit

    def show(self, tracker: Tracker, step: int = 0) -> None:
        """Both curves, the figures of one as a table, and its error; nothing of an aligner without chances."""
        chances, hits = self.chances, self.hits
        if not (chances >= CANDIDATE).any():
            log.info("no curves of chances: this aligner tells none")
            return
        tracker.precision_recall("links", hits, chances, step)
        curve = self.reliability()
        tracker.scalars({"calibration/expected_error": curve.error, "calibration/worst_bin": curve.worst}, step)
        tracker.image("calibration/reliability", lettering.scaled(pictures.reliability(curve), *AXES), step)
        tracker.text("calibration/reliability", as_markdown(curve), step)


def _of_links(alignment: Alignment) -> np.ndarray:
    """[M, N] the confidences of its links, 0 elsewhere."""
    out = np.zeros((alignment.n_source, alignment.n_target))
    for link, confidence in alignment.confidence.items():
        out[link] = confidence
    return out


def as_markdown(curve: Reliability) -> str:
    rows = ["| chances | links | mean chance | in gold |", "|---|---:|---:|---:|"]
    for k, count in enumerate(curve.count):
        bounds = f"{curve.edges[k]:.1f} to {curve.edges[k + 1]:.1f}"
        rows.append(f"| {bounds} | {count} | {curve.probability[k]:.3f} | {curve.share[k]:.3f} |")
    return "\n".join(rows)
