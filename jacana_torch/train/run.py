"""One training run, from a plain config to a model directory, traces and scores.

The config is what conf/train.yaml composes to, as dictionaries and lists. Hydra is not needed to call this.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..aligners.base import Aligner, Checkpoint, TrainingReport
from ..aligners.training import Weighs
from ..annotate import Annotator
from ..errors import ConfigError
from ..evaluate import Score
from ..model import saving
from ..model.model import Model
from ..types import Example
from ..util import ranks
from ..util.build import build, check
from . import data as dataset
from . import loop
from .checkpoint import Files, Phase, Record
from .data import Dataset, annotated

if TYPE_CHECKING:
    from .tracking import TensorBoard

log = logging.getLogger(__name__)

SCORES = "scores.json"
CHECKSUM = attrgetter("pair.checksum")  # of an example
_NULL = type(None)
# The types of the settings that this module reads; the others are checked where they are used.
_EXPECTED: Mapping[str, tuple[type, ...]] = {
    "data": (dict,), "features": (dict,), "aligner": (dict,), "logger": (dict,), "trainer": (dict,),
    "annotate": (dict, _NULL), "drop": (list,), "cv": (int, _NULL), "seed": (int,), "links": (str,),
    "workers": (int, _NULL),
    "resume": (str, _NULL), "start": (str, _NULL), "output": (str, _NULL), "overwrite": (bool,),
    "description": (str,),
    "data.augment": (dict, _NULL), "data.root": (str,),
    "data.train": (list,), "data.dev": (list,), "data.drop_ids": (list,),
    "data.styles": (list, _NULL), "data.weights": (list, _NULL),
    "data.sidecar": (list,), "data.limit": (int, list, _NULL), "trainer.threads": (int,),
    "trainer.pull": (int, float), "trainer.checkpoint_seconds": (int, float),
    "logger.tensorboard": (bool,), "logger.every": (int,), "logger.examples": (int,),
}  # fmt: skip


def train(
    config: Mapping[str, Any],
    directory: Path,
    families: Sequence[str],
    overrides: Sequence[str] = (),
    announce: Callable[[str], None] = log.info,
) -> float:
    """Train a model, or cross-validate, and return the F1 of the aligner's own output.

    `families` are the names that `drop` may hold, and `overrides` the command line of this run. `announce` gets
    the model's directory, or the run's directory after a cross-validation. Ctrl-C during training saves the best
    weights so far, announces their directory, and is raised again. A run that was interrupted in any way goes on
    from its checkpoint if the config names its folder as `resume`.
    """
    cfg = checked(config, families)
    if cfg["start"]:
        from . import start

        cfg = start.configured(cfg, overrides)
    torch.set_num_threads(max(1, cfg["trainer"]["threads"]))
    run = Run(cfg, Path(directory), list(overrides))
    record = Record.of(cfg, run.directory, run.destination)
    model = run.model
    if cfg["annotate"] and not run.sidecar:
        model.check()
    if not cfg["cv"]:
        saving.check_destination(run.destination)
        own = record.resumed and record.held["output"] == str(run.destination.resolve())
        if (run.destination / saving.CONFIG).exists() and not (cfg["overwrite"] or own):
            raise ConfigError(
                f"{run.destination}: there is a model already; name another directory (output=DIR), or set "
                "overwrite=true to replace it"
            )
    if ranks.world > 1 and record.f1 is None:
        from . import together

        together.lead(run)
    data = run.load(bool(model.requires))
    files = record.begin(data, cfg["trainer"]["checkpoint_seconds"])
    try:
        if record.f1 is None:
            record.end(_train(run, annotated(model, data, run.sidecar), record, files, announce).f1)
        else:
            log.info("%s: this run is done already", record.folder)
    finally:
        files.close(keep=record.f1 is None)
    announce(str(run.directory if cfg["cv"] else run.destination))
    named: dict[str, None] = {}
    check(run.model_config, Model, named.setdefault)
    if named and not cfg["cv"]:
        log.info("this model reads %s: to load it later, list them in JACANA_TRUST", ", ".join(named))
    return float(record.f1 or 0.0)


def _train(run: Run, data: Dataset, record: Record, files: Files, announce: Callable[[str], None]) -> Score:
    """Train or cross-validate on annotated pairs; return the score of the aligner's own output."""
    log.info("%d pairs to train on, %d to score on", len(data.train), len(data.dev))
    if run.cfg["data"].get("styles") or run.cfg["data"].get("weights"):
        check_corpora(run.cfg["data"], run.model.aligner)
    _warn_if_seen(run, data)
    tracker, kept = None, Phase(files, "training")
    try:
        phase: Checkpoint = kept
        if ranks.world > 1:
            from . import together

            phase = together.Shared(kept)
        # before TensorBoard, whose thread would not let workers be forks of this process
        validated = None
        if run.cfg["cv"]:
            from .validated import validated_by

            validated = validated_by(run, data, phase)
        if run.cfg["logger"]["tensorboard"]:
            from .tracking import TensorBoard

            tracker = TensorBoard(run.directory, record.resumed)
            files.before = tracker.flush
        if validated is not None:
            found = validated.shown(tracker)
        else:
            found = _fit(run, data, tracker, phase, kept.phase("dev"), announce)
        own = found[loop.output_name(run.model.aligner)]
        if tracker is not None:
            figures = {f"{name}_{key}": value for name, s in found.items()
                       for key, value in (("f1", s.f1), ("exact", s.exact))}  # fmt: skip
            columns = not run.cfg["logger"].get("sweep", False)
            tracker.outcome(run.settings(), {"f1": own.f1, "exact": own.exact, **figures}, columns)
    except (KeyboardInterrupt, SystemExit):
        log.warning("interrupted; to continue: %s", _to_continue(run, record))
        raise
    finally:
        if tracker is not None:
            tracker.close()
    figures_of: dict[str, Any] = {}
    for name, score in found.items():
        figures_of[name] = score.to_dict()
    saving.write_json(run.directory / SCORES, figures_of)
    return own


