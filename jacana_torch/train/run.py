"""One training run: a plain config and a folder in; a model directory, traces and a score out.

The config is what conf/ composes to, as dictionaries and lists; Hydra is not needed to call this.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from .. import corpora
from ..aligners.base import Aligner, Trainable, TrainingReport
from ..annotate import missing
from ..errors import ConfigError
from ..model import persist
from ..model.model import Model
from ..types import PROVIDERS, Example, Sentence, SentencePair
from . import data as dataset
from . import diagnostics as judging
from . import loop as experiment
from .tracking import TensorBoard, Tracker

log = logging.getLogger(__name__)

SCORES = "scores.json"
_NOTHING = type(None)
# What conf/train.yaml must compose to, as far as this module reads it; the rest is checked where it is used.
_EXPECTED: Mapping[str, tuple[type, ...]] = {
    "data": (dict,), "features": (dict,), "aligner": (dict,), "logger": (dict,), "trainer": (dict,),
    "annotate": (dict, _NOTHING), "drop": (list,), "cv": (int, _NOTHING), "seed": (int,), "links": (str,),
    "resume": (str, _NOTHING), "output": (str, _NOTHING), "description": (str,),
    "data.root": (str,), "data.train": (list,), "data.dev": (list,), "data.drop_ids": (list,),
    "data.sidecar": (list,), "data.limit": (int, _NOTHING), "trainer.threads": (int,),
    "logger.tensorboard": (bool,), "logger.every": (int,), "logger.examples": (int,),
}  # fmt: skip


def train(
    config: Mapping[str, Any],
    directory: Path,
    families: Sequence[str],
    overrides: Sequence[str] = (),
    tell: Callable[[str], None] = log.info,
) -> float:
    """Train a model, or cross-validate; the F1 of what the model says.

    `families` are the names that `drop` may hold, `overrides` the command line that asked for this. `tell` gets
    the model's directory (of a cross-validation, the run's). Ctrl-C while training saves the best weights so far,
    tells their directory, and goes through.
    """
    cfg = checked(config, families)
    torch.set_num_threads(max(1, cfg["trainer"]["threads"]))
    run = Run(cfg, Path(directory), list(overrides))
    model = persist.build(run.model_config)
    if cfg["annotate"] and not run.sidecar:
        model.check()
    if cfg["resume"]:
        resumed = persist.load(_resumable(cfg["resume"])).aligner
        if isinstance(model.aligner, Trainable) and isinstance(resumed, Trainable):
            model.aligner.restore(resumed.state())
    if not cfg["cv"]:
        persist.check_destination(run.destination)
    data = annotated(model, examples_of(run, bool(model.requires)), run.sidecar)
    log.info("%d pairs to train on, %d to score on", len(data.train), len(data.dev))
    tracker = TensorBoard(directory) if cfg["logger"]["tensorboard"] else Tracker()
    try:
        found = _cross_validate(run, data, tracker) if cfg["cv"] else _fit(run, model, data, tracker, tell)
        figures = {f"{name}_{key}": getattr(s, key) for name, s in found.items() for key in ("f1", "exact")}
        own = found[experiment.output_name(model.aligner)]
        tracker.outcome(run.settings(), {"f1": own.f1, "exact": own.exact, **figures})
    finally:
        tracker.close()
    persist.write_json(run.directory / SCORES, {name: s.to_dict() for name, s in found.items()})
    tell(str(run.directory if cfg["cv"] else run.destination))
    return own.f1


def checked(config: Mapping[str, Any], families: Sequence[str]) -> dict[str, Any]:
    """The config, if its settings are of the right kind; files may be given without a list around them."""
    cfg: dict[str, Any] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in config.items()
    }
    for name, kinds in _EXPECTED.items():
        section, _, key = name.rpartition(".")
        holder = cfg[section] if section else cfg
        value = holder.get(key)
        if kinds == (list,) and isinstance(value, str):
            value = [value]
        if type(value) not in kinds:
            wanted = " or ".join("null" if kind is _NOTHING else kind.__name__ for kind in kinds)
            raise ConfigError(f"{name}={value!r}: a setting of the kind {wanted} is expected")
        holder[key] = value
    unknown = sorted(set(cfg["drop"]) - set(families))
    if unknown:
        raise ConfigError(f"drop={unknown}: no such feature family; there are {', '.join(families)}")
    if cfg["cv"] is not None and cfg["cv"] < 2:
        raise ConfigError(f"cv={cfg['cv']}: at least two folds, or null to train one model")
    if cfg["cv"] and cfg["resume"]:
        raise ConfigError("resume goes on with one model, and cv trains others: leave one of them out")
    return cfg


@dataclass(frozen=True)
class Run:
    """What is asked for, and what follows from it."""

    cfg: Mapping[str, Any]
    directory: Path
    overrides: list[str]

    @property
    def sidecar(self) -> bool:
        """Whether layers come from files beside the corpora, which only training has."""
        return bool(self.cfg["annotate"]) and "path" in self.cfg["annotate"]

    @property
    def destination(self) -> Path:
        return Path(self.cfg["output"]).expanduser() if self.cfg["output"] else self.directory / "model"

    @cached_property
    def model_config(self) -> dict[str, Any]:
        """What `persist.build` makes the model of: without the families that are dropped, and with an annotator
        only where something reads what it fills."""
        aligner = _without(self.cfg["aligner"], {*self.cfg["drop"]})
        built = persist.build(aligner)
        requires = built.requires if isinstance(built, Aligner) else ()
        annotate = dict(self.cfg["annotate"]) if self.cfg["annotate"] and requires and not self.sidecar else None
        if annotate and isinstance(annotate.get("layers"), list):  # parsing what nobody reads takes half the time
            annotate["layers"] = [layer for layer in annotate["layers"] if layer in requires]
        return {"_target_": "jacana_torch.model.model.Model", "aligner": aligner, "annotate": annotate}

    def settings(self) -> dict[str, Any]:
        """What differs between runs, for comparing them: the trainer's figures, the features, the overrides."""
        trainer = {f"trainer.{k}": v for k, v in self.cfg["trainer"].items() if not isinstance(v, (dict, list))}
        families = [k for k, v in self.cfg["features"].items() if v is not None and k not in self.cfg["drop"]]
        given = dict(item.lstrip("+~").split("=", 1) for item in self.overrides if "=" in item)
        return {**given, **trainer, "families": ",".join(families)}

    def again(self, model: Path) -> str:
        """The command that goes on from a model."""
        kept = [item for item in self.overrides if not item.lstrip("+").startswith("resume=")]
        return shlex.join(["jacana-torch", "train", *kept, f"resume={model}"])


