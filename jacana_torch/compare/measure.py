"""One system on one corpus: its config and the examples in; counts, and how long it all took, out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..aligners.base import Aligner, Directional, Trainable
from ..evaluate import count
from ..model import persist
from ..model.model import Model
from ..train import loop as experiment
from ..types import Alignment, Example
from .rows import Result

log = logging.getLogger(__name__)

# How a system that learns is trained, as `train` names it, and as the table does.
MODES = {"same": "the same pairs", "dev": "other pairs", "cv": "{cv}-fold cv"}


@dataclass(frozen=True)
class Entry:
    """A system to compare: the whole config of its training run, or where it was saved."""

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
    symmetrizers: tuple[str, ...] = ()  # none: each one's own


def learns(aligner: Aligner, entry: Entry) -> bool:
    return isinstance(aligner, Trainable) and entry.saved is None


def measure(
    make: Callable[[], Aligner], learner: bool, train: Sequence[Example], scored: Sequence[Example], how: Protocol
) -> Result:
    """Train on `train`, or on the other folds of it, and score on `scored`, which for folds is `train`."""
    if learner and how.mode == "cv":
        splits = [
            ([scored[i] for i in rest], part.tolist())
            for rest, part in experiment.folds(len(scored), how.cv or 0, how.seed)
        ]
    else:
        splits = [(list(train), list(range(len(scored))))]
    joined: dict[str, list[Alignment | None]] = {}
    train_seconds = align_seconds = 0.0
    converged = True
    for number, (examples, places) in enumerate(splits, start=1):
        aligner = make()
        if learner:
            seconds, done = _fitted(aligner, examples)
            train_seconds, converged = train_seconds + seconds, converged and done
            aligner = _as_loaded(aligner, make)
        found, seconds = _aligned(aligner, [scored[i] for i in places], how.symmetrizers)
        align_seconds += seconds
        for name, alignments in found.items():
            slots = joined.setdefault(name, [None] * len(scored))
            for place, alignment in zip(places, alignments, strict=True):
                slots[place] = alignment
        if len(splits) > 1:
            log.info("fold %d of %d is done", number, len(splits))
    gold = [e.gold for e in scored if e.gold is not None]
    counts = {name: count(gold, alignments, how.links) for name, alignments in joined.items()}  # type: ignore[arg-type]
    return Result(counts, align_seconds, train_seconds / len(splits) if learner else None, converged)


def _fitted(aligner: Aligner, examples: Sequence[Example]) -> tuple[float, bool]:
    """Seconds, and whether training came to its end."""
    begun = time.perf_counter()
    report = experiment.fit(aligner, examples)
    if report.interrupted:  # what is half trained is not compared
        raise KeyboardInterrupt
    return time.perf_counter() - begun, report.converged


def _as_loaded(aligner: Aligner, make: Callable[[], Aligner]) -> Aligner:
    """The aligner as a saved model would be: it remembers what it learnt, and no sentence that it saw."""
    assert isinstance(aligner, Trainable)
    fresh = make()
    assert isinstance(fresh, Trainable)
    fresh.restore(aligner.state())
    return fresh


def _aligned(
    aligner: Aligner, examples: Sequence[Example], symmetrizers: Sequence[str]
) -> tuple[experiment.Predictions, float]:
    """Alignments by output, and the seconds that its own way takes: links alone, resources loaded before."""
    model, own = Model(aligner), experiment.output_name(aligner)
    pairs = [e.pair for e in examples]
    model.align(pairs[:1], confidence=False)
    begun = time.perf_counter()
    found = model.align(pairs, confidence=False)
    seconds = time.perf_counter() - begun
    wanted = symmetrizers if isinstance(aligner, Directional) and symmetrizers else (own,)
    if set(wanted) <= {own}:
        return {own: found}, seconds
    every = experiment.predictions(aligner, examples)
    return {name: found if name == own else every[name] for name in wanted}, seconds


def description(entry: Entry, model_config: Mapping[str, Any]) -> Any:
    """What the result of a system depends on, besides the pairs: its config, or the files that hold it."""
    if entry.saved is None:
        return {"model": model_config, "annotate": entry.config["annotate"]}
    directory = persist.locate(entry.saved)
    return {"saved": str(directory), "files": [stamp(path) for path in sorted(directory.iterdir())]}


def stamp(path: Any) -> list[Any]:
    """A file's name, size and time: another file of that name is noticed."""
    try:
        found = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), found.st_size, found.st_mtime_ns]
