"""The only Hydra entry point: `jacana-torch train ...` and `python -m jacana_torch.run ...` are the same thing.

Composes conf/, turns it into plain data at once, and calls plain functions. Returns the score that sweeps maximise.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import ConfigError, CorpusError, JacanaError

log = logging.getLogger(__name__)


def conf_directory() -> Path:
    """conf/ stands beside the package in a checkout and inside it once installed."""
    inside, beside = Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf"
    return inside if inside.is_dir() else beside


def plain(cfg: DictConfig) -> dict[str, Any]:
    """The config as dictionaries and lists, every reference resolved."""
    try:
        return OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        raise ConfigError(f"the configuration does not resolve: {error}") from None


def train(cfg: Mapping[str, Any], directory: Path, families: Sequence[str]) -> float:
    """One run: data, features, training or cross-validation, a model directory. `families` are the known names."""
    from . import corpora, experiment, persist
    from .train.tracking import TensorBoard, Tracker

    _threads()
    model_config = _model_config(cfg, families)
    examples = list(_examples(cfg["data"], cfg["data"]["train"], cfg["data"]["limit"], cfg["links"], corpora))
    if not examples:
        raise ConfigError("there is nothing to train on: set data.train=[FILE...] or choose experiment=NAME")
    dev = list(_examples(cfg["data"], cfg["data"]["dev"], None, cfg["links"], corpora))
    model = persist.build(model_config)
    prepared = _prepared(model, [*examples, *dev])
    examples, dev = prepared[: len(examples)], prepared[len(examples) :]
    log.info("%d pairs to train on, %d to score on", len(examples), len(dev))
    tracker = TensorBoard(directory) if cfg["logger"]["tensorboard"] else Tracker()
    try:
        if cfg["cv"]:
            found, _ = experiment.cross_validate(
                lambda: persist.build(model_config).aligner, examples, cfg["cv"], cfg["seed"]
            )
            heading = f"{cfg['cv']}-fold cross-validation over {len(examples)} pairs"
            result = directory
        else:
            if cfg["resume"]:
                model.restore(persist.load(_resumable(cfg["resume"])).state())
            watch = experiment.Watch(tracker, dev, cfg["logger"]["every"], cfg["logger"]["examples"])
            report = experiment.fit(model.aligner, examples, dev, watch)
            found = experiment.scores(dev or examples, experiment.predictions(model.aligner, dev or examples))
            heading = f"{'dev' if dev else 'training'} pairs, {len(dev or examples)} of them"
            result = Path(cfg["output"]) if cfg["output"] else directory / "model"
            about = {"description": cfg["description"], "resources": persist.resources_of(model)}
            persist.save(model, result, {**about, "model": model_config}, _signature(cfg, examples, report, found))
        log.info("%s\n%s", heading, experiment.table(found))
        best = experiment.best_direction(found)
        tracker.outcome(_settings(), {f"{name}_{what}": getattr(s, what) for name, s in found.items() for what in ("f1", "exact")})
    finally:
        tracker.close()
    sys.stdout.write(f"{result}\n")
    sys.stdout.flush()
    return found[best].f1


def _threads() -> None:
    """Lattices are small: more threads than cores only wait for one another."""
    import torch

    torch.set_num_threads(max(1, min(torch.get_num_threads(), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)))


def _model_config(cfg: Mapping[str, Any], families: Sequence[str]) -> dict[str, Any]:
    """What `persist.build` makes a model of. A family that may be dropped but is not here is None, so known."""
    config = {"_target_": "jacana_torch.model.Model", "aligner": cfg["aligner"], "annotate": cfg["annotate"]}

    def complete(value: Any) -> Any:
        if isinstance(value, dict):
            value = {k: complete(v) for k, v in value.items()}
            if "families" in value and value.get("drop"):
                value["families"] = {**dict.fromkeys(families), **value["families"]}
        return value

    return complete(config)


def _examples(
    data: Mapping[str, Any], files: Sequence[str], limit: int | None, links: str, corpora: Any
) -> Iterator[Any]:
    """The pairs of some corpus files, less those that `drop_ids` names."""
    from dataclasses import replace

    root = Path(data["root"])
    dropped = {line.strip() for name in data["drop_ids"] for line in _lines(root / name)} - {""}
    found = (example for name in files for example in corpora.read(root / name))
    for example in islice((e for e in found if e.pair.id not in dropped), limit):
        if example.gold is None:
            raise ConfigError(f"{', '.join(files)}: holds pairs without gold links ({str(example.pair.source)[:60]!r})")
        if links == "all":
            gold = example.gold
            example = replace(example, gold=replace(gold, sure=gold.sure | gold.possible, possible=frozenset()))
        yield example


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", str(path)) from None


def _prepared(model: Any, examples: Sequence[Any]) -> list[Any]:
    from dataclasses import replace

    pairs = model.prepare([e.pair for e in examples])
    return [replace(e, pair=pair) for e, pair in zip(examples, pairs, strict=True)]


def _resumable(name: str) -> Path:
    path = Path(name)
    return path / "model" if (path / "model").is_dir() else path


def _signature(cfg: Mapping[str, Any], examples: Sequence[Any], report: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a model was trained on, how, and how well it does where it was measured."""
    import datetime

    data = cfg["data"]
    return {
        "trained": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "data": list(data["train"]),
        "dropped_ids": list(data["drop_ids"]),
        "pairs": len(examples),
        "links": cfg["links"],
        "loss": dict(report.loss),
        "iterations": dict(report.iterations),
        "converged": report.converged,
        "interrupted": report.interrupted,
        "measured_on": list(data["dev"]) or "the training pairs",
        "f1": {name: round(score.f1, 6) for name, score in found.items()},
        "exact": {name: round(score.exact, 6) for name, score in found.items()},
        "overrides": list(_overrides()),
    }


def _overrides() -> list[str]:
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def _settings() -> dict[str, Any]:
    """The overrides of this run, as hyperparameters: what differs between the runs of a sweep."""
    return dict(item.lstrip("+~").split("=", 1) for item in _overrides() if "=" in item)


def _run(cfg: DictConfig) -> float:
    runtime = HydraConfig.get().runtime
    loader = hydra.core.global_hydra.GlobalHydra.instance().config_loader()
    families = sorted({*loader.get_group_options("features"), *cfg.features})
    return train(plain(cfg), Path(runtime.output_dir), families)


def main(arguments: Sequence[str] | None = None) -> float | None:
    """Run with Hydra's command line; JacanaErrors go through to whoever calls."""
    argv, stash = [sys.argv[0] if arguments is not None else "jacana-torch train"], sys.argv
    sys.argv = [*argv, *(sys.argv[1:] if arguments is None else arguments)]
    entry = hydra.main(version_base="1.3", config_path=str(conf_directory()), config_name="train")(_run)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come through whole, and the command line tells them
    try:
        return entry()
    finally:
        sys.argv = stash


if __name__ == "__main__":
    try:
        main()
    except JacanaError as error:
        sys.stderr.write(f"jacana-torch: error: {error}\n")
        sys.exit(2)
