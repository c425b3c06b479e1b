"""The checkpoint of a training run: files from which a killed run goes on where it was.

Each phase of the training has one file, `PHASE.safetensors`, in the folder `checkpoint` of the run. It holds the
state that the phase kept last, or what the phase ended with. `run.json`, beside that folder, says what the run
trains on and how. Files are written whole or not at all, and hold arrays and JSON.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..aligners.base import Arrays, State, TrainingReport
from ..errors import ConfigError, JacanaError
from ..model.saving import CONFIG, write_json
from ..resources.store import sweep, try_lock, write_whole
from ..types import Example
from ..version import __version__
from .data import Dataset

log = logging.getLogger(__name__)

RECORD, FOLDER, ENDING = "run.json", "checkpoint", ".safetensors"
# Settings that do not change what is trained. The pairs themselves are compared, wherever they are.
_FREE = (
    "data",
    "logger",
    "name",
    "description",
    "output",
    "overwrite",
    "resume",
    "workers",
    "trainer.checkpoint_seconds",
)
_ENDING = 2.0  # seconds in which the workers of a killed run notice that it is gone
_SHOWN = 3  # differences in a message
_REPORT, _LISTS = "report", "lists"  # metadata of a phase that has ended


@dataclass
class Files:
    """The files of a checkpoint, one for each phase.

    `seconds` is the time between two writings of a state; `before`, if set, is called before each.
    `waiting` is the phase that has a state to be written, and the function that makes it.
    """

    folder: Path
    seconds: float
    before: Callable[[], None] | None = None
    written: float = field(default_factory=time.monotonic)
    waiting: tuple[Phase, Callable[[], Arrays]] | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = None
        if os.name == "posix":
            self._lock = os.open(self.folder, os.O_RDONLY)
            ends = time.monotonic() + _ENDING
            while (locked := try_lock(self._lock)) is False and time.monotonic() < ends:
                time.sleep(0.05)
            if locked is False:
                os.close(self._lock)
                raise ConfigError(f"{self.folder.parent}: another process is training this run")
        sweep(self.folder)

    def write(self, name: str, arrays: Arrays, texts: Mapping[str, str]) -> None:
        """Write the file of a phase. Training goes on if it cannot be written."""
        from safetensors import SafetensorError
        from safetensors.numpy import save

        if self.before is not None:
            self.before()
        ready = {}
        for key, array in arrays.items():
            ready[key] = np.asarray(array, order="C")
        try:
            write_whole(self.folder / f"{name}{ENDING}", save(ready, dict(texts)))
        except (OSError, SafetensorError) as error:
            log.warning("the checkpoint cannot be written, and training goes on without it: %s", error)

    def flush(self) -> None:
        """Write the state that waits."""
        if self.waiting is not None:
            (phase, make), self.waiting = self.waiting, None
            self.write(phase.name, make(), {})
            self.written = time.monotonic()

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
        if waiting is not None and waiting[0].name != self.name:
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
        arrays, lists = {}, {}
        for key, value in state.items():
            if isinstance(value, np.ndarray):
                arrays[key] = value
            else:
                lists[key] = value
        texts = {
            _REPORT: json.dumps(asdict(report)),
            _LISTS: json.dumps(lists),
        }  # safetensors mixes up its entries
        waiting = self.files.waiting
        if waiting is not None and f"{waiting[0].name}.".startswith(f"{self.name}."):
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
            state.update(json.loads(texts.get(_LISTS, "{}")))
            return state, json.loads(texts[_REPORT]) if _REPORT in texts else None
        except (SafetensorError, OSError, ValueError, RecursionError) as error:
            raise JacanaError(
                f"{path}: cannot be read ({error}): remove this file, and its phase begins anew"
            ) from None


@dataclass
class Record:
    """What `run.json` says of a run: its version, settings and pairs, where its model goes, and how it ended."""

    folder: Path
    held: dict[str, Any]
    resumed: bool
    f1: float | None = None  # the score that the run ended with, if it did

    @classmethod
    def of(cls, config: Mapping[str, Any], directory: Path, output: Path) -> Record:
        """The record of a new run in `directory`, whose model goes to `output`, or that of the run to be resumed.

        Other settings than those of that run are an error. If it was killed before it wrote a record, it begins.
        """
        settings = {}
        for name, value in _flat(config):
            free = name in _FREE or name.partition(".")[0] in _FREE
            if not free or name.startswith("data.augment."):
                settings[name] = value
        held = {"version": __version__, "settings": settings, "output": str(output.resolve())}
        given = config["resume"]
        job = bool(given) and _is_job(given, directory)
        if not given or (job and not (directory / RECORD).is_file()):
            if (directory / FOLDER).is_dir():
                log.warning("%s: the checkpoint of an interrupted run is removed", directory)
            return cls(directory, held, False)
        found = cls(directory if job else _resumable(given), held, True)
        if (found.folder / RECORD).is_file():
            found.held = json.loads((found.folder / RECORD).read_text(encoding="utf-8"))
            found.f1 = found.held.get("f1")
            if found.f1 is not None and not job:
                raise _not_interrupted(given)
            found._check_settings(settings, given)
        else:
            log.warning("resume=%s: nothing was kept before the kill, so training begins", given)
        return found

    def _check_settings(self, settings: Mapping[str, Any], given: str) -> None:
        before = self.held["settings"]
        if self.held["version"] != __version__:
            raise ConfigError(
                f"resume={given}: version {self.held['version']} began this run, this is {__version__}: train anew"
            )
        differ = [k for k in {**before, **settings} if before.get(k) != settings.get(k)]
        if differ:
            own = [k for k in differ if not k.startswith("aligner.")]  # the aligner's often repeat the trainer's
            shown = (f"{k} is {settings.get(k)} and was {before.get(k)}" for k in (own or differ)[:_SHOWN])
            raise ConfigError(
                f"resume={given}: {'; '.join(shown)}: a run is resumed with the settings that it began with; "
                "leave these out, or train anew without resume="
            )

    def begin(self, data: Dataset, seconds: float) -> Files:
        """Open the checkpoint of the run. An error if a resumed one had other pairs."""
        pairs = {"train": _digest(data.train), "dev": _digest(data.dev)}
        for part, digest in self.held.get("pairs", pairs).items():
            if digest != pairs[part]:
                raise ConfigError(
                    f"resume={self.folder}: the pairs of data.{part} are not those that the run began with; to "
                    f"train a model further on other pairs: start={self.folder}"
                )
        if not self.resumed:
            shutil.rmtree(self.folder / FOLDER, ignore_errors=True)
        files = Files(self.folder / FOLDER, seconds)
        self.held["pairs"] = pairs
        write_json(self.folder / RECORD, self.held)
        return files

    def end(self, f1: float) -> None:
        """Write how the run ended."""
        self.f1 = self.held["f1"] = f1
        write_json(self.folder / RECORD, self.held)


def _is_job(given: str, directory: Path) -> bool:
    """Whether `resume` names the folder of a sweep, of which this run is a job."""
    folder = Path(given).expanduser().resolve()
    return folder in directory.resolve().parents and (folder / "multirun.yaml").is_file()


def _is_run(folder: Path) -> bool:
    """Whether a folder is that of a run. Hydra writes into it first; later there is a record."""
    return (folder / RECORD).is_file() or ((folder / ".hydra").is_dir() and not (folder / "model").is_dir())


def _resumable(given: str) -> Path:
    """The folder of the run that `resume` names by its own folder, that of its model or that of its checkpoint."""
    folder = Path(given).expanduser()
    if folder.name in ("model", FOLDER) and _is_run(folder.parent):
        folder = folder.parent
    if _is_run(folder):
        return folder
    from ..model.persist import locate

    if any((model / CONFIG).is_file() for model in (locate(given), folder / "model")):
        raise _not_interrupted(given)
    raise ConfigError(f"resume={given}: there is no such run; name the folder of one, as in runs/NAME/DATE")


def _not_interrupted(given: str) -> ConfigError:
    return ConfigError(
        f"resume={given}: its training was not interrupted, so there is nothing to resume; to train it further, "
        f"also on other pairs: start={given}"
    )


def _flat(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a config by their dotted names."""
    if isinstance(config, Mapping) and (config or not path):
        for key, value in config.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, str(config) if isinstance(config, float) and not math.isfinite(config) else config


def _digest(examples: Iterable[Example]) -> str:
    """A checksum of examples: their words and gold links, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for example in examples:
        pair, gold = example.pair, example.gold
        links = [] if gold is None else [sorted(gold.sure), sorted(gold.possible)]
        digest.update(json.dumps([pair.source.tokens, pair.target.tokens, links]).encode())
    return digest.hexdigest()
