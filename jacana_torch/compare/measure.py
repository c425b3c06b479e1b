"""Measure one system on one corpus: train it, align, count links, and take the time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..aligners.base import Aligner, Directional, State, Trainable
from ..evaluate import Counts, count
from ..model.model import Model
from ..train import loop
from ..train.side_by_side import Task, side_by_side
from ..types import Alignment, Example

log = logging.getLogger(__name__)

# How systems are trained: the value of `train`, and what the table says.
MODES = {"same": "the same pairs", "dev": "other pairs", "cv": "{cv}-fold cv"}


@dataclass(frozen=True)
class Entry:
    """A system to compare: the whole config of its training run, or the name or directory of a saved model."""

    name: str
    config: Mapping[str, Any]
    saved: str | None = None


@dataclass(frozen=True)
class Protocol:
    """How every system of a comparison is trained and scored."""

    mode: str = "same"
    cv: int | None = None
    seed: int = 1
    links: str = "sure"
    symmetrizers: tuple[str, ...] = ()  # empty: each system's own


@dataclass(frozen=True)
class Result:
    """Counts by the name of the symmetrizer, or under "aligned" for a system of one direction.

    `train_seconds` is the mean over the models that were trained, or None if none was.
    """

    counts: Mapping[str, Counts]
    align_seconds: float
    train_seconds: float | None = None
    converged: bool = True


def measure(
    make: Callable[[], Aligner],
    learns: bool,
    train: Sequence[Example],
    scored: Sequence[Example],
    how: Protocol,
    workers: int = 1,
) -> Result:
    """Train on `train` and score on `scored`. In cross-validation, the folds of `scored` serve as both.

    Several `workers` train folds side by side. Pairs are aligned one fold after the other, for the speed of one
    process is reported.
    """
    splits = [(list(train), list(range(len(scored))))]
    if learns and how.mode == "cv":
        folds = loop.folds(len(scored), how.cv or 0, how.seed)
        splits = [([scored[i] for i in rest], fold.tolist()) for rest, fold in folds]
    elsewhere = _trained(make, [examples for examples, _ in splits], workers) if len(splits) > 1 < workers else {}
    joined: dict[str, list[Alignment | None]] = {}
    train_seconds = align_seconds = 0.0
    converged = True
    for number, (examples, places) in enumerate(splits, start=1):
        aligner = make()
        if number in elsewhere:
            state, seconds, done = elsewhere.pop(number)
            assert isinstance(aligner, Trainable)
            aligner.restore(state)
            train_seconds, converged = train_seconds + seconds, converged and done
        elif learns:
            seconds, done = _fit(aligner, examples)
            train_seconds, converged = train_seconds + seconds, converged and done
            aligner = _reloaded(aligner, make)
        found, seconds = _align(aligner, [scored[i] for i in places], how.symmetrizers)
        align_seconds += seconds
        for name, alignments in found.items():
            of_all = joined.setdefault(name, [None] * len(scored))
            for place, alignment in zip(places, alignments, strict=True):
                of_all[place] = alignment
        if len(splits) > 1:
            log.info("fold %d of %d is done", number, len(splits))
    gold = [e.gold for e in scored if e.gold is not None]
    complete = cast(loop.Predictions, joined)  # the splits cover all examples
    counts = {name: count(gold, alignments, how.links) for name, alignments in complete.items()}
    return Result(counts, align_seconds, train_seconds / len(splits) if learns else None, converged)


def _trained(
    make: Callable[[], Aligner], examples: Sequence[Sequence[Example]], workers: int
) -> dict[int, tuple[State, float, bool]]:
    """Train folds side by side: by number, the weights, the seconds, and whether training converged."""
    tasks = [(number, "") for number in range(1, len(examples) + 1)]
    work = _Trains(make, examples)
    return {
        number: found for (number, _), found in side_by_side(work, tasks, len(tasks), min(workers, len(tasks)))
    }


@dataclass
class _Trains:
    """Trains the aligner of a fold, in another process."""

    make: Callable[[], Aligner]
    examples: Sequence[Sequence[Example]]

    def __call__(self, task: Task) -> tuple[State, float, bool]:
        aligner = self.make()
        seconds, done = _fit(aligner, self.examples[task[0] - 1])
        assert isinstance(aligner, Trainable)
        return aligner.state(), seconds, done


def _fit(aligner: Aligner, examples: Sequence[Example]) -> tuple[float, bool]:
    """Train, and return the seconds and whether training converged."""
    begun = time.perf_counter()
    report = loop.fit(aligner, examples)
    if report.interrupted:  # a half-trained system must not be compared
        raise KeyboardInterrupt
    return time.perf_counter() - begun, report.converged


def _reloaded(aligner: Aligner, make: Callable[[], Aligner]) -> Aligner:
    """The aligner as if saved and loaded: with its weights, and without caches of the sentences it has seen."""
    fresh = make()
    assert isinstance(aligner, Trainable) and isinstance(fresh, Trainable)
    fresh.restore(aligner.state())
    return fresh


def _align(
    aligner: Aligner, examples: Sequence[Example], symmetrizers: Sequence[str]
) -> tuple[loop.Predictions, float]:
    """Return alignments by symmetrizer, and the seconds that those of the aligner's own symmetrizer took.

    They are of links without confidences, after a first pair has loaded the resources.
    """
    model, own = Model(aligner), loop.output_name(aligner)
    pairs = [e.pair for e in examples]
    model.align(pairs[:1], confidence=False)
    begun = time.perf_counter()
    found = model.align(pairs, confidence=False)
    seconds = time.perf_counter() - begun
    wanted = symmetrizers if isinstance(aligner, Directional) and symmetrizers else (own,)
    if set(wanted) <= {own}:
        return {own: found}, seconds
    every = loop.predictions(aligner, examples)
    return {name: found if name == own else every[name] for name in wanted}, seconds
