"""Run a comparison: every system under every protocol, with results kept so that an interruption loses none.

A system that cannot run becomes a row that says why.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..aligners.base import Trainable
from ..errors import ConfigError, JacanaError
from ..evaluate import Counts
from ..model import persist
from ..model.model import Model
from ..model.seen import warning
from ..symmetrize import functions, name_of, symmetrizer
from ..train.data import Dataset, annotated
from ..train.run import Run, check_corpora, checked
from ..train.side_by_side import workers_of
from ..util.build import build
from ..version import __version__
from .measure import MODES, Entry, Protocol, Result, measure
from .table import Row, Table, machine

log = logging.getLogger(__name__)

REPORT = "compare.json"
Progress = Callable[[Sequence[Row]], None]


def compare(
    config: Mapping[str, Any],
    entries: Sequence[Entry],
    directory: Path,
    families: Sequence[str] = (),
    after: Progress = lambda rows: None,
) -> Table:
    """Compare all `entries` on the corpus of `config`, which conf/compare.yaml describes.

    `after` is called with the rows so far, after each system. Results are kept in `directory`, or in the folder
    that the config names as `resume`; results that are there already are used again.
    """
    if not entries:
        raise ConfigError("there is nothing to compare: set aligners=[NAME,...]")
    run = Run(checked({**config, "cv": None, "resume": None, "start": None}, families), directory, [])
    torch.set_num_threads(max(1, run.cfg["trainer"]["threads"]))
    folder = directory
    if config["resume"]:
        folder = Path(str(config["resume"])).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"resume={folder}: there is no such folder")
    bench = _Bench(run, folder / "rows", families)
    protocols = _protocols(config, bool(bench.data.dev))
    rows: list[Row] = []
    for entry in entries:
        for protocol in protocols:
            found, learns = bench.rows(entry, protocol)
            rows += found
            after(rows)
            if not learns:  # every protocol would score it alike
                break
    if all(row.counts is None for row in rows):
        raise ConfigError("; ".join(f"{row.label} cannot run: {row.failure}" for row in rows))
    table = Table.of(rows, config["rounds"], config["seed"], list(run.cfg["data"]["train"]), machine())
    persist.write_json(directory / REPORT, table.to_dict())
    return table


def _protocols(config: Mapping[str, Any], dev: bool) -> list[Protocol]:
    """One protocol for each way of training that `train` names. All score the same pairs."""
    cv, asked = config["cv"], config["train"]
    if asked is None:
        asked = "cv" if cv else "dev" if dev else "same"
    modes = list(dict.fromkeys([asked] if isinstance(asked, str) else asked))
    if not modes or not set(modes) <= set(MODES):
        raise ConfigError(f"train={asked!r}: systems are trained by {', '.join(MODES)}, or by several of these")
    if "dev" in modes and (len(modes) > 1 or not dev):
        why = "nothing else scores those pairs" if dev else "data.dev is empty; train=same scores data.train"
        raise ConfigError(f"train={asked!r}: dev scores data.dev, and {why}")
    if ("cv" in modes) != bool(cv):
        raise ConfigError(f"train={asked!r} with cv={cv}: train=cv goes with cv=K, the number of folds")
    if cv is not None and (type(cv) is not int or cv < 2):
        raise ConfigError(f"cv={cv!r}: at least two folds")
    if type(config["rounds"]) is not int or config["rounds"] < 1:
        raise ConfigError(f"rounds={config['rounds']!r}: a whole number above 0")
    names = _symmetrizers(config["symmetrizers"])
    return [Protocol(mode, cv if mode == "cv" else None, config["seed"], config["links"], names) for mode in modes]


def _symmetrizers(asked: Any) -> tuple[str, ...]:
    if asked is None:
        return ()
    names = [asked] if isinstance(asked, str) else asked
    if names == ["all"]:
        return tuple(functions())
    if not isinstance(names, list):
        raise ConfigError(f"symmetrizers={asked!r}: null, all, or a list of names")
    return tuple(name_of(str(name)) for name in names if symmetrizer(str(name)))


@dataclass
class _Bench:
    """The corpus, annotated once for all systems that read the same layers, and the folder of results."""

    run: Run
    folder: Path
    families: Sequence[str]
    data: Dataset = field(init=False)
    _annotated: dict[str, Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.data = self.run.load()  # an error in the corpus concerns all systems, so it is raised at once
        log.info("%d pairs to train on, %d to score on", len(self.data.train), len(self.data.dev))

    def rows(self, entry: Entry, protocol: Protocol) -> tuple[list[Row], bool]:
        """Measure one system: its rows, and whether it was trained."""
        learns, trained = False, "?"
        try:
            run = Run(
                checked({**entry.config, "cv": None, "resume": None, "start": None}, self.families),
                self.run.directory,
                [],
            )
            for name in ("data", "links"):
                if run.cfg[name] != self.run.cfg[name]:
                    raise ConfigError(f"{entry.name} changes {name}, and systems are compared on the same pairs")
            model = persist.load(entry.saved) if entry.saved else run.model
            learns = isinstance(model.aligner, Trainable) and not entry.saved
            trained = MODES[protocol.mode].format(cv=protocol.cv) if learns else "-"
            if entry.saved:
                trained = "saved model"
            if learns:
                check_corpora(run.cfg["data"], model.aligner)
            log.info("%s (%s)", entry.name, trained)
            if entry.saved:
                self._warn_if_seen(entry.saved, protocol)
            result = self._result(entry, run, model, learns, protocol)
            found = [
                Row(
                    entry.name,
                    trained,
                    None if name == "aligned" else name,
                    counts,
                    len(counts) / max(result.align_seconds, 1e-9),
                    result.train_seconds,
                    result.converged,
                )
                for name, counts in result.counts.items()
            ]
        except JacanaError as error:
            found = [Row(entry.name, trained, failure=str(error))]
        except Exception as error:  # a bug in one system must not lose the others
            log.error("%s failed", entry.name, exc_info=True)
            found = [Row(entry.name, trained, failure=f"{type(error).__name__}: {error}")]
        for row in found:
            outcome = f"F1 {100 * row.score.f1:.2f}" if row.score else f"cannot run: {row.failure}"
            log.info("%s: %s", row.label, outcome)
        return found, learns

    def _warn_if_seen(self, saved: str, protocol: Protocol) -> None:
        scored = self.data.dev if protocol.mode == "dev" else self.data.train
        if said := warning(saved, [example.pair for example in scored]):
            log.warning("%s", said)

    def _result(self, entry: Entry, run: Run, model: Model, learns: bool, protocol: Protocol) -> Result:
        key = _key(entry, run, model, protocol if learns else replace(
            protocol, mode="dev" if protocol.mode == "dev" else "same", cv=None, seed=0))  # fmt: skip
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        path = self.folder / f"{digest[:24]}.json"
        result = _read(path)
        if result is not None:
            log.info("%s: measured before", entry.name)
            return result
        if run.cfg["annotate"] and not run.sidecar:
            model.check()
        data = self._with_layers(model, run, entry.saved is not None)
        scored = data.dev if protocol.mode == "dev" else data.train
        config = None if entry.saved else run.model_config["aligner"]
        make = partial(getattr, model, "aligner") if config is None else partial(build, config)
        result = measure(make, learns, data.train, scored, protocol, workers_of(run.cfg))
        _write(path, key, result)
        return result

    def _with_layers(self, model: Model, run: Run, saved: bool) -> Dataset:
        same = run.cfg["annotate"] == self.run.cfg["annotate"]
        data = self.data if same else run.load(bool(model.requires))
        if saved:  # a saved model has its own annotator
            return annotated(model, data, run.sidecar)
        key = json.dumps([run.cfg["annotate"], model.requires])
        if key not in self._annotated:
            self._annotated[key] = annotated(model, data, run.sidecar)
        return self._annotated[key]


def _key(entry: Entry, run: Run, model: Model, protocol: Protocol) -> dict[str, Any]:
    """Everything that a result depends on, files by their name, size and time."""
    data = run.cfg["data"]
    root = Path(data["root"]).expanduser()
    names = [*data["train"], *data["dev"], *data["drop_ids"], *data["sidecar"]]
    if entry.saved is None:
        system = {"model": run.model_config, "annotate": entry.config["annotate"]}
    else:
        directory = persist.locate(entry.saved)
        system = {"saved": str(directory), "files": [_stamp(path) for path in sorted(directory.iterdir())]}
    return {
        "version": __version__,
        "system": system,
        "resources": list(model.resources),  # some aligners read what this machine has
        "data": data,
        "files": [_stamp(root / name) for name in names if name],
        "protocol": vars(protocol),
    }


def _stamp(path: Path) -> list[Any]:
    try:
        found = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), found.st_size, found.st_mtime_ns]


def _read(path: Path) -> Result | None:
    """A result that was kept, if it is there and can be read."""
    if not path.is_file():
        return None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        tables = {name: np.array(table, dtype=np.int64) for name, table in held["counts"].items()}
        if not tables or not all(table.ndim == 2 and table.shape[1] == 3 for table in tables.values()):
            raise ValueError("no tables of counts")
        counts = {name: Counts(table, held["links"]) for name, table in tables.items()}
        return Result(counts, held["align_seconds"], held["train_seconds"], held["converged"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s: cannot be used (%s), so it is measured again", path, error)
        return None


def _write(path: Path, key: Mapping[str, Any], result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (links,) = {counts.links for counts in result.counts.values()}
    held = {
        "counts": {name: counts.table.tolist() for name, counts in result.counts.items()},
        "links": links,
        "align_seconds": result.align_seconds,
        "train_seconds": result.train_seconds,
        "converged": result.converged,
        "of": key,
    }
    persist.write_json(path, held)
