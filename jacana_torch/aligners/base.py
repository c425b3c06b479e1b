"""The protocols of aligners. Every system, ours or yours, is used through these and nothing else.

`Aligner` is all that a system must be. The others are abilities that it may have besides, each checked by
`isinstance`. They are structural: a class has an ability when it has the members, and need not inherit anything.

| protocol            | ability                                                                      |
|---------------------|------------------------------------------------------------------------------|
| `Trainable`         | learns from examples, and its state can be saved and restored                |
| `TrainingOptional`  | learns, but is of use untrained                                              |
| `FineTunable`       | learns from examples what differs from a trained model                       |
| `Resumable`         | keeps its progress while it learns, so that it can go on after a kill        |
| `OneWay`            | aligns in one direction, and is told which                                   |
| `Directional`       | joins two directions by a symmetrizer that the caller may replace            |
| `LinksOnly`         | is faster where nobody asks for confidences                                  |
| `PosteriorOfCells`  | knows the probability of every possible link, not only of those that it chose |
| `Prepares`          | separates what depends on weights from what does not                         |
| `Explains`          | can say why words are linked                                                 |
| `HasColumns`        | has weights for columns of feature families                                  |
| `ReadsNatively`     | has weights that foreign native code reads                                   |

Aligners that read linguistic data also satisfy `types.ReadsResources`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..errors import ConfigError, JacanaError
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair

if TYPE_CHECKING:
    from ..explain import Explanation

State = Mapping[str, "np.ndarray | list[str]"]
Arrays = Mapping[str, np.ndarray]
PreparedPairs = TypeVar("PreparedPairs")
LARGEST = 1e12  # of learnt numbers; weights are below 100


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
        """Whether `keep` would write now. Ask if states cannot be told apart from later ones without a copy."""
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
class Aligner(Protocol):
    """Links the words of sentence pairs."""

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the annotation layers that it reads (`types.PROVIDERS` lists them)."""
        ...

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """One alignment per pair, in order. The result of a pair does not depend on the other pairs."""
        ...


@runtime_checkable
class Trainable(Aligner, Protocol):
    """Learns from examples."""

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        """Train, starting from the present weights, so that a later call continues an earlier one.

        Ctrl-C keeps the weights reached so far and sets `interrupted` in the report. Before anything is learnt,
        KeyboardInterrupt is raised.
        """
        ...

    def state(self) -> State:
        """What it has learnt, as named arrays and lists of strings."""
        ...

    def restore(self, state: State) -> None:
        """Take back what `state` gave, all of it: afterwards `state` has the same names. ConfigError if it does
        not fit the settings."""
        ...


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
class OneWay(Trainable, Protocol):
    """Aligns in one direction. `Bidirectional` sets `part`, "forward" or "backward", for reports and messages."""

    part: str


@runtime_checkable
class Directional(Aligner, Protocol):
    """Aligns in both directions and joins them by a symmetrizer."""

    @property
    def symmetrizer_name(self) -> str:
        """Name of the symmetrizer that `align` uses by default, with underscores."""
        ...

    def directions(
        self, pairs: Sequence[SentencePair], confidence: bool = True
    ) -> tuple[list[Alignment], list[Alignment]]:
        """The forward and the backward alignment of each pair, both as source to target."""
        ...

    def align(
        self, pairs: Sequence[SentencePair], symmetrize: str | None = None, confidence: bool = True
    ) -> list[Alignment]:
        """As `Aligner.align`. `symmetrize` names another symmetrizer; without `confidence`, alignments may lack
        confidences and scores, which is faster."""
        ...


@runtime_checkable
class LinksOnly(Aligner, Protocol):
    """Has a faster way to the same links where nobody asks for confidences."""

    def align_links(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """The links that `align` finds, without confidences and scores."""
        ...


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


@runtime_checkable
class Explains(Protocol):
    """Can say why words are linked. An instance that cannot, although its class can, raises `CannotExplain`."""

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | str | None = None
    ) -> Iterator[Explanation]:
        """One explanation per pair, in order, of the alignment that `align` finds."""
        ...


@runtime_checkable
class HasColumns(Protocol):
    """Has weights for columns of feature families."""

    def check_columns(self) -> None:
        """Raise ConfigError unless the columns with weights are those of the families that the settings name."""
        ...


@runtime_checkable
class ReadsNatively(Protocol):
    """May have weights that foreign native code reads. Damaged ones can crash it, so loading them needs trust."""

    @property
    def reads_natively(self) -> bool: ...


class CannotExplain(JacanaError):
    """The aligner has no reasons for its links; the message says what it lacks."""


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


def words_in(state: State, name: str) -> list[str]:
    """A list of words of a state; ConfigError if it is none."""
    value = state[name]
    if isinstance(value, np.ndarray) or not set(map(type, value)) <= {str}:
        raise ConfigError(f"{name!r} should be a list of words, and is a {type(value).__name__}")
    return list(value)


def numbers_in(state: State, name: str, *shape: int | None, least: float = -LARGEST) -> np.ndarray:
    """An array of a state in double precision; ConfigError if it has another shape or a number that no model has.

    `shape` has None for a length that may be any.
    """
    value = np.asarray(state[name])
    if value.dtype.kind not in "fiu":
        raise ConfigError(f"{name!r} should be an array of numbers")
    fits = len(shape) == value.ndim
    for expected, length in zip(shape, value.shape, strict=False):
        fits = fits and expected in (None, length)
    if not fits:
        wanted = " x ".join("any" if n is None else str(n) for n in shape)
        raise ConfigError(f"{name!r} has the shape {value.shape}, and should have {wanted}")
    value = value.astype(np.float64)
    wrong = np.flatnonzero(~((value >= least) & (value <= LARGEST)))
    if len(wrong):
        raise ConfigError(
            f"number {wrong[0]} of {name!r} is {value.flat[wrong[0]]}: not finite, or not between {least:g} and "
            f"{LARGEST:g}"
        )
    return value


def learnable(examples: Sequence[Example]) -> list[Example]:
    """The examples that can be trained on: those with gold links and words on both sides."""
    found = []
    for example in examples:
        if example.gold is not None and len(example.pair.source) and len(example.pair.target):
            found.append(example)
    if not found:
        raise ConfigError("there is nothing to train on: no example has gold links and words on both sides")
    return found
