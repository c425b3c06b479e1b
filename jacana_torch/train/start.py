"""Fine-tuning: `start=MODEL` gives a training run the configuration and the weights of a trained model.

The run's own settings come on top. If the command line names an aligner or an experiment, the configuration is
that one, and the start gives weights alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from ..aligners.base import Aligner, FineTunable
from ..errors import ConfigError
from ..model import persist

log = logging.getLogger(__name__)

CHAIN = "jacana_torch.aligners.crf.Crf"
RUNS_OWN = ("threads", "pull", "checkpoint_seconds")  # settings of the trainer that no aligner reads
START = ", or leave aligner= and experiment= out to keep the start's configuration"


def folder(name: str) -> Path:
    """The directory of a model, given by name, by directory or by the folder of the run that trained it."""
    path = persist.locate(name)
    if path == Path(name):
        path = path.expanduser()
    return path / "model" if (path / "model").is_dir() else path


def configured(cfg: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a run that starts from another model: the start's, and over them those of the run."""
    model, given = persist.model_config(folder(cfg["start"])), dict(map(_split, overrides))
    out = {**cfg, "description": cfg["description"] or f"{cfg['start']}, trained further"}
    if {"aligner", "experiment"} & given.keys():
        return out
    aligner, annotate = deepcopy(model["aligner"]), deepcopy(model.get("annotate"))
    _set_families(aligner, cfg, given)
    _set_trainer(aligner, cfg, given)
    for path, where in _paths(given, "aligner"):
        _set(aligner, where, _at(cfg, path), f"start={cfg['start']} has no {path}: name it with aligner=")
        if where[0] == "forward" and f"aligner.backward.{'.'.join(where[1:])}" not in given:
            _set(aligner, ["backward", *where[1:]], _at(cfg, path), path)
    if "symmetrize" in given:
        _set(aligner, ["symmetrize"], cfg["symmetrize"], f"start={cfg['start']} has no symmetrizer to replace")
    for path, where in _paths(given, "symmetrize"):
        _set(
            aligner, ["symmetrize", *where], _at(cfg, path), f"the symmetrizer of start={cfg['start']}: no {path}"
        )
    if "annotate" in given or annotate is None:
        annotate = cfg["annotate"]
    else:
        for path, where in _paths(given, "annotate"):
            _set(annotate, where, _at(cfg, path), f"the annotator of start={cfg['start']} has no {path}")
    return {**out, "aligner": aligner, "annotate": annotate}


def begin(aligner: Aligner, name: str, pull: float) -> None:
    """Give an aligner the weights of the model of that name to start from."""
    if not isinstance(aligner, FineTunable):
        raise ConfigError(
            f"start={name}: {type(aligner).__name__} cannot start from a model; chains and networks can"
        )
    directory = folder(name)
    persist.read_config(directory)
    try:
        aligner.start_from(persist.read_state(directory), pull)
    except ConfigError as error:
        raise ConfigError(f"start={name}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"start={name}: these weights are of another kind of aligner ({error}){START}") from None


def _set_families(aligner: dict[str, Any], cfg: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """Change the chains' families as the run asks; those that the start has keep its settings otherwise."""
    asked, paths = cfg["features"], dict(_paths(given, "features"))
    if "features" not in given and "+features" not in given and not paths:
        return
    chains = [part for part in _parts(aligner) if part.get("_target_") == CHAIN]
    if not chains:
        raise ConfigError(f"start={cfg['start']} has no chains, so its features cannot change")
    for chain in chains:
        own: dict[str, Any] = chain["families"]
        if "features" in given:
            chain["families"] = {name: own.get(name, family) for name, family in asked.items()}
        for name in given.get("+features", "").strip("[]").replace(",", " ").split():
            chain["families"].setdefault(name, asked[name])
        for path, where in paths.items():
            family = chain["families"]
            if len(where) == 1:
                family[where[0]] = asked.get(where[0])
            else:
                _set(
                    family, where, _at(cfg, path), f"start={cfg['start']} has no family {where[0]}: add +features="
                )


def _set_trainer(aligner: dict[str, Any], cfg: Mapping[str, Any], given: Mapping[str, str]) -> None:
    names = [where[0] for _, where in _paths(given, "trainer")]
    if "trainer" in given:
        names += [name for name in cfg["trainer"] if name != "start"]
    for name in names:
        if name in RUNS_OWN:
            continue
        parts = [part for part in _parts(aligner) if name in part and name != "start"]
        if not parts and "trainer" not in given:
            raise ConfigError(f"trainer.{name}: nothing in start={cfg['start']} reads it")
        for part in parts:
            part[name] = cfg["trainer"][name]


def _parts(config: Any) -> Iterator[dict[str, Any]]:
    """Yield the aligner's config and those of its parts."""
    if isinstance(config, dict) and "_target_" in config:
        yield config
        for key, value in config.items():
            if key != "families":
                yield from _parts(value)


def _split(override: str) -> tuple[str, str]:
    """Return the name and value of an override; a + of an added group stays."""
    name, _, value = override.partition("=")
    return (name if name == "+features" else name.lstrip("+~")), value


def _paths(given: Mapping[str, str], group: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the overrides below a group, and the keys that lead there."""
    for name in given:
        if name.startswith(f"{group}."):
            yield name, name.split(".")[1:]


def _at(cfg: Mapping[str, Any], path: str) -> Any:
    """Return the value that an override has set; None for one that removes."""
    value: Any = cfg
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _set(config: Any, where: Sequence[str], value: Any, otherwise: str) -> None:
    for key in where[:-1]:
        config = config.get(key) if isinstance(config, dict) else None
    if not isinstance(config, dict) or (len(where) > 1 and not config):
        raise ConfigError(otherwise)
    config[where[-1]] = value
