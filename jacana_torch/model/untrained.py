"""Aligners that are of use without training, by their names in conf/aligner.

An aligner has to be trained if it is `Trainable`, unless it is `TrainingOptional` and says otherwise. So has one
whose YAML takes settings from a training run (`defaults`, or `${...}`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..aligners.base import Trainable
from ..errors import ConfigError, ModelError
from ..types import PROVIDERS
from ..util import conf
from ..util.build import build


def names() -> list[str]:
    """The names of these aligners, without those that lack a package."""
    found = []
    for name in conf.paths("aligner"):
        try:
            model_config(name)
        except (ModelError, ConfigError):
            continue
        found.append(name)
    return found


def path_of(name: str) -> Path | None:
    """The YAML file of an aligner, or None."""
    return conf.paths("aligner").get(name)


def description(name: str) -> str:
    """The comment on the first line of an aligner's YAML file."""
    path = path_of(name)
    line = path.read_text(encoding="utf-8").split("\n", 1)[0] if path else ""
    return line.removeprefix("#").strip()


def model_config(name: str) -> dict[str, Any]:
    """The config of a model of this aligner and the least annotator that fills the layers it reads."""
    from ..aligners.training import TrainingOptional  # aligning by a trained model needs none of it

    path = path_of(name)
    if path is None:
        raise ModelError(f"there is no aligner {name!r} in {conf.conf_directory() / 'aligner'}")
    config = _standalone(path)
    aligner = None if config is None else build(config)
    learns = aligner.needs_training if isinstance(aligner, TrainingOptional) else isinstance(aligner, Trainable)
    if aligner is None or learns:
        raise ModelError(
            f"{name} has to be trained: jacana-torch train aligner={name} data.train=[FILE...], and then name the "
            "directory that it prints"
        )
    model = "jacana_torch.model.model.Model"
    return {"_target_": model, "aligner": config, "annotate": _annotator(tuple(aligner.requires))}


def _standalone(path: Path) -> dict[str, Any] | None:
    """The content of a YAML file; None if it only makes sense as part of a training run."""
    held = conf.read(path)
    if not isinstance(held, dict) or "defaults" in held or "${" in str(held):
        return None
    return held


def _annotator(requires: tuple[str, ...]) -> dict[str, Any] | None:
    """The config of the annotator that fills the fewest layers besides those required, or None.

    Annotators that `types.PROVIDERS` names come first, so a new file in conf/annotate does not change this choice.
    """
    able = [one for one in _annotators() if set(requires) <= set(one[1])]
    if not requires or not able:  # then pairs have to bring their layers
        return None
    config = dict(min(able, key=lambda one: (not one[2], len(one[1])))[0])
    if isinstance(config.get("layers"), list):  # to parse in vain takes half the time
        config["layers"] = [layer for layer in config["layers"] if layer in requires]
    return config


@cache
def _annotators() -> tuple[tuple[dict[str, Any], tuple[str, ...], bool], ...]:
    """The config of each annotator that needs no corpus file, its layers, and whether PROVIDERS names it."""
    named = {name for names in PROVIDERS.values() for name in names}
    configs = {name: _standalone(path) for name, path in conf.paths("annotate").items()}
    return tuple(
        (config, tuple(build(config).provides), name in named)
        for name, config in configs.items()
        if config is not None
    )