def checked(config: Mapping[str, Any], families: Sequence[str]) -> dict[str, Any]:
    """Check the types of settings, and put a list around a file that is given alone."""
    cfg = dict(config)
    for name, types in _EXPECTED.items():
        section, _, key = name.rpartition(".")
        holder = cfg[section] if section else cfg
        value = holder.get(key)
        if isinstance(value, Mapping):
            value = dict(value)
        if types == (list,) and isinstance(value, str):
            value = [value]
        if type(value) not in types:
            wanted = " or ".join("null" if one is _NULL else one.__name__ for one in types)
            raise ConfigError(f"{name}={value!r}: should be {wanted}")
        holder[key] = value
    unknown = sorted(set(cfg["drop"]) - set(families))
    if unknown:
        raise ConfigError(f"drop={unknown}: no such feature family; there are {', '.join(families)}")
    if cfg["cv"] is not None and cfg["cv"] < 2:
        raise ConfigError(f"cv={cfg['cv']}: at least two folds, or null to train one model")
    if cfg["workers"] is not None and cfg["workers"] < 1:
        raise ConfigError(f"workers={cfg['workers']}: at least one process, or null for one per CPU")
    if not 0 <= cfg["trainer"]["checkpoint_seconds"] < math.inf:
        raise ConfigError(
            f"trainer.checkpoint_seconds={cfg['trainer']['checkpoint_seconds']}: at least 0, and finite"
        )
    return cfg


def check_corpora(data: Mapping[str, Any], aligner: Aligner) -> None:
    """Raise ConfigError if training the aligner would ignore the styles or weights of corpora."""
    from ..aligners.styles import Styled

    if any(data.get("styles") or ()) and not (isinstance(aligner, Styled) and aligner.learns_styles):
        raise ConfigError(
            f"data.styles: {type(aligner).__name__} does not tell conventions apart: set data.styles=[], or "
            "choose aligner=crf"
        )
    if {*(data.get("weights") or ())} - {1} and not (isinstance(aligner, Weighs) and aligner.weighs_examples):
        raise ConfigError(f"data.weights: {type(aligner).__name__} counts every pair alike: set data.weights=[]")


def _warn_if_seen(run: Run, data: Dataset) -> None:
    """Say it if scored pairs are also trained on: by this run, or by models that it starts from or learns from."""
    known = run.starts(teachers=True)
    scored = list(map(attrgetter("pair"), data.train if run.cfg["cv"] else data.dev))
    if data.dev and not run.cfg["cv"]:
        known["this model"] = frozenset(map(CHECKSUM, data.train))
    if not known or not scored:
        return
    from ..model.seen import said

    for name, seen in known.items():
        if text := said(name, seen, scored):
            log.warning("%s", text)


