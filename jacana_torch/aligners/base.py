"""The protocols of aligners. Every system, ours or yours, is used through these and nothing else.

`Aligner` is all that a system must be. The others are abilities that it may have besides, each checked by
`isinstance`. They are structural: a class has an ability when it has the members, and need not inherit anything.

| protocol            | ability                                                                      |
|---------------------|------------------------------------------------------------------------------|
| `Trainable`         | learns from examples, and its state can be saved and restored                |
| `TrainingOptional`  | learns, but is of use untrained                                              |
| `FineTunable`       | learns from examples what differs from a trained model                       |
| `Resumable`         | keeps its progress while it learns, so that it can go on after a kill        |
| `Weighs`            | counts each training pair by its weight                                      |
| `OneWay`            | aligns in one direction, which it is given                                   |
| `Directional`       | joins two directions by a symmetrizer that the caller may replace            |
| `LinksOnly`         | is faster where nobody asks for confidences                                  |
| `PosteriorOfCells`  | knows the probability of every possible link, not only of those that it chose |
| `Prepares`          | separates what depends on weights from what does not                         |
| `Explains`          | can say why words are linked                                                 |
| `HasColumns`        | has weights for columns of feature families                                  |
| `ReadsNatively`     | has weights that foreign native code reads                                   |

Aligners that read linguistic data also satisfy `types.ReadsResources`. `training` has the protocols that only
training looks for; they can be imported from here too. `styles` has that of aligners of several conventions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ..errors import ConfigError, JacanaError
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair

if TYPE_CHECKING:
    from ..explain import Explanation
    from .training import UNKEPT as UNKEPT
    from .training import Arrays as Arrays
    from .training import Checkpoint as Checkpoint
    from .training import FineTunable as FineTunable
    from .training import PosteriorOfCells as PosteriorOfCells
    from .training import Prepares as Prepares
    from .training import Resumable as Resumable
    from .training import Step as Step
    from .training import TrainingOptional as TrainingOptional
    from .training import TrainingReport as TrainingReport
    from .training import Watcher as Watcher
    from .training import Weighs as Weighs
    from .training import fit_phase as fit_phase
    from .training import learnable as learnable
    from .training import styles_of as styles_of

State = Mapping[str, "np.ndarray | list[str]"]
LARGEST = 1e12  # of learnt numbers; weights are below 100


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Give what only training needs: aligning does not import it."""
        if name.startswith("__"):  # Python asks for some of these
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import training

        return getattr(training, name)


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
