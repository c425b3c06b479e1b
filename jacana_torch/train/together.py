"""Train one model by several processes, which `torchrun` starts.

Rank 0 does what a process by itself does. The others take its settings, read the same pairs, and take the same
steps of the same trainings, each on its share of the pairs; they write nothing.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from ..aligners.base import UNKEPT, Aligner, Arrays, Checkpoint, State, Trainable, TrainingReport
from ..errors import ConfigError
from ..util import conf, ranks
from . import loop
from .data import annotated

if TYPE_CHECKING:
    from .run import Run

log = logging.getLogger(__name__)


@runtime_checkable
class SplitsPairs(Trainable, Protocol):
    """Is trained by several processes, each on its share of the pairs, to the weights that one process finds."""

    @property
    def splits_pairs(self) -> bool: ...


@dataclass
class Shared:
    """A checkpoint of which all processes know what rank 0 kept. Only rank 0 has an `own` one that keeps."""

    own: Checkpoint

    def phase(self, name: str) -> Shared:
        return Shared(self.own.phase(name))

    def kept(self) -> Arrays | None:
        return ranks.same(self.own.kept())

    def due(self) -> bool:
        return self.own.due()

    def keep(self, state: Callable[[], Arrays]) -> None:
        self.own.keep(state)

    def finished(self) -> tuple[State, TrainingReport] | None:
        return ranks.same(self.own.finished())

    def finish(self, state: State, report: TrainingReport) -> None:
        self.own.finish(state, report)


def lead(run: Run) -> None:
    """Have the other processes begin the training of a run."""
    check(run.model.aligner)
    log.info("%d processes train together", ranks.world)
    ranks.same((dict(run.cfg), run.directory, run.overrides, os.environ.get(conf.VARIABLE, "")))


def check(aligner: Aligner) -> None:
    """Raise ConfigError if the aligner's training cannot be split over processes."""
    if isinstance(aligner, Trainable) and not (isinstance(aligner, SplitsPairs) and aligner.splits_pairs):
        raise ConfigError(
            f"{type(aligner).__name__} of these settings cannot be trained by {ranks.world} processes, only "
            "aligner=crf, neural and mixed can: train without torchrun"
        )


def follow() -> None:
    """Train what rank 0 trains, until it has ended."""
    logging.disable(logging.ERROR)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 decides when to stop
    while (told := ranks.same(None)) is not None:
        _train(*told)


def _train(cfg: dict[str, object], directory: Path, overrides: list[str], own_conf: str) -> None:
    from .cross_validation import cross_validate
    from .run import Run

    os.environ[conf.VARIABLE] = own_conf
    run = Run(cfg, directory, overrides)
    torch.set_num_threads(max(1, run.cfg["trainer"]["threads"]))
    model, phase = run.model, Shared(UNKEPT)
    data = annotated(model, run.load(bool(model.requires)), run.sidecar)
    if run.cfg["cv"]:
        cv, seed, links = run.cfg["cv"], run.cfg["seed"], run.cfg["links"]
        each = _Unmeasured() if run.cfg["logger"]["tensorboard"] else None  # as rank 0, which trains for it again
        cross_validate(run.untrained, data.train, cv, seed, links, each, phase, run.augment)
    else:
        loop.fit(model.aligner, run.augment(data.train), data.dev, None, phase)


class _Unmeasured:
    """Stands for rank 0's watcher of folds."""

    def measured(self, *_: Any) -> Arrays:
        return {}

    def take(self, figures: Arrays) -> None:
        pass