def _without(config: Any, dropped: set[str]) -> Any:
    """The config of an aligner without those of its feature families, nor those that a part of it drops itself."""
    if isinstance(config, Mapping):
        config = {key: _without(value, dropped) for key, value in config.items()}
        if isinstance(config.get("families"), dict):
            unread = dropped | {*config.get("drop", ())}
            families = config["families"].items()
            config["families"] = {k: v for k, v in families if v is not None and k not in unread}
            if "drop" in config:
                config["drop"] = []
    return config


def examples_of(run: Run, layers: bool = True) -> dataset.Dataset:
    """What the corpora bring, with the layers of their sidecars where these are asked for."""
    annotate = run.cfg["annotate"]
    if not (run.sidecar and layers):
        return dataset.load(run.cfg["data"], run.cfg["links"])
    files = annotate["path"] if isinstance(annotate["path"], list) else [annotate["path"]]
    reader = lambda path: persist.build({**annotate, "path": str(path)})  # noqa: E731
    return dataset.load(run.cfg["data"], run.cfg["links"], files, reader)


def annotated(model: Model, data: dataset.Dataset, sidecar: bool = False) -> dataset.Dataset:
    """The examples with every layer that the aligner reads."""
    both = [*data.train, *data.dev]
    pairs = model.prepare([example.pair for example in both])
    lacking = sorted(missing(pairs, [layer for layer in model.requires if layer in PROVIDERS]))
    if lacking:
        able = set.intersection(*(set(PROVIDERS[layer]) for layer in lacking))
        raise ConfigError(
            f"the features read {', '.join(model.requires)}, and the corpora "
            f"{'and their sidecars ' if sidecar else ''}do not bring {', '.join(lacking)}: "
            f"annotate={' or annotate='.join(sorted(able))} fills that"
        )
    ready = [replace(example, pair=pair) for example, pair in zip(both, pairs, strict=True)]
    return dataset.Dataset(ready[: len(data.train)], ready[len(data.train) :])


