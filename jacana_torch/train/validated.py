"""A training run that cross-validates: its scores, its alignments, and what TensorBoard shows of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..aligners.base import Checkpoint
from ..corpora import write
from ..types import Example, Sentence, SentencePair
from . import loop
from .cross_validation import cross_validate
from .data import Dataset
from .diagnostics import CellProbabilities, Monitor
from .run import Run
from .side_by_side import workers_of
from .tracking import Tracker

log = logging.getLogger(__name__)


def validated_by(run: Run, data: Dataset, phase: Checkpoint) -> Validated:
    """Align the training pairs by models that did not see them."""
    cfg, links = run.cfg, run.cfg["links"]
    if data.dev:
        log.info("the dev pairs are not used: cross-validation scores the training pairs")
    probabilities = CellProbabilities(links) if cfg["logger"]["tensorboard"] else None
    given = (run.untrained, data.train, cfg["cv"], cfg["seed"], links, probabilities, phase, run.augment)
    return Validated(run, data.train, *cross_validate(*given, workers_of(cfg)), probabilities)


@dataclass
class Validated:
    """What a cross-validation ended with."""

    run: Run
    examples: list[Example]
    found: loop.Scores
    predicted: loop.Predictions
    probabilities: CellProbabilities | None

    def shown(self, tracker: Tracker | None) -> loop.Scores:
        """Write the alignments, and pictures of them; return the scores."""
        cfg, own = self.run.cfg, self.predicted[loop.output_name(self.run.model.aligner)]
        pairs = (example.pair for example in self.examples)
        plain = (SentencePair(Sentence(p.source.tokens), Sentence(p.target.tokens), p.id) for p in pairs)
        write(map(Example, plain, own), self.run.directory / "predictions.jsonl", "jsonl")
        if tracker is not None and self.probabilities is not None:
            self.probabilities.show(tracker)
            monitor = Monitor(tracker, examples=cfg["logger"]["examples"], links=cfg["links"])
            monitor.show(tracker, own, self.examples)
        log.info(
            "%d-fold cross-validation over %d pairs\n%s", cfg["cv"], len(self.examples), loop.table(self.found)
        )
        return self.found
