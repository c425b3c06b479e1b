"""Compose conf/train.yaml in Python: the groups, an experiment's changes, settings by dotted name, references.

This is the part of Hydra's language that conf/ uses; `tests/unit/test_train_api.py` compares what comes out with
Hydra's. Sweeps, new groups and interpolated functions are for the command line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ..errors import ConfigError
from ..util import conf

_WHOLE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_POWER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_OURS = ("data", "logger", "experiment")  # groups that a call from Python has no choice of


def composed(
    experiment: str | None = None,
    choices: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the settings of a training run as plain data.

    `choices` names the files of groups, such as `aligner`, and a list of families for `features`. `settings` has
    values by dotted name. Data and logging are those of conf/data/files and conf/logger/none.
    """
    base = conf.read(conf.conf_directory() / "train.yaml")
    config = {key: value for key, value in base.items() if key not in ("defaults", "hydra")}
    chosen: dict[str, Any] = {}
    for item in base["defaults"]:
        if isinstance(item, Mapping):
            chosen |= {key: value for key, value in item.items() if " " not in key}
    changes: dict[str, Any] = {}
    if experiment is not None:
        changes = _read("experiment", experiment)
        chosen |= _overridden(changes.pop("defaults", []))
    chosen |= _overridden(_read("aligner", {**chosen, **(choices or {})}["aligner"]).get("defaults", []))
    chosen |= dict(choices or {}) | {"data": "files", "logger": "none"}
    for group, name in chosen.items():
        if group != "experiment":
            config[group] = _group(group, name)
    _merge(config, {key: value for key, value in changes.items() if key not in _OURS})
    for path, value in (settings or {}).items():
        _set(config, path, value)
    resolved = _resolved(config, config, ())
    assert isinstance(resolved, dict)
    return resolved


def _overridden(defaults: Sequence[Any]) -> dict[str, str]:
    """The choices of groups that a file changes."""
    found = {}
    for item in defaults:
        for key, name in item.items() if isinstance(item, Mapping) else ():
            if key.startswith("override /"):
                found[key.removeprefix("override /").partition("@")[0]] = name
    return found


def _group(group: str, name: Any) -> Any:
    """The content of a file of a group, or of several merged (`features`)."""
    merged: dict[str, Any] = {}
    for one in name if isinstance(name, (list, tuple)) else [name]:
        held = _read(group, one)
        if held is None or (not held and not isinstance(name, (list, tuple))):
            return held
        own = {key: value for key, value in held.items() if key != "defaults"}
        before: dict[str, Any] = {}
        for item in held.get("defaults", []):
            if isinstance(item, str) and item != "_self_":
                file, _, package = item.partition("@")
                part = _group(group, file)
                _merge(before, {package: part} if package else part)
        _merge(before, own)
        _merge(merged, before)
    return merged


def _read(group: str, name: Any) -> Any:
    path = conf.paths(group).get(name) if isinstance(name, str) else None
    if path is None:
        raise ConfigError(f"{group}={name!r}: there is no such file; there are {', '.join(conf.paths(group))}")
    return conf.read(path)


def _merge(into: dict[str, Any], given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = deepcopy(value)


def _set(config: dict[str, Any], path: str, value: Any) -> None:
    """Set a value that there is by its dotted name; a reference on the way is followed into a copy."""
    node: Any = config
    *above, last = path.split(".")
    for key in above:
        if isinstance(node, dict) and isinstance(node.get(key), str) and _WHOLE.fullmatch(node[key]):
            node[key] = deepcopy(_at(config, node[key][2:-1], path))
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict) or last not in node:
        there = f"; there are {', '.join(map(str, node))}" if isinstance(node, dict) else ""
        raise ConfigError(f"there is no setting {path}{there}")
    node[last] = deepcopy(value)


def _at(config: Mapping[str, Any], path: str, what: str) -> Any:
    node: Any = config
    for key in path.split("."):
        if not isinstance(node, Mapping) or key not in node:
            raise ConfigError(f"{what}: it refers to {path}, which is not there")
        node = node[key]
    return node


def _resolved(value: Any, config: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Copy a value with its references to other settings replaced by what they refer to."""
    if isinstance(value, Mapping):
        return {key: _resolved(one, config, (*path, str(key))) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one, config, path) for one in value]
    if isinstance(value, str) and (found := _WHOLE.fullmatch(value)) and len(path) < 30:
        return _resolved(_at(config, found[1], ".".join(path)), config, (*path, "."))
    if isinstance(value, str) and _POWER.fullmatch(value):  # YAML 1.1 takes 1e-7 for a string, Hydra for a number
        return float(value)
    return value
