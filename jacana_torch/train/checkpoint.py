"""The checkpoint of a training run: files from which a killed run goes on where it was.

Each phase of the training has one file, `PHASE.safetensors`, in the folder `checkpoint` of the run. It holds the
state that the phase kept last, or what the phase ended with. Files are written whole or not at all, and hold
arrays and JSON.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..aligners.base import Arrays, State, TrainingReport
from ..errors import ConfigError, JacanaError
from ..resources.unfinished import put_in_place, sweep, try_lock, unfinished

log = logging.getLogger(__name__)

FOLDER, ENDING = "checkpoint", ".safetensors"
_REPORT = "report"  # the metadata key of a phase that has ended


@dataclass
class Files:
    """The files of a checkpoint, one for each phase.

    `seconds` is the time between two writings of a state; `before` is called before each. `waiting` is the phase
    that has a state to be written, and the function that makes it.
    """

    folder: Path
    seconds: float
    before: Callable[[], None] = lambda: None
    written: float = field(default_factory=time.monotonic)
    waiting: tuple[Phase, Callable[[], Arrays]] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = None
        if os.name == "posix":
            self._lock = os.open(self.folder, os.O_RDONLY)
            if try_lock(self._lock) is False:
                os.close(self._lock)
                raise ConfigError(f"{self.folder.parent}: another process is training this run")
        sweep(self.folder)

    def write(self, name: str, arrays: Arrays, texts: Mapping[str, str]) -> None:
        """Write the file of a phase."""
        from safetensors.numpy import save_file

        self.before()
        ready = {key: np.asarray(array, order="C") for key, array in arrays.items()}
        with unfinished(self.folder) as part:
            save_file(ready, part, dict(texts))
            put_in_place(part, self.folder / f"{name}{ENDING}")
        self.written = time.monotonic()

    def flush(self) -> None:
        """Write the state that waits."""
        if self.waiting is not None:
            (phase, make), self.waiting = self.waiting, None
            self.write(phase.name, make(), {})

    def close(self, keep: bool) -> None:
        """Release the checkpoint: `keep` what it holds, or remove it."""
        if keep:
            self.flush()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


@dataclass
class Phase:
    """A phase of a training, whose progress is in a file: a `Checkpoint` of aligners."""

    files: Files
    name: str

    def phase(self, name: str) -> Phase:
        return Phase(self.files, f"{self.name}.{name}")

    def kept(self) -> Arrays | None:
        found = self._read()
        if found is None or found[1] is not None:
            return None
        log.info("%s goes on from its checkpoint", self.name)
        return {key: value for key, value in found[0].items() if isinstance(value, np.ndarray)}

    def due(self) -> bool:
        return time.monotonic() - self.files.written >= self.files.seconds

    def keep(self, state: Callable[[], Arrays]) -> None:
        waiting = self.files.waiting
        if waiting is not None and waiting[0] is not self and waiting[0].name != self.name:
            self.files.flush()  # the last state of a phase before this one
        self.files.waiting = self, state
        if self.due():
            self.files.flush()

    def finished(self) -> tuple[State, TrainingReport] | None:
        found = self._read()
        if found is None or found[1] is None:
            return None
        log.info("%s is done already", self.name)
        return found[0], TrainingReport(**{**found[1], "notes": tuple(found[1]["notes"])})

    def finish(self, state: State, report: TrainingReport) -> None:
        arrays, texts = {}, {_REPORT: json.dumps(asdict(report))}
        for key, value in state.items():
            if isinstance(value, np.ndarray):
                arrays[key] = value
            else:
                texts[f"list:{key}"] = json.dumps(value)
        self.files.waiting = None
        self.files.write(self.name, arrays, texts)
        for part in self.files.folder.glob(f"{self.name}.*{ENDING}"):
            if part.name != f"{self.name}{ENDING}":
                part.unlink()

    def _read(self) -> tuple[State, dict[str, Any] | None] | None:
        """Read the file of this phase: arrays and lists, and the report if the phase has ended."""
        from safetensors import SafetensorError, safe_open

        path = self.files.folder / f"{self.name}{ENDING}"
        if not path.exists():
            return None
        state: dict[str, np.ndarray | list[str]] = {}
        try:
            with safe_open(path, framework="numpy") as file:
                for key in file.keys():
                    state[key] = file.get_tensor(key)
                texts = file.metadata() or {}
            for key, text in texts.items():
                if key.startswith("list:"):
                    state[key.removeprefix("list:")] = json.loads(text)
            return state, json.loads(texts[_REPORT]) if _REPORT in texts else None
        except (SafetensorError, OSError, ValueError, RecursionError) as error:
            raise JacanaError(
                f"{path}: cannot be read ({error}): remove this file, and its phase begins anew"
            ) from None
