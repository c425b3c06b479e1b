"""A model is a directory: config.json (what to build), weights.safetensors (what was learnt), signature.json.

A model and what is to be said of it in; a directory out, and back. Nothing else is read from it, and what is built
is built by `construct`, which trusts no foreign classes.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..encoders.checkpoint import ENCODERS
from ..errors import ConfigError, JacanaError, MissingResource, ModelError
from ..util.build import build, trusted
from ..version import __version__
from . import untrained as systems
from .model import Model
from .renamed import renamed

__all__ = [
    "ModelInfo", "best_available", "build", "check_destination", "load", "locate", "names", "read_config",
    "read_signature", "resources_of", "save", "shipped", "trusted", "untrained", "write_json",
]  # fmt: skip

log = logging.getLogger(__name__)

CONFIG, WEIGHTS, SIGNATURE = "config.json", "weights.safetensors", "signature.json"
SHIPPED = Path(__file__).parent / "shipped"
_FORMAT = 1
_WRITER = "jacana_torch"  # the key of the version that wrote the weights


def check_destination(directory: str | Path) -> None:
    """Before any work: an error if writing a model there would delete anything but a model."""
    directory = Path(directory)
    if directory.is_dir():
        others = sorted({path.name for path in directory.iterdir()} - {CONFIG, WEIGHTS, SIGNATURE})
        if others:
            raise ModelError(
                f"{directory}: holds other things than a model ({', '.join(others[:3])}): name a new one"
            )
    elif directory.exists() or directory.is_symlink():
        raise ModelError(f"{directory}: is not a directory, so no model can be written there")


def save(model: Model, directory: str | Path, config: Mapping[str, Any], signature: Mapping[str, Any]) -> Path:
    """Write a model directory, whole or not at all; an existing model there is replaced.

    `config` holds what `build` makes the model of under "model"; see `ModelInfo` for what else it may say.
    """
    directory = Path(directory)
    check_destination(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        _write_state(fresh / WEIGHTS, model.state())
        write_json(fresh / CONFIG, {"format": _FORMAT, **config})
        write_json(fresh / SIGNATURE, {"version": __version__, **signature})
        fresh.chmod(0o755)
        for path in fresh.iterdir():  # weights are written for their owner alone, and models are for everybody
            path.chmod(0o644)
        _put_in_place(fresh, directory)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return directory


def _put_in_place(fresh: Path, directory: Path) -> None:
    """A directory that is not empty cannot be replaced in one step: the old model steps aside first."""
    if not directory.exists():
        os.replace(fresh, directory)
        return
    stale = Path(tempfile.mkdtemp(prefix=f".{directory.name}.old.", dir=directory.parent))
    os.replace(directory, stale / "model")
    try:
        os.replace(fresh, directory)
    except BaseException:
        os.replace(stale / "model", directory)
        raise
    finally:
        shutil.rmtree(stale, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """A JSON file, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def _write_state(path: Path, state: Mapping[str, np.ndarray | list[str]]) -> None:
    """Arrays as tensors; lists of names as metadata, which safetensors keeps as strings."""
    from safetensors.numpy import save

    arrays = {key: np.ascontiguousarray(value) for key, value in state.items() if isinstance(value, np.ndarray)}
    names = {key: json.dumps(value, ensure_ascii=False) for key, value in state.items() if isinstance(value, list)}
    # The version also makes the header of a model that has learnt nothing one that can be read.
    path.write_bytes(_in_order(save(arrays, {_WRITER: json.dumps(__version__), **names})))


def _in_order(content: bytes) -> bytes:
    """The same file with its header sorted: safetensors shuffles it, and equal models should be equal files."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


def _read_state(path: Path) -> dict[str, np.ndarray | list[str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            state: dict[str, np.ndarray | list[str]] = {key: file.get_tensor(key) for key in file.keys()}
            metadata = file.metadata() or {}
        return state | {key: json.loads(value) for key, value in metadata.items() if key != _WRITER}
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: the weights cannot be read ({error}); is the file cut short?") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: holds no object")
    return value


def read_config(directory: str | Path) -> dict[str, Any]:
    """The config of a model directory; clear errors for anything that is not one."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ModelError(
            f"there is no model {str(directory)!r}; shipped: {', '.join(names()) or 'none'}; "
            f"without training: {', '.join(systems.names()) or 'none'}"
        )
    missing = [name for name in (CONFIG, WEIGHTS) if not (directory / name).is_file()]
    if missing:
        raise ModelError(f"{directory}: not a model directory, {' and '.join(missing)} missing")
    config = _read_json(directory / CONFIG)
    if config.get("format") != _FORMAT:
        said = f"format {config.get('format')!r}; this version ({__version__}) reads format {_FORMAT}"
        raise ModelError(f"{directory / CONFIG}: {said}")
    if not isinstance(config.get("model"), dict):
        raise ModelError(f"{directory / CONFIG}: does not say what model to build")
    return renamed(config)


