"""A model is a directory: config.json (what to build), weights.safetensors (what was learnt), signature.json (from what).

Nothing else is read from it, and only classes of this package, or of packages that the user names in the
environment variable JACANA_TRUST, are ever built from a config.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import shutil
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ConfigError, JacanaError, ModelError
from .model import Model
from .version import __version__

CONFIG, WEIGHTS, SIGNATURE = "config.json", "weights.safetensors", "signature.json"
SHIPPED = Path(__file__).parent / "models"
_FORMAT = 1


def trusted(target: str) -> bool:
    """Whether a config may build this class: our own packages, and those that JACANA_TRUST lists."""
    extra = [name for name in os.environ.get("JACANA_TRUST", "").replace(",", " ").split() if name]
    return any(target.startswith(f"{package}.") for package in ["jacana_torch", *extra])


def build(config: Any) -> Any:
    """Instantiate a plain config: every mapping with a `_target_` becomes that object, from the inside out."""
    if isinstance(config, Mapping):
        arguments = {key: build(value) for key, value in config.items() if key not in ("_target_", "_partial_")}
        if "_target_" not in config:
            return arguments
        made = _find(config["_target_"], types.FunctionType if config.get("_partial_") else type)
        return functools.partial(made, **arguments) if config.get("_partial_") else _call(made, arguments)
    if isinstance(config, (list, tuple)):
        return [build(value) for value in config]
    return config


def _find(target: Any, kind: type) -> Any:
    """The class (or, for `_partial_`, the function) of that dotted name, defined in the module that the name says."""
    if not isinstance(target, str) or not trusted(target):
        raise ConfigError(
            f"the config names {target!r}, which is not of this package; if you trust it, set "
            f"JACANA_TRUST={str(target).split('.')[0]}"
        )
    module_name, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the config names {target!r}, which cannot be imported: {error}") from None
    if not isinstance(found, kind) or found.__module__ != module_name:
        raise ConfigError(f"the config names {target!r}, which is not a {kind.__name__} of {module_name}")
    return found


def _call(made: Any, arguments: dict[str, Any]) -> Any:
    try:
        inspect.signature(made).bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"{made.__module__}.{made.__name__}: {error}") from None
    return made(**arguments)


def save(model: Model, directory: str | Path, config: Mapping[str, Any], signature: Mapping[str, Any]) -> Path:
    """Write a model directory, whole or not at all; an existing model there is replaced."""
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        _write_state(fresh / WEIGHTS, model.state())
        _write_json(fresh / CONFIG, {"format": _FORMAT, **config})
        _write_json(fresh / SIGNATURE, {"version": __version__, **signature})
        fresh.chmod(0o755)
        if directory.exists():
            stale = Path(tempfile.mkdtemp(prefix=f".{directory.name}.old.", dir=directory.parent))
            os.replace(directory, stale / "model")
            os.replace(fresh, directory)
            shutil.rmtree(stale)
        else:
            os.replace(fresh, directory)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return directory


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")


def _write_state(path: Path, state: Mapping[str, np.ndarray | list[str]]) -> None:
    """Arrays as tensors; lists of names as metadata, which safetensors keeps as strings."""
    from safetensors.numpy import save_file

    arrays = {key: np.ascontiguousarray(value) for key, value in state.items() if isinstance(value, np.ndarray)}
    names = {key: json.dumps(value, ensure_ascii=False) for key, value in state.items() if isinstance(value, list)}
    save_file(arrays, path, metadata=names)


def _read_state(path: Path) -> dict[str, np.ndarray | list[str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            state: dict[str, np.ndarray | list[str]] = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        return state | {key: json.loads(value) for key, value in metadata.items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}: the weights cannot be read ({error}); is the file cut short?") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ModelError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: holds no object")
    return value


def read_config(directory: str | Path) -> dict[str, Any]:
    """The config of a model directory; clear errors for anything that is not one."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ModelError(f"there is no model {str(directory)!r}; shipped: {', '.join(names()) or 'none'}")
    missing = [name for name in (CONFIG, WEIGHTS) if not (directory / name).is_file()]
    if missing:
        raise ModelError(f"{directory}: not a model directory, {' and '.join(missing)} missing")
    config = _read_json(directory / CONFIG)
    if config.get("format") != _FORMAT:
        raise ModelError(f"{directory / CONFIG}: format {config.get('format')!r}; this version reads format {_FORMAT}")
    return config


def load(name_or_directory: str | Path, device: str = "cpu") -> Model:
    """A model by the name of a shipped one or by its directory."""
    directory = locate(name_or_directory)
    config = read_config(directory)
    config = _with_device(config, device)
    try:
        model = build(config["model"])
        model.restore(_read_state(directory / WEIGHTS))
    except KeyError as error:
        raise ModelError(f"{directory}: the model lacks {error}") from None
    except ConfigError as error:
        raise ModelError(f"{directory}: {error}") from None
    return model


def _with_device(config: dict[str, Any], device: str) -> dict[str, Any]:
    """The config with every `device` in it set: where a model was trained says nothing about where it will run."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: device if k == "device" else walk(v) for k, v in value.items()}
        return [walk(v) for v in value] if isinstance(value, list) else value

    return walk(config)


def locate(name_or_directory: str | Path) -> Path:
    """The directory of a model: a shipped one's name, or a path."""
    if isinstance(name_or_directory, str) and name_or_directory in names():
        return SHIPPED / name_or_directory
    return Path(name_or_directory)


@dataclass(frozen=True)
class ModelInfo:
    """A shipped model, as `jacana-torch models` lists it."""

    name: str
    path: Path
    description: str
    resources: tuple[str, ...]
    size: int
    signature: Mapping[str, Any]


def names() -> list[str]:
    """The shipped models' names."""
    return sorted(p.name for p in SHIPPED.iterdir() if (p / CONFIG).is_file()) if SHIPPED.is_dir() else []


def shipped() -> list[ModelInfo]:
    """The shipped models, the best first."""
    infos = []
    for name in names():
        path = SHIPPED / name
        config, signature = _read_json(path / CONFIG), _read_json(path / SIGNATURE)
        size = sum(f.stat().st_size for f in path.iterdir())
        resources = tuple(config.get("resources", ()))
        infos.append(ModelInfo(name, path, config.get("description", ""), resources, size, signature))
    return sorted(infos, key=lambda info: -float(info.signature.get("rank", 0)))


def best_available() -> str:
    """The best shipped model whose resources are on this machine."""
    from . import resources

    for info in shipped():
        if all(resources.available(name) for name in info.resources):
            return info.name
    raise JacanaError("no model is shipped with this installation; train one and name it with --model DIR")


def resources_of(config: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """The resources that a config's parts name, found by asking the parts themselves."""
    found: set[str] = set()

    def walk(value: Any) -> None:
        if hasattr(value, "resources"):
            found.update(value.resources)
        inner = vars(value).values() if hasattr(value, "__dict__") else ()
        for item in inner:
            for part in item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else [item]:
                if type(part).__module__.startswith("jacana_torch."):
                    walk(part)

    walk(config)
    return sorted(found)
