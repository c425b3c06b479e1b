"""What a training run shows: losses, weights, scores and alignments on its way, calibration at its end."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..aligners.base import UNKEPT, Aligner, Arrays, Checkpoint, PosteriorOfCells, Prepares, Step, TrainingReport
from ..evaluate.calibration import Reliability, reliability
from ..evaluate.scores import links_of
from ..types import Alignment, Example
from . import pictures
from .loop import Scores, alignment_of, scores, symmetrized, text_of
from .tracking import Tracker

log = logging.getLogger(__name__)

CANDIDATE = 0.01  # nearly all cells are less probable, and nearly none of them is a link
AXES = ("probability", "share of links in gold")


@dataclass
class Monitor:
    """A watcher of training, which logs the loss, and writes to a tracker if there is one.

    Every step writes the loss and the norm of the gradient. Every `every` steps and after the first (0: never)
    come scores on `dev`, weights, and pictures of the first `examples` alignments. `phase` keeps the alignments of
    the first direction, with which those of the second are joined.
    """

    tracker: Tracker | None
    dev: Sequence[Example] = ()
    every: int = 10
    examples: int = 5
    links: str = "sure"
    phase: Checkpoint = UNKEPT
    _found: dict[str, dict[int, list[Alignment]]] = field(default_factory=dict, repr=False)
    _prepared: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.tracker is not None and self.dev and (ended := self.phase.finished()) is not None:
            known = {int(name): list(map(alignment_of, texts)) for name, texts in ended[0].items()}
            self._found["forward"] = known

    def __call__(self, step: Step) -> None:
        due = self.every and (step.iteration == 1 or step.iteration % self.every == 0)
        if due:
            log.info("%s %4d  loss %.4f  |g| %.3g", step.part, step.iteration, step.loss, step.gradient_norm)
        if self.tracker is None:
            return
        figures = {f"loss/{step.part}": step.loss, f"gradient_norm/{step.part}": step.gradient_norm}
        self.tracker.scalars(figures, step.iteration)
        if due:
            self._weights(self.tracker, step)
            if self.dev:
                self._score(self.tracker, step)

    def _weights(self, tracker: Tracker, step: Step) -> None:
        """Write a histogram of the weights of each feature family."""
        state = step.aligner.state()
        if "names" not in state or "weights" not in state:
            return
        families = np.array([str(name).split(".")[0] for name in state["names"]])
        for family in np.unique(families):
            weights = np.asarray(state["weights"])[families == family]
            tracker.histogram(f"weights/{step.part}/{family}", weights, step.iteration)

    def _score(self, tracker: Tracker, step: Step) -> None:
        """Write scores and pictures of `dev`, aligned by the present weights."""
        found = self._aligned(step)
        if step.part == "backward":
            found = [alignment.flip() for alignment in found]
        self._found.setdefault(step.part, {})[step.iteration] = found
        if step.part == "forward":
            by_iteration = self._found["forward"].items()
            self.phase.finish({str(k): list(map(text_of, a)) for k, a in by_iteration}, TrainingReport())
        self._draw(tracker, step.part, found, self.dev, step.iteration)
        by_name = {step.part: found}
        forward = self._found.get("forward")
        if step.part == "backward" and forward:  # forward is trained first: join equal iterations of the two
            other = forward[max((i for i in forward if i <= step.iteration), default=min(forward))]
            by_name = {name: made for name, made in symmetrized(other, found).items() if name != "forward"}
        self.scores(tracker, scores(self.dev, by_name, self.links), step.iteration)

    def _aligned(self, step: Step) -> list[Alignment]:
        """Align `dev` in the direction of this step; features are computed once per direction if possible."""
        aligner = step.aligner
        if step.part not in self._prepared:
            pairs = [e.pair.flip() if step.part == "backward" else e.pair for e in self.dev]
            self._prepared[step.part] = aligner.prepared(pairs) if isinstance(aligner, Prepares) else pairs
        prepared = self._prepared[step.part]
        return aligner.decode(prepared) if isinstance(aligner, Prepares) else aligner.align(prepared)

    def scores(self, tracker: Tracker, found: Scores, iteration: int) -> None:
        """Write scores on `dev`."""
        for name, s in found.items():
            figures = {"precision": s.precision, "recall": s.recall, "f1": s.f1, "exact": s.exact}
            tracker.scalars({f"dev/{key}/{name}": value for key, value in figures.items()}, iteration)

    def show(
        self, tracker: Tracker, found: Sequence[Alignment], of: Sequence[Example], iteration: int = 0
    ) -> None:
        """Write some final alignments as text and as pictures."""
        self._draw(tracker, "final", found, of, iteration)
        for number, (example, alignment) in enumerate(zip(of[: self.examples], found, strict=False)):
            tracker.text(f"alignments/{number}", as_markdown(example, alignment, self.links), 0)

    def _draw(
        self, tracker: Tracker, name: str, found: Sequence[Alignment], of: Sequence[Example], iteration: int
    ) -> None:
        for number, (example, alignment) in enumerate(zip(of[: self.examples], found, strict=False)):
            gold = example.gold or Alignment(alignment.n_source, alignment.n_target)
            picture = pictures.matrix(pictures.cells(gold, self.links), pictures.cells(alignment, self.links))
            words = (side.tokens for side in (example.pair.source, example.pair.target))
            tracker.image(f"matrix_{number}/{name}", pictures.with_words(picture, *words), iteration)


def as_markdown(example: Example, found: Alignment, links: str = "sure") -> str:
    """Two sentences and a table of their links: correct, missed or spurious."""
    source, target = ([_escaped(token) for token in s.tokens] for s in (example.pair.source, example.pair.target))
    gold = links_of(example.gold, links) if example.gold is not None else frozenset()
    predicted = links_of(found, links)
    rows = [f"{' '.join(source)}\n\n{' '.join(target)}\n", "| source | target | |", "|---|---|---|"]
    for i, j in sorted(predicted | gold):
        outcome = "spurious" if (i, j) not in gold else "correct" if (i, j) in predicted else "missed"
        rows.append(f"| {source[i]} | {target[j]} | {outcome} |")
    return "\n".join(rows)


def _escaped(token: str) -> str:
    """A token that Markdown and HTML show as it is."""
    return re.sub(r"[\\`*_{}\[\]()#+\-.!|]", r"\\\g<0>", html.escape(token, quote=False))


@dataclass
class CellProbabilities:
    """The probability of every cell of some pairs, and whether gold links it; for curves at the end of a run."""

    links: str = "sure"
    _probabilities: list[np.ndarray] = field(default_factory=list, repr=False)
    _outcomes: list[np.ndarray] = field(default_factory=list, repr=False)

    def measured(
        self, aligner: Aligner, examples: Sequence[Example], found: Sequence[Alignment]
    ) -> dict[str, np.ndarray]:
        """Return what `take` adds: all cells of these examples, whose alignments by this aligner are `found`.

        If the aligner has no posterior of each cell, links count by their confidence, and other cells as 0.
        """
        used = [
            (e, alignment)
            for e, alignment in zip(examples, found, strict=True)
            if e.gold is not None and len(e.pair.source) and len(e.pair.target)
        ]
        posteriors = None
        if isinstance(aligner, PosteriorOfCells):
            posteriors = aligner.posteriors([example.pair for example, _ in used])
        if posteriors is None and any(alignment.confidence for _, alignment in used):
            posteriors = [_confidences(alignment) for _, alignment in used]
        cells, outcomes = [np.zeros(0)], [np.zeros(0, dtype=bool)]
        for (example, _), probabilities in zip(used, posteriors or (), strict=False):
            assert example.gold is not None
            cells.append(probabilities.ravel())
            outcomes.append(pictures.cells(example.gold, self.links).ravel())
        return {"probabilities": np.concatenate(cells), "outcomes": np.concatenate(outcomes)}

    def add(self, aligner: Aligner, examples: Sequence[Example], found: Sequence[Alignment]) -> None:
        """Add all cells of these examples, whose alignments by this aligner are `found`."""
        self.take(self.measured(aligner, examples, found))

    def take(self, figures: Arrays) -> None:
        """Add cells that were measured."""
        self._probabilities.append(figures["probabilities"])
        self._outcomes.append(figures["outcomes"])

    @property
    def probabilities(self) -> np.ndarray:
        return np.concatenate(self._probabilities) if self._probabilities else np.zeros(0)

    @property
    def outcomes(self) -> np.ndarray:
        return np.concatenate(self._outcomes) if self._outcomes else np.zeros(0, dtype=bool)

    def reliability(self) -> Reliability:
        """The reliability curve of the candidates, the cells that are not nearly impossible."""
        probabilities, outcomes = self.probabilities, self.outcomes
        candidate = probabilities >= CANDIDATE
        return reliability(
            np.clip(probabilities[candidate], 0, 1), outcomes[candidate]
        )  # sums can exceed 1 by 1 ulp

    def show(self, tracker: Tracker, step: int = 0) -> None:
        """Write a precision-recall curve, and a reliability curve with its expected calibration error."""
        probabilities, outcomes = self.probabilities, self.outcomes
        if not (probabilities >= CANDIDATE).any():
            log.info("no precision-recall and reliability curves: this aligner gives no confidences")
            return
        tracker.precision_recall("links", outcomes, probabilities, step)
        curve = self.reliability()
        tracker.scalars({"calibration/expected_error": curve.error, "calibration/worst_bin": curve.worst}, step)
        picture = pictures.with_scales(pictures.reliability(curve), *AXES)
        tracker.image("calibration/reliability", picture, step)
        rows = ["| probability | links | mean probability | share in gold |", "|---|---:|---:|---:|"]
        for k, count in enumerate(curve.count):
            bounds = f"{curve.edges[k]:.1f} to {curve.edges[k + 1]:.1f}"
            rows.append(f"| {bounds} | {count} | {curve.probability[k]:.3f} | {curve.share[k]:.3f} |")
        tracker.text("calibration/reliability", "\n".join(rows), step)


def _confidences(alignment: Alignment) -> np.ndarray:
    """[M, N] the confidence of each link, and 0 elsewhere."""
    out = np.zeros((alignment.n_source, alignment.n_target))
    for link, confidence in alignment.confidence.items():
        out[link] = confidence
    return out