def load(name_or_directory: str | Path, device: str = "cpu") -> Model:
    """A model by the name of a shipped one, by that of an aligner that needs no training, or by its directory."""
    if _is_untrained(name_or_directory):
        return build(systems.model_config(str(name_or_directory)), device=device)
    directory = locate(name_or_directory)
    config = read_config(directory)
    state = _read_state(directory / WEIGHTS)
    try:
        model = build(config["model"], device=device)  # where it was trained says nothing about where it will run
        if not isinstance(model, Model):
            raise ConfigError(f"the config builds a {type(model).__name__}, which is no model")
        model.restore(state)
    except KeyError as error:
        raise ModelError(f"{directory}: the weights lack {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{directory}: config and weights do not fit each other ({error})") from error
    except ConfigError as error:
        raise ModelError(f"{directory}: {error}") from None
    if read_signature(directory).get("interrupted"):
        log.warning("%s: the training of this model was interrupted; resume=%s goes on", directory, directory)
    return model


def _is_untrained(name: str | Path) -> bool:
    """Whether that is an aligner's name; if it learns, and no such directory is there, that is told."""
    return (
        isinstance(name, str)
        and name not in names()
        and systems.path_of(name) is not None
        and (not Path(name).is_dir())
    )


def read_signature(directory: str | Path) -> dict[str, Any]:
    """What a model was trained on and how; empty where it does not say."""
    path = Path(directory) / SIGNATURE
    return _read_json(path) if path.exists() else {}


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

    @property
    def quick(self) -> bool:
        """Whether it reads no pretrained encoder: those need an extra, and are many times slower."""
        return not ENCODERS.intersection(self.resources)


def untrained() -> list[ModelInfo]:
    """The aligners that need no training, as `jacana-torch models` lists them."""
    infos = []
    for name in systems.names():
        model, path = build(systems.model_config(name)), systems.path_of(name)
        assert path is not None
        infos.append(ModelInfo(name, path, systems.description(name), tuple(model.resources), 0, {}))
    return infos


def names() -> list[str]:
    """The shipped models' names."""
    return sorted(p.name for p in SHIPPED.iterdir() if (p / CONFIG).is_file()) if SHIPPED.is_dir() else []


def shipped() -> list[ModelInfo]:
    """The shipped models, the best first."""
    infos = []
    for name in names():
        path = SHIPPED / name
        config, signature = read_config(path), read_signature(path)
        size = sum(file.stat().st_size for file in path.iterdir())
        resources = tuple(config.get("resources", ()))
        infos.append(ModelInfo(name, path, config.get("description", ""), resources, size, signature))
    return sorted(infos, key=lambda info: (-len(info.resources), info.name))  # more knowledge first


def best_available() -> str:
    """The best shipped model whose resources are on this machine; it says what better ones would need. One that
    reads an encoder is for those who ask for it by name."""
    from .. import resources

    models = [info for info in shipped() if info.quick]
    if not models:
        raise JacanaError("no model came with this installation; train one and name it with --model DIR")
    lacking = {info.name: [r for r in info.resources if not resources.available(r)] for info in models}
    told = [f"{name} needs {', '.join(names)} (jacana-torch resources install {' '.join(names)})"
            for name, names in lacking.items() if names]  # fmt: skip
    for info in models:
        if not lacking[info.name]:
            if told:
                log.info("models that this machine lacks resources for: %s", "; ".join(told))
            return info.name
    raise MissingResource(f"none of the models that came with this can run on this machine: {'; '.join(told)}")


def resources_of(model: Model) -> list[str]:
    """The resources that a model needs, as its parts name them."""
    return list(model.resources)
