"""What an aligner is. Every system of the literature stands behind this protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from ..errors import ConfigError, JacanaError
from ..explain import Explanation
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair

State = Mapping[str, "np.ndarray | list[str]"]


@dataclass(frozen=True)
class Step:
    """One step of a training run, for whoever watches it. `aligner` is the aligner as it stands."""

    part: str  # "forward", "backward", ...
    iteration: int
    loss: float
    gradient_norm: float
    aligner: Trainable = field(repr=False)


Watcher = Callable[[Step], None]


@runtime_checkable
class Aligner(Protocol):
    """`requires`: the annotation layers that it reads. One that reads resources names them in `resources`.

    One that is faster where nobody asks for confidences takes `align(pairs, confidence=False)`.
    Where scoring the same pairs again and again should be fast, `prepared(pairs)` gives what `decode(...)` takes.
    """

    @property
    def requires(self) -> tuple[str, ...]: ...

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]: ...


@runtime_checkable
class Trainable(Aligner, Protocol):
    """`fit` starts from what the aligner has learnt so far, so training goes on where it was left.

    Ctrl-C in `fit` keeps what was learnt and is told in the report; where nothing was learnt yet it goes through.
    """

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport: ...

    def state(self) -> State:
        """What it has learnt, as named arrays and lists of names; `restore` takes it back."""
        ...

    def restore(self, state: State) -> None: ...


@runtime_checkable
class Explains(Protocol):
    """An aligner that can say why. One whose kind sometimes can raises `CannotExplain` where it cannot."""

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | str | None = None
    ) -> Iterator[Explanation]:
        """One explanation a pair, in order, of what `align` makes of it."""
        ...


class CannotExplain(JacanaError):
    """An aligner has links and no reasons; the message says what it lacks."""


@dataclass(frozen=True)
class TrainingReport:
    """How training ended, part by part."""

    loss: Mapping[str, float] = field(default_factory=dict)
    iterations: Mapping[str, int] = field(default_factory=dict)
    converged: bool = True
    interrupted: bool = False
    dropped_links: int = 0
    total_links: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, other: TrainingReport) -> TrainingReport:
        """Two parts, one trained after the other."""
        return TrainingReport(
            {**self.loss, **other.loss},
            {**self.iterations, **other.iterations},
            self.converged and other.converged,
            self.interrupted or other.interrupted,
            self.dropped_links + other.dropped_links,
            self.total_links + other.total_links,
            self.notes + other.notes,
        )


def learnable(examples: Sequence[Example]) -> list[Example]:
    """The examples that teach something: those with gold links and words on both sides."""
    found = [e for e in examples if e.gold is not None and len(e.pair.source) and len(e.pair.target)]
    if not found:
        raise ConfigError("there is nothing to train on: no example has gold links and words on both sides")
    return found