@dataclass
class Run:
    """The settings of a run, and what follows from them. The model is built once, and is not trained yet.

    `destination` is where the model goes. With a `sidecar`, layers come from files beside the corpora, which only
    training has. `augment` adds the pairs that are made of examples, if the config has `data.augment`.
    `model_config` is what `build` makes the model of, as it is saved with the model.
    """

    cfg: Mapping[str, Any]
    directory: Path
    overrides: list[str]

    def __post_init__(self) -> None:
        output, annotate = self.cfg["output"], self.cfg["annotate"]
        self.destination = Path(output).expanduser() if output else self.directory / "model"
        self.sidecar = bool(annotate) and "path" in annotate
        self.augment: loop.Augment = list if self.cfg["data"].get("augment") is None else self._augmented
        self.model, self.model_config = self._built()

    def _built(self) -> tuple[Model, dict[str, Any]]:
        """The model, and its config: without dropped families, and with an annotator only if layers are read."""
        aligner = _without(self.cfg["aligner"], set(self.cfg["drop"]))
        model, annotate = Model(self.untrained(aligner)), None
        if self.cfg["annotate"] and model.requires and not self.sidecar:
            annotate = dict(self.cfg["annotate"])
            if isinstance(annotate.get("layers"), list):  # to parse in vain takes half the time
                annotate["layers"] = [layer for layer in annotate["layers"] if layer in model.requires]
            model = Model(model.aligner, build(annotate))
        return model, {"_target_": "jacana_torch.model.model.Model", "aligner": aligner, "annotate": annotate}

    def untrained(self, config: Any = None) -> Aligner:
        """Build the aligner, with what it starts from."""
        aligner: Aligner = build(self.model_config["aligner"] if config is None else config)
        if self.cfg["start"]:
            from . import start

            start.begin(aligner, self.cfg["start"], self.cfg["trainer"]["pull"])
        return aligner

    def load(self, layers: bool = True) -> Dataset:
        """Read the corpora, with the layers of their sidecars if `layers` are needed."""
        annotate = self.cfg["annotate"]
        if not (self.sidecar and layers):
            return dataset.load(self.cfg["data"], self.cfg["links"])
        files = annotate["path"] if isinstance(annotate["path"], list) else [annotate["path"]]

        def reader(path: Path) -> Annotator:
            made: Annotator = build({**annotate, "path": str(path)})
            return made

        return dataset.load(self.cfg["data"], self.cfg["links"], files, reader)

    def _augmented(self, examples: Sequence[Example]) -> list[Example]:
        from .augment import augmented

        prepare = None if self.sidecar and self.model.requires else self.model.prepare
        return augmented(self.cfg["data"]["augment"], examples, prepare, self.model.aligner)

    def settings(self) -> dict[str, Any]:
        """What runs are compared by: the trainer's settings, the feature families, and the overrides."""
        trainer = {f"trainer.{k}": v for k, v in self.cfg["trainer"].items() if not isinstance(v, (dict, list))}
        families = [k for k, v in self.cfg["features"].items() if v is not None and k not in self.cfg["drop"]]
        given = dict(item.lstrip("+~").split("=", 1) for item in self.overrides if "=" in item)
        return {**given, **trainer, "families": ",".join(families)}

    def save(
        self, directory: Path, trained: Sequence[Example], report: TrainingReport, found: loop.Scores | None = None
    ) -> Path:
        """Save the model with a signature: how it was trained and, if it was scored, how well it does."""
        import datetime

        data, found = self.cfg["data"], found or {}
        makers = (data.get("augment") or {}).get("makers", {})
        about = {"description": self.cfg["description"], "resources": list(self.model.resources)}
        loss: dict[str, float | None] = {}
        for part, value in report.loss.items():
            loss[part] = value if math.isfinite(value) else None
        made_pairs = {}  # the kinds, and their weights
        for name, maker in makers.items():
            if maker:
                made_pairs[name] = maker.get("weight", 1.0)
        f1, exact = {}, {}
        for name, score in found.items():
            f1[name], exact[name] = round(score.f1, 6), round(score.exact, 6)
        signature = {
            "trained": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "data": list(data["train"]),
            "dropped_ids": list(data["drop_ids"]),
            "styles": self._styles() if data.get("styles") else [],
            "weights": list(data.get("weights") or []),
            "start": self.cfg["start"],
            "pairs": len(trained),
            "made_pairs": made_pairs,
            "links": self.cfg["links"],
            "annotation": "sidecar" if self.sidecar else "the model's own",
            "loss": loss,
            "iterations": dict(report.iterations),
            "converged": report.converged,
            "interrupted": report.interrupted,
            "measured_on": (list(data["dev"]) or "the training pairs") if found else None,
            "f1": f1,
            "exact": exact,
            "overrides": self.overrides,
        }
        seen = frozenset(map(CHECKSUM, trained)).union(*self.starts().values())
        about |= {"model": self.model_config}
        return saving.save(self.model, directory, about, {**signature, **saving.signed(seen)}, durable=True)

    def _styles(self) -> list[str]:
        """The conventions that the model can be asked for."""
        from ..aligners.styles import Styled

        aligner = self.model.aligner
        return list(aligner.styles) if isinstance(aligner, Styled) else []

    def starts(self, teachers: bool = False) -> dict[str, frozenset[int]]:
        """The models that this one starts from: the checksums of their training pairs. `teachers` adds theirs."""
        given = [self.cfg["start"]] if self.cfg["start"] else []
        parts = [self.model_config["aligner"], self.cfg["data"].get("augment") if teachers else None]
        for part in parts:  # which grows: such as `aligner.start`, `aligner.network.start` and a maker's `teacher`
            for name, value in part.items() if isinstance(part, Mapping) else ():
                if name in ("start", "teacher") and isinstance(value, str):
                    given.append(value)
                parts.append(value)
        if not given:
            return {}
        from ..model.persist import trained_on
        from . import start

        return {str(folder): trained_on(folder) for folder in map(start.folder, given)}


