"""What only training needs of aligners: its protocols, its report, and where it keeps its progress.

`aligners.base` has the other protocols, and gives these too. Aligning does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from ..errors import ConfigError
from ..types import Alignment, Example, SentencePair
from ..util import ranks
from .base import Aligner, State, Trainable

Arrays = Mapping[str, np.ndarray]
PreparedPairs = TypeVar("PreparedPairs")


@dataclass(frozen=True)
class Step:
    """One step of a training run, as reported to a `Watcher`. `aligner` holds the weights of this moment."""

    part: str  # "forward", "backward", ...
    iteration: int
    loss: float
    gradient_norm: float
    aligner: Trainable = field(repr=False)


Watcher = Callable[[Step], None]


class Checkpoint(Protocol):
    """Where a training keeps its progress, phase by phase, so that a killed one goes on where it was.

    A phase is a part of a training that is done once, such as a direction or a fold. It has phases of its own.
    """

    def phase(self, name: str) -> Checkpoint:
        """The checkpoint of a part of this phase; the parts of a phase have different names."""
        ...

    def kept(self) -> Arrays | None:
        """The state that the interrupted training of this phase kept last; None to begin at the beginning."""
        ...

    def due(self) -> bool:
        """Return whether `keep` would write now. Ask before you copy a state that the next step overwrites."""
        ...

    def keep(self, state: Callable[[], Arrays]) -> None:
        """Write this state if it is time to, or later if the training is interrupted before the next call."""
        ...

    def finished(self) -> tuple[State, TrainingReport] | None:
        """What the phase ended with, if the interrupted training ended it."""
        ...

    def finish(self, state: State, report: TrainingReport) -> None:
        """Write what the phase ended with, in place of all that it and its parts kept."""
        ...


class Unkept:
    """The checkpoint of a training that keeps nothing."""

    def phase(self, name: str) -> Unkept:
        return self

    def kept(self) -> None:
        return None

    def due(self) -> bool:
        return False

    def keep(self, state: Callable[[], Arrays]) -> None:
        pass

    def finished(self) -> None:
        return None

    def finish(self, state: State, report: TrainingReport) -> None:
        pass


UNKEPT = Unkept()


@runtime_checkable
class TrainingOptional(Trainable, Protocol):
    """Learns, and declares whether it needs to. Without this protocol, a `Trainable` aligner needs training."""

    @property
    def needs_training(self) -> bool: ...


@runtime_checkable
class FineTunable(Trainable, Protocol):
    """Can start from what another model has learnt, and stay near it."""

    def start_from(self, state: State, pull: float) -> None:
        """Take another model's state as the start of the next `fit`, and of all it trains on the way.

        Linear weights are pulled towards the start's: `pull` multiplies the strength of their prior. What the
        start lacks begins as in a new model.
        """
        ...


@runtime_checkable
class Resumable(Trainable, Protocol):
    """Keeps its progress in a checkpoint while it learns. Others begin an interrupted phase anew."""

    @property
    def keeps_progress(self) -> bool: ...

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        """As `Trainable.fit`. From what the checkpoint kept, training takes the steps that it would have taken."""
        ...


@runtime_checkable
class Weighs(Trainable, Protocol):
    """Counts each training pair as much as its `weight` says. Others count every pair alike."""

    @property
    def weighs_examples(self) -> bool: ...


@runtime_checkable
class PosteriorOfCells(Aligner, Protocol):
    """Knows the posterior of every cell of a pair's grid."""

    def posteriors(self, pairs: Sequence[SentencePair]) -> list[np.ndarray] | None:
        """[M, N] probability of a link in each cell of each pair. None where the parts of this aligner lack it."""
        ...


@runtime_checkable
class Prepares(Aligner, Protocol[PreparedPairs]):
    """Aligns the same pairs again and again, as its weights change, without looking their features up again."""

    def prepared(self, pairs: Sequence[SentencePair]) -> PreparedPairs:
        """What `decode` needs of these pairs and no change of weights invalidates."""
        ...

    def decode(self, prepared: PreparedPairs) -> list[Alignment]:
        """The alignments that `align` would find for the prepared pairs, under the present weights."""
        ...


@dataclass(frozen=True)
class TrainingReport:
    """How training ended. `loss` and `iterations` are by part ("forward", "backward", ...)."""

    loss: Mapping[str, float] = field(default_factory=dict)
    iterations: Mapping[str, int] = field(default_factory=dict)
    converged: bool = True
    interrupted: bool = False
    dropped_links: int = 0
    total_links: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, other: TrainingReport) -> TrainingReport:
        """The report of two parts that were trained one after the other."""
        return TrainingReport(
            {**self.loss, **other.loss},
            {**self.iterations, **other.iterations},
            self.converged and other.converged,
            self.interrupted or other.interrupted,
            self.dropped_links + other.dropped_links,
            self.total_links + other.total_links,
            self.notes + other.notes,
        )


def fit_phase(
    aligner: Trainable,
    examples: Sequence[Example],
    dev: Sequence[Example] = (),
    watch: Watcher | None = None,
    phase: Checkpoint = UNKEPT,
) -> TrainingReport:
    """Train an aligner as a phase of a training, or take what the phase ended with in an interrupted run."""
    if (finished := phase.finished()) is not None:
        state, report = finished
        aligner.restore(state)
        return report
    if isinstance(aligner, Resumable):
        report = aligner.fit(examples, dev, watch, phase)
    else:
        report = aligner.fit(examples, dev, watch)
    if not report.interrupted:
        phase.finish(aligner.state(), report)
    return report


def learnable(examples: Sequence[Example]) -> list[Example]:
    """The examples that can be trained on: those with gold links and words on both sides."""
    found = []
    for example in examples:
        if example.gold is not None and len(example.pair.source) and len(example.pair.target):
            found.append(example)
    if not found:
        raise ConfigError("there is nothing to train on: no example has gold links and words on both sides")
    return found


def styles_of(examples: Sequence[Example]) -> list[str]:
    """The styles to tell apart in training: those of the examples of all processes, if there are several."""
    found = set(map(attrgetter("style"), examples))
    if ranks.world > 1:
        found = found.union(*ranks.gathered(found))
    found.discard(None)
    return sorted(found) if len(found) > 1 else []