def _cross_validate(run: Run, data: dataset.Dataset, tracker: Tracker) -> experiment.Scores:
    cfg, config = run.cfg, run.model_config["aligner"]
    if data.dev:
        log.info("the dev pairs are not used: cross-validation scores the training pairs")
    judged, links = judging.Judged(cfg["links"]), cfg["links"]
    found, predicted = experiment.cross_validate(
        lambda: persist.build(config),
        data.train,
        cfg["cv"],
        cfg["seed"],
        links,
        judged.add if tracker.keeps else None,
    )
    own = predicted[experiment.output_name(persist.build(config))]
    pairs = (example.pair for example in data.train)
    bare = (SentencePair(Sentence(p.source.tokens), Sentence(p.target.tokens), p.id) for p in pairs)
    corpora.write(map(Example, bare, own), run.directory / "predictions.jsonl", "jsonl")
    if tracker.keeps:
        judged.show(tracker)
        experiment.Watch(tracker, examples=cfg["logger"]["examples"], links=links).show(own, data.train)
    log.info("%d-fold cross-validation over %d pairs\n%s", cfg["cv"], len(data.train), experiment.table(found))
    return found


def _fit(
    run: Run, model: Model, data: dataset.Dataset, tracker: Tracker, tell: Callable[[str], None]
) -> experiment.Scores:
    """Train, save, score, and save again with the scores: whatever happens while scoring, the model is there."""
    logger, links = run.cfg["logger"], run.cfg["links"]
    watch = experiment.Watch(tracker, data.dev, logger["every"], logger["examples"], links)
    report = experiment.fit(model.aligner, data.train, data.dev, watch)
    if report.interrupted:  # `output` is for finished models
        kept = _save(run, model, run.directory / "model", _signature(run, data.train, report))
        log.warning("interrupted: the best weights so far are in %s; to go on: %s", kept, run.again(kept))
        tell(str(kept))
        raise KeyboardInterrupt
    _save(run, model, run.destination, _signature(run, data.train, report))
    scored = data.dev or data.train
    predicted = experiment.predictions(model.aligner, scored)
    found = experiment.scores(scored, predicted, links)
    _save(run, model, run.destination, _signature(run, data.train, report, found))
    last, own = max(report.iterations.values(), default=0), predicted[experiment.output_name(model.aligner)]
    watch.show(own, scored, last)
    if data.dev:
        watch.scores(found, last)
    if data.dev and tracker.keeps:
        judged = judging.Judged(links)
        judged.add(model.aligner, scored, own)
        judged.show(tracker, last)
    log.info("%s pairs, %d of them\n%s", "dev" if data.dev else "training", len(scored), experiment.table(found))
    return found


def _save(run: Run, model: Model, directory: Path, signature: Mapping[str, Any]) -> Path:
    about = {"description": run.cfg["description"], "resources": list(model.resources)}
    return persist.save(model, directory, {**about, "model": run.model_config}, signature)


def _resumable(name: str) -> Path:
    path = Path(name).expanduser()
    return path / "model" if (path / "model").is_dir() else path


def _signature(
    run: Run, examples: Sequence[Example], report: TrainingReport, found: experiment.Scores | None = None
) -> dict[str, Any]:
    """What a model was trained on, how, and how well it does where it was measured."""
    import datetime

    data, found = run.cfg["data"], found or {}
    return {
        "trained": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "data": list(data["train"]),
        "dropped_ids": list(data["drop_ids"]),
        "pairs": len(examples),
        "links": run.cfg["links"],
        "annotation": "sidecar" if run.sidecar else "the model's own",
        "loss": {part: loss if math.isfinite(loss) else None for part, loss in report.loss.items()},
        "iterations": dict(report.iterations),
        "converged": report.converged,
        "interrupted": report.interrupted,
        "measured_on": (list(data["dev"]) or "the training pairs") if found else None,
        "f1": {name: round(score.f1, 6) for name, score in found.items()},
        "exact": {name: round(score.exact, 6) for name, score in found.items()},
        "overrides": run.overrides,
    }
