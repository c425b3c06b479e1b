"""Where the figures of a training run go: TensorBoard event files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Tracker(Protocol):
    """Takes the figures of a run; tests have trackers of their own."""

    def scalars(self, values: Mapping[str, float], step: int) -> None: ...

    def histogram(self, name: str, values: np.ndarray, step: int) -> None: ...

    def text(self, name: str, markdown: str, step: int) -> None: ...

    def image(self, name: str, pixels: np.ndarray, step: int) -> None:
        """`pixels` [height, width, 3] are bytes."""
        ...

    def precision_recall(self, name: str, outcomes: np.ndarray, probabilities: np.ndarray, step: int) -> None:
        """A precision-recall curve of [n] boolean outcomes and [n] probabilities."""
        ...


class TensorBoard:
    """A tracker that writes event files to `directory`; view them with `tensorboard --logdir runs`.

    That of a resumed run writes no step again that the directory has already.
    """

    def __init__(self, directory: str | Path, resumed: bool = False) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._last = _last_steps(Path(directory)) if resumed else {}
        self._writer: Any = SummaryWriter(str(directory))

    def _new(self, tag: str, step: int) -> bool:
        return step > self._last.get(tag, -1)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            if self._new(name, step):
                self._writer.add_scalar(name, value, step)

    def histogram(self, name: str, values: np.ndarray, step: int) -> None:
        if len(values) and self._new(name, step):
            self._writer.add_histogram(name, values, step)

    def text(self, name: str, markdown: str, step: int) -> None:
        if self._new(f"{name}/text_summary", step):
            self._writer.add_text(name, markdown, step)

    def image(self, name: str, pixels: np.ndarray, step: int) -> None:
        if self._new(name, step):
            self._writer.add_image(name, pixels, step, dataformats="HWC")

    def precision_recall(self, name: str, outcomes: np.ndarray, probabilities: np.ndarray, step: int) -> None:
        if self._new(name, step):
            self._writer.add_pr_curve(name, outcomes, probabilities, step)

    def outcome(self, settings: Mapping[str, Any], scores: Mapping[str, float], columns: bool = True) -> None:
        """Hyperparameters and final scores, by which the HParams tab compares runs.

        `columns` makes the settings the columns of the tab; those of a sweep's jobs are chosen by `write_columns`.
        """
        if not self._new("outcome/f1", 0):
            return
        plain = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in settings.items()}
        named = {f"outcome/{k}": float(v) for k, v in scores.items()}
        for summary in _hparams(plain, named)[0 if columns else 1 :]:
            self._writer.file_writer.add_summary(summary)
        for name, value in named.items():
            self._writer.add_scalar(name, value)

    def flush(self) -> None:
        """Write what waits: a checkpoint must not be ahead of its figures."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _hparams(*arguments: Any) -> Sequence[Any]:
    """Return the summaries of an experiment, of the start and of the end of a session."""
    from torch.utils.tensorboard import summary

    made: Sequence[Any] = summary.hparams(*arguments)  # type: ignore[no-untyped-call]
    return made


def write_columns(directory: Path, values: Mapping[str, Sequence[Any]]) -> None:
    """Make these settings, with their values, the columns of the HParams tab for the runs below a directory."""
    from torch.utils.tensorboard import SummaryWriter

    plain, discrete = {}, {}
    for name, own in values.items():
        own = own if len({type(value) for value in own}) == 1 else list(map(str, own))
        plain[name], discrete[name] = own[0], sorted(set(own))
    columns = _hparams(plain, dict.fromkeys(("outcome/f1", "outcome/exact"), 0.0), discrete)[0]
    for old in directory.glob("events.out.tfevents.*"):  # of this sweep before it was resumed
        old.unlink()
    writer: Any = SummaryWriter(str(directory))
    writer.file_writer.add_summary(columns)
    writer.close()


def _last_steps(directory: Path) -> dict[str, int]:
    """The last step of each tag in the event files of a directory; that of a killed run may be cut off."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    last: dict[str, int] = {}
    for path in sorted(directory.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                last[value.tag] = max(event.step, last.get(value.tag, -1))
    return last
