"""Aligners that need no training, by the names that conf/aligner gives them: a name in, the config of a model out.

A YAML that takes settings from a training run (`${...}`, defaults) is of a system that has to be trained; so is
one whose aligner learns, unless its class says `needs_training = False`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import ConfigError, ModelError
from ..util import conf


def path_of(name: str) -> Path | None:
    """The YAML of the aligner of that name, if there is one."""
    return conf.find("aligner", name)


def names() -> list[str]:
    """The aligners that can be used as they are."""
    found = []
    for name in conf.paths("aligner"):
        try:
            model_config(name)
        except (ModelError, ConfigError):  # has to be trained, or lacks a package
            continue
        found.append(name)
    return found


def model_config(name: str) -> dict[str, Any]:
    """What `construct.build` makes the model of, with the least annotator that fills what the aligner reads."""
    path = path_of(name)
    if path is None:
        raise ModelError(f"there is no aligner {name!r} in {conf.conf_directory() / 'aligner'}")
    untrained = ModelError(
        f"{name} has to be trained: jacana-torch train aligner={name} data.train=[FILE...], and then name the "
        "directory that it prints"
    )
    aligner = _plain(path)
    if aligner is None or _learns(aligner):
        raise untrained
    return {
        "_target_": "jacana_torch.model.model.Model",
        "aligner": aligner,
        "annotate": _annotator(_requires(aligner)),
    }


def description(name: str) -> str:
    """The line that the YAML begins with."""
    path = path_of(name)
    line = path.read_text(encoding="utf-8").split("\n", 1)[0] if path else ""
    return line.removeprefix("#").strip()


def _plain(path: Path) -> dict[str, Any] | None:
    """What a YAML holds; None where it only means something as part of a training run."""
    held = conf.read(path)
    if not isinstance(held, dict) or "defaults" in held or "${" in str(held):
        return None
    return held


def _learns(aligner: Mapping[str, Any]) -> bool:
    from ..aligners.base import Trainable, TrainingOptional
    from ..util.build import build

    made = build(aligner)
    return made.needs_training if isinstance(made, TrainingOptional) else isinstance(made, Trainable)


def _requires(aligner: Mapping[str, Any]) -> tuple[str, ...]:
    from ..util.build import build

    return tuple(build(aligner).requires)


def _annotator(requires: tuple[str, ...]) -> dict[str, Any] | None:
    """None where nothing is read. `layers` are cut down to what is: parsing for nobody takes half the time."""
    if not requires:
        return None
    able = [(config, provides) for config, provides in _annotators() if set(requires) <= set(provides)]
    if not able:
        return None  # pairs have to bring their layers
    config = dict(min(able, key=lambda one: len(one[1]))[0])
    if isinstance(config.get("layers"), list):
        config["layers"] = [layer for layer in config["layers"] if layer in requires]
    return config


@cache
def _annotators() -> tuple[tuple[dict[str, Any], tuple[str, ...]], ...]:
    """Every annotator that needs no file of a corpus, and the layers that it fills."""
    from ..util.build import build

    found = []
    for path in conf.paths("annotate").values():
        config = _plain(path)
        if config is not None:
            found.append((config, tuple(build(config).provides)))
    return tuple(found)
