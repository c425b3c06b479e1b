"""What an aligner is. Every system of the literature stands behind this protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from ..types import Alignment, Example, SentencePair


@dataclass(frozen=True)
class Step:
    """One step of a training run, for whoever watches it. `aligner` is the aligner as it stands."""

    part: str  # "forward", "backward", ...
    iteration: int
    loss: float
    gradient_norm: float
    aligner: Aligner = field(repr=False)


Watcher = Callable[[Step], None]


@runtime_checkable
class Aligner(Protocol):
    """`requires`: the annotation layers that it reads."""

    @property
    def requires(self) -> tuple[str, ...]: ...

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]: ...


@runtime_checkable
class Trainable(Aligner, Protocol):
    """`fit` starts from what the aligner has learnt so far, so training goes on where it was left."""

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport: ...

    def state(self) -> Mapping[str, np.ndarray | list[str]]:
        """What it has learnt, as named arrays and lists of names; `restore` takes it back."""
        ...

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None: ...


@dataclass(frozen=True)
class TrainingReport:
    """How training ended, part by part."""

    loss: Mapping[str, float]
    iterations: Mapping[str, int]
    converged: bool
    interrupted: bool
    dropped_links: int
    total_links: int
    notes: tuple[str, ...] = ()
