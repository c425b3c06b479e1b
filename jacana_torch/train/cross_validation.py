"""Cross-validation: align every example by an aligner that was trained on the other folds.

Several processes share the folds, and the parts that an aligner consists of: five folds do not divide by two. What
a part learns passes through the checkpoint, as it does from a killed run to the one that resumes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np

from ..aligners.base import UNKEPT, Aligner, Arrays, Checkpoint, TrainingReport
from ..aligners.parts import InParts
from ..types import Alignment, Example
from . import loop
from .side_by_side import Task, side_by_side

log = logging.getLogger(__name__)

REST = ""  # what remains of a fold if its parts are trained: to align it


class FoldWatcher(Protocol):
    """Measures something of each fold while its aligner is there."""

    def measured(self, aligner: Aligner, examples: Sequence[Example], found: Sequence[Alignment]) -> Arrays:
        """Return the figures of a fold, at least one array; called in the process that trained the aligner."""
        ...

    def take(self, figures: Arrays) -> None:
        """Take the figures of a fold, in the order of the folds."""
        ...


@dataclass
class Fold:
    """What a fold ended with: alignments by symmetrizer, and the watcher's figures."""

    predictions: loop.Predictions
    figures: Arrays


def cross_validate(
    make: Callable[[], Aligner],
    examples: Sequence[Example],
    k: int,
    seed: int = 1,
    links: str = "sure",
    each: FoldWatcher | None = None,
    checkpoint: Checkpoint = UNKEPT,
    augment: loop.Augment = list,
    workers: int = 1,
) -> tuple[loop.Scores, loop.Predictions]:
    """Align every example by an aligner that was trained on the other folds: scores over all, and alignments.

    `make` builds an untrained aligner. `augment` adds made pairs to the other folds. `each` measures something of
    each fold. Folds that an interrupted run ended are not trained and aligned again. The results do not depend on
    the number of `workers`.
    """
    untrained = make()
    own = loop.output_name(untrained)
    work = _Work(make, examples, list(loop.folds(len(examples), k, seed)), each, checkpoint, augment)
    done: dict[int, Fold] = {}

    def ended(number: int, fold: Fold) -> None:
        done[number] = fold
        held_out = [examples[i] for i in work.splits[number - 1][1]]
        f1 = loop.scores(held_out, {own: fold.predictions[own]}, links)[own].f1
        log.info("fold %d of %d: %s F1 %.2f", number, k, own, 100 * f1)

    for number in range(1, k + 1):
        if (fold := work.ended(number)) is not None:
            ended(number, fold)
    parts = work.parts([n for n in range(1, k + 1) if n not in done], untrained if workers > 1 else None)
    count = sum(map(len, parts.values())) + len(parts)
    tasks = _tasks(parts)
    for (number, part), found in side_by_side(work, tasks, k, min(workers, count)):
        if found is None:
            parts[number].remove(part)
        else:
            ended(number, found)
    joined: dict[str, list[Alignment | None]] = {}
    for number, (_, test) in enumerate(work.splits, 1):
        for name, alignments in done[number].predictions.items():
            of_all = joined.setdefault(name, [None] * len(examples))
            for i, alignment in zip(test, alignments, strict=True):
                of_all[i] = alignment
        if each is not None:
            each.take(done[number].figures)
    complete = cast(loop.Predictions, joined)  # the folds cover all examples
    return loop.scores(examples, complete, links), complete


def _tasks(parts: dict[int, list[str]]) -> Iterator[Task | None]:
    """Yield the parts of all folds, and the rest of a fold once its parts are done; None to wait for that."""
    rest = list(parts)

    def ready() -> Iterator[Task]:
        for number in [number for number in rest if not parts[number]]:
            rest.remove(number)
            yield number, REST

    for number, own in parts.items():
        for part in list(own):
            yield number, part
            yield from ready()
        yield from ready()
    while rest:
        yield from ready()
        if rest:
            yield None


@dataclass
class _Work:
    """Trains and aligns folds. It pickles if its members do: another process may be a fork, or not."""

    make: Callable[[], Aligner]
    examples: Sequence[Example]
    splits: list[tuple[np.ndarray, np.ndarray]]
    each: FoldWatcher | None = None
    checkpoint: Checkpoint = UNKEPT
    augment: loop.Augment = field(default=list)
    shared: set[int] = field(default_factory=set)  # the folds whose parts other processes train

    def __call__(self, task: Task) -> Fold | None:
        """Train a part of a fold, or finish the fold."""
        number, part = task
        train, test = self.splits[number - 1]
        aligner, examples = self.make(), self.augment([self.examples[i] for i in train])
        training = self.checkpoint.phase(f"fold-{number}-training")
        if part != REST:
            assert isinstance(aligner, InParts)
            aligner.fit_part(part, examples, training)
            return None
        with _quiet(number in self.shared):
            report = loop.fit(aligner, examples, phase=training)
        if report.interrupted:
            raise KeyboardInterrupt
        held_out = [self.examples[i] for i in test]
        fold = Fold(loop.predictions(aligner, held_out), {})
        if self.each is not None:
            fold.figures = self.each.measured(aligner, held_out, fold.predictions[loop.output_name(aligner)])
        texts = {name: list(map(loop.text_of, found)) for name, found in fold.predictions.items()}
        self.checkpoint.phase(f"fold-{number}").finish({**fold.figures, **texts}, TrainingReport())
        return fold

    def ended(self, number: int) -> Fold | None:
        """Return what a fold ended with in an interrupted run; None if it has to be aligned (again)."""
        if (found := self.checkpoint.phase(f"fold-{number}").finished()) is None:
            return None
        predictions: loop.Predictions = {}
        figures: dict[str, np.ndarray] = {}
        for name, value in found[0].items():
            if isinstance(value, np.ndarray):
                figures[name] = value
            else:
                predictions[name] = list(map(loop.alignment_of, value))
        return Fold(predictions, figures) if figures or self.each is None else None

    def parts(self, numbers: Sequence[int], aligner: Aligner | None) -> dict[int, list[str]]:
        """Return the parts of an aligner that are left to train in each fold; none if it cannot be shared out."""
        left: dict[int, list[str]] = {number: [] for number in numbers}
        # pairs that are made take time, and would be made for each part
        if isinstance(aligner, InParts) and self.checkpoint is not UNKEPT and self.augment is list:
            for number in numbers:
                training = self.checkpoint.phase(f"fold-{number}-training")
                if training.finished() is None:
                    named = aligner.parts([self.examples[i] for i in self.splits[number - 1][0]])
                    left[number] = [part for part in named if training.phase(part).finished() is None]
                    self.shared.add(number)
        return left


@contextmanager
def _quiet(on: bool) -> Iterator[None]:
    """Do not log that a phase is done already: it was by this run."""
    kept = logging.getLogger("jacana_torch.train.checkpoint")
    before = kept.level
    kept.setLevel(logging.WARNING if on else before)
    try:
        yield
    finally:
        kept.setLevel(before)
