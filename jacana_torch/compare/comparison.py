"""A whole comparison: the config of all, one of each system, and a folder in; a table out.

A system that cannot run is a row that says why. What was measured stays in the folder, for whoever comes back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import ConfigError, JacanaError
from ..model import persist
from ..model.model import Model
from ..symmetrize import functions, name_of, symmetrizer
from ..train import data as dataset
from ..train.data import annotated
from ..train.run import Run, checked
from ..util.build import build
from ..version import __version__
from .measure import MODES, Entry, Protocol, description, learns, measure, stamp
from .rows import Result, Row, Store, rows_of
from .table import Table, machine

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
    """The table of all `entries` on the corpus of `config`; see conf/compare.yaml for what that holds.

    `after` is called with the rows so far, a system at a time. Results are kept in `directory`, or in the folder
    that the config names as `resume`, where those of an earlier comparison are found again.
    """
    if not entries:
        raise ConfigError("there is nothing to compare: set aligners=[NAME,...]")
    run = Run(checked({**config, "cv": None, "resume": None}, families), directory, [])
    torch.set_num_threads(max(1, run.cfg["trainer"]["threads"]))
    bench = _Bench(run, Store(_kept(config, directory) / "rows"), families)
    protocols = _protocols(config, bool(bench.base.dev))
    rows: list[Row] = []
    for entry in entries:
        for protocol in protocols:
            found, learner = bench.rows(entry, protocol)
            rows += found
            after(rows)
            if not learner:
                break
    if all(row.counts is None for row in rows):
        raise ConfigError("; ".join(f"{row.label} cannot run: {row.failure}" for row in rows))
    table = Table.of(rows, config["rounds"], config["seed"], list(run.cfg["data"]["train"]), machine())
    persist.write_json(directory / REPORT, table.to_dict())
    return table


def _kept(config: Mapping[str, Any], directory: Path) -> Path:
    if not config["resume"]:
        return directory
    folder = Path(str(config["resume"])).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"resume={folder}: there is no such folder")
    return folder


def _protocols(config: Mapping[str, Any], dev: bool) -> list[Protocol]:
    """One for each way of training that is asked for. All score the same pairs, or they could not be compared."""
    cv, asked = config["cv"], config["train"]
    if asked is None:
        asked = "cv" if cv else "dev" if dev else "same"
    modes = list(dict.fromkeys([asked] if isinstance(asked, str) else asked))
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
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
    joins = _symmetrizers(config["symmetrizers"])
    return [Protocol(mode, cv if mode == "cv" else None, config["seed"], config["links"], joins) for mode in modes]


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
    """The corpus, annotated once for all systems that read the same layers, and the results so far."""

    run: Run
    store: Store
    families: Sequence[str]
    base: dataset.Dataset = field(init=False)
    _ready: dict[str, dataset.Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = self.run.load()  # a mistake in the corpus is everybody's, and told at once
        log.info("%d pairs to train on, %d to score on", len(self.base.train), len(self.base.dev))

    def rows(self, entry: Entry, protocol: Protocol) -> tuple[list[Row], bool]:
        """The rows of one system, and whether it is one that learns."""
        learner, trained = False, "?"
        try:
            run = Run(checked({**entry.config, "cv": None, "resume": None}, self.families), self.run.directory, [])
            self._same_pairs(entry, run)
            model = persist.load(entry.saved) if entry.saved else run.model
            learner = learns(model.aligner, entry)
            trained = _training(entry, learner, protocol)
            log.info("%s (%s)", entry.name, trained)
            found = rows_of(entry.name, trained, self._result(entry, run, model, learner, protocol))
        except JacanaError as error:
            found = [Row(entry.name, trained, failure=str(error))]
        except Exception as error:  # a fault of one system is no reason to lose the others
            log.error("%s failed", entry.name, exc_info=True)
            found = [Row(entry.name, trained, failure=f"{type(error).__name__}: {error}")]
        for row in found:
            told = f"F1 {100 * row.score.f1:.2f}" if row.score else f"cannot run: {row.failure}"
            log.info("%s: %s", row.label, told)
        return found, learner

    def _same_pairs(self, entry: Entry, run: Run) -> None:
        for name in ("data", "links"):
            if run.cfg[name] != self.run.cfg[name]:
                raise ConfigError(f"{entry.name} changes {name}, and systems are compared on the same pairs")

    def _result(self, entry: Entry, run: Run, model: Model, learner: bool, protocol: Protocol) -> Result:
        key = self._key(entry, run, model, learner, protocol)
        result = self.store.get(key)
        if result is not None:
            log.info("%s: measured before", entry.name)
            return result
        if run.cfg["annotate"] and not run.sidecar:
            model.check()
        data = self._annotated(model, run, entry.saved is not None)
        scored = data.dev if protocol.mode == "dev" else data.train
        aligner = run.model_config["aligner"]
        make = (lambda: model.aligner) if entry.saved else (lambda: build(aligner))
        result = measure(make, learner, data.train, scored, protocol)
        self.store.put(key, result)
        return result

    def _annotated(self, model: Model, run: Run, saved: bool) -> dataset.Dataset:
        same = run.cfg["annotate"] == self.run.cfg["annotate"]
        base = self.base if same else run.load(bool(model.requires))
        if saved:  # it has an annotator of its own
            return annotated(model, base, run.sidecar)
        key = json.dumps([run.cfg["annotate"], model.requires])
        if key not in self._ready:
            self._ready[key] = annotated(model, base, run.sidecar)
        return self._ready[key]

    def _key(self, entry: Entry, run: Run, model: Model, learner: bool, protocol: Protocol) -> dict[str, Any]:
        data = run.cfg["data"]
        names = [*data["train"], *data["dev"], *data["drop_ids"], *data["sidecar"]]
        root = Path(data["root"]).expanduser()
        scored = "dev" if protocol.mode == "dev" else "same"
        return {
            "version": __version__,
            "system": description(entry, run.model_config),
            "resources": list(model.resources),  # which may depend on what this machine has
            "data": data,
            "files": [stamp(root / name) for name in names if name],
            "protocol": vars(protocol if learner else replace(protocol, mode=scored, cv=None, seed=0)),
        }


def _training(entry: Entry, learner: bool, protocol: Protocol) -> str:
    if entry.saved:
        return "saved model"
    return MODES[protocol.mode].format(cv=protocol.cv) if learner else "-"
