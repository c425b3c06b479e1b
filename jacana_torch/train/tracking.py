"""Where the figures of a training run go: TensorBoard event files, or nowhere. Knows nothing of alignment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


class Tracker:
    """Takes figures and keeps none: what a run without TensorBoard writes to."""

    def scalars(self, values: Mapping[str, float], step: int) -> None: ...

    def histogram(self, name: str, values: np.ndarray, step: int) -> None: ...

    def text(self, name: str, markdown: str, step: int) -> None: ...

    def outcome(self, settings: Mapping[str, Any], scores: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class TensorBoard(Tracker):
    """Event files under `directory`; view them with `tensorboard --logdir runs`."""

    def __init__(self, directory: str | Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(directory))

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def histogram(self, name: str, values: np.ndarray, step: int) -> None:
        if len(values):
            self._writer.add_histogram(name, values, step)

    def text(self, name: str, markdown: str, step: int) -> None:
        self._writer.add_text(name, markdown, step)

    def outcome(self, settings: Mapping[str, Any], scores: Mapping[str, float]) -> None:
        """Hyperparameters and what came of them, so that a sweep can be compared in the HParams tab."""
        plain = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in settings.items()}
        self._writer.add_hparams(plain, {f"outcome/{k}": float(v) for k, v in scores.items()}, run_name=".")

    def close(self) -> None:
        self._writer.close()