def _without(config: Any, dropped: set[str]) -> Any:
    """The config of an aligner without the feature families that are dropped for all or for one of its parts."""
    if not isinstance(config, Mapping):
        return config
    out: dict[str, Any] = {}
    for key, value in config.items():
        out[key] = _without(value, dropped)
    if isinstance(out.get("families"), dict):
        unread = dropped | {*out.get("drop", ())}
        for name, family in [*out["families"].items()]:
            if family is None or name in unread:
                del out["families"][name]
        if "drop" in out:
            out["drop"] = []
    return out


def _to_continue(run: Run, record: Record) -> str:
    """The command that continues an interrupted run."""
    kept = run.directory / "model"
    folder = kept if kept.is_dir() and run.directory == record.folder else record.folder
    others = [item for item in run.overrides if not item.lstrip("+").startswith("resume=")]
    return shlex.join(["jacana-torch", "train", *others, f"resume={folder}"])


def _fit(
    run: Run,
    data: Dataset,
    tracker: TensorBoard | None,
    phase: Checkpoint,
    of_dev: Checkpoint,
    announce: Callable[[str], None],
) -> loop.Scores:
    """Train, save, score, and save again with the scores: if scoring fails, the model is not lost."""
    logger, links, aligner = run.cfg["logger"], run.cfg["links"], run.model.aligner
    monitor = None
    if tracker is not None or logger["every"]:
        from .diagnostics import CellProbabilities, Monitor

        monitor = Monitor(tracker, data.dev, logger["every"], logger["examples"], links, of_dev)
    report = loop.fit(aligner, run.augment(data.train), data.dev, monitor, phase)
    if report.interrupted:  # not to `output`, which is for finished models
        kept = run.save(run.directory / "model", data.train, report)
        log.warning("interrupted: the best weights so far are in %s", kept)
        announce(str(kept))
        raise KeyboardInterrupt
    run.save(run.destination, data.train, report)
    scored = data.dev or data.train
    predicted = loop.predictions(aligner, scored)
    found = loop.scores(scored, predicted, links)
    run.save(run.destination, data.train, report, found)
    last, own = max(report.iterations.values(), default=0), predicted[loop.output_name(aligner)]
    if tracker is not None and monitor is not None:
        monitor.show(tracker, own, scored, last)
        if data.dev:
            monitor.scores(tracker, found, last)
            probabilities = CellProbabilities(links)
            probabilities.add(aligner, scored, own)
            probabilities.show(tracker, last)
    log.info("%s pairs, %d of them\n%s", "dev" if data.dev else "training", len(scored), loop.table(found))
    return found
