"""Save and load models, and list those that come with the package.

A model is a directory of three files. `config.json` says what to build, `weights.safetensors` holds what was
learnt, and `signature.json` says what it was trained on and how. Loading reads nothing else, and builds only
classes that `build` trusts.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..aligners.base import State, Trainable
from ..errors import ConfigError, JacanaError, MissingResource, ModelError
from ..resources.catalogue import ENCODERS
from ..resources.unfinished import put_in_place, unfinished, write_whole
from ..util.build import build
from ..version import __version__
from . import untrained as systems
from .model import Model
from .renamed import RENAMED

log = logging.getLogger(__name__)

CONFIG, WEIGHTS, SIGNATURE = "config.json", "weights.safetensors", "signature.json"
CHECKSUMS = "pair_checksums"  # in the signature
SHIPPED = Path(__file__).parent / "shipped"
_FORMAT = 1
_WRITER = "jacana_torch"  # the metadata key of the version that wrote the weights


# Saving


def check_destination(directory: str | Path) -> None:
    """Raise an error if writing a model to this directory would delete anything but a model."""
    directory = Path(directory)
    if directory.is_dir():
        others = sorted(set(os.listdir(directory)) - {CONFIG, WEIGHTS, SIGNATURE})
        if others:
            raise ModelError(
                f"{directory}: holds files that are not part of a model ({', '.join(others[:3])}): name a new "
                "directory"
            )
    elif directory.exists() or directory.is_symlink():
        raise ModelError(f"{directory}: is not a directory, so no model can be written there")


def save(
    model: Model,
    directory: str | Path,
    config: Mapping[str, Any],
    signature: Mapping[str, Any],
    durable: bool = False,
) -> Path:
    """Write a model directory completely or not at all, replacing a model that is already there.

    `config` holds what `build` makes the model of under "model", and optionally "description" and "resources". A
    `durable` model survives a loss of power from then on, which takes some milliseconds more.
    """
    directory = Path(directory)
    check_destination(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(directory.parent, folder=True) as fresh:
        _write_state(fresh / WEIGHTS, model.aligner.state() if isinstance(model.aligner, Trainable) else {})
        (fresh / CONFIG).write_bytes(_json({"format": _FORMAT, **config}))
        (fresh / SIGNATURE).write_bytes(_json({"version": __version__, **signature}))
        put_in_place(fresh, directory, durable)
    return directory


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file completely or not at all."""
    write_whole(path, _json(value))


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write_state(path: Path, state: State) -> None:
    """Write arrays as tensors, and lists of strings as metadata, for safetensors has no arrays of strings.

    The header is sorted afterwards: safetensors shuffles it, and equal models should be equal files. The version
    in the metadata also keeps the header of a model without any weights readable.
    """
    from safetensors.numpy import save

    arrays, metadata = {}, {_WRITER: json.dumps(__version__)}
    for key, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[key] = np.ascontiguousarray(value)
        else:
            metadata[key] = json.dumps(value, ensure_ascii=False)
    content = save(arrays, metadata)
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[end:])


# Loading


def load(name_or_directory: str | Path, device: str = "cpu") -> Model:
    """Load a model by the name of a shipped one, by that of an aligner that needs no training, or by directory."""
    directory = locate(name_or_directory)
    if not directory.is_dir() and isinstance(name_or_directory, str) and systems.path_of(name_or_directory):
        model = build(systems.model_config(name_or_directory), device=device)
        assert isinstance(model, Model)
        return model
    config, state = read_config(directory), read_state(directory)
    try:
        model = build(config["model"], device=device)  # the device of training says nothing about this machine
        if not isinstance(model, Model):
            raise ConfigError(f"the config builds a {type(model).__name__}, which is not a Model")
        if isinstance(model.aligner, Trainable):
            model.aligner.restore(state)
    except KeyError as error:
        raise ModelError(f"{directory}: the weights lack {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{directory}: config and weights do not fit each other ({error})") from error
    except ConfigError as error:
        raise ModelError(f"{directory}: {error}") from None
    if read_signature(directory).get("interrupted"):
        log.warning("%s: the training of this model was interrupted; resume=%s continues", directory, directory)
    return model


def locate(name_or_directory: str | Path) -> Path:
    """The directory of a model, which is given as a path or as the name of a shipped model."""
    directory = Path(name_or_directory)
    shipped = SHIPPED / directory.name
    is_name = isinstance(name_or_directory, str) and name_or_directory == directory.name
    return shipped if is_name and (shipped / CONFIG).is_file() else directory


def read_config(directory: str | Path) -> dict[str, Any]:
    """Read the config of a model directory, or raise an error that says why it is not one."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ModelError(
            f"there is no model {str(directory)!r}; shipped: {', '.join(names()) or 'none'}; "
            f"without training: {', '.join(systems.names()) or 'none'}"
        )
    for name in (CONFIG, WEIGHTS):
        if not (directory / name).is_file():
            raise ModelError(f"{directory}: not a model directory, {name} is missing")
    config = _read_json(directory / CONFIG)
    if config.get("format") != _FORMAT:
        raise ModelError(
            f"{directory / CONFIG}: format {config.get('format')!r}; this version ({__version__}) reads format "
            f"{_FORMAT}"
        )
    if not isinstance(config.get("model"), dict):
        raise ModelError(f"{directory / CONFIG}: does not say what model to build")
    return config


def read_signature(directory: str | Path) -> dict[str, Any]:
    """What a model was trained on and how; empty if the directory does not say."""
    path = Path(directory) / SIGNATURE
    return _read_json(path) if path.exists() else {}


def _with_present_names(config: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a JSON file, with the present name of the class that its `_target_` names."""
    target = config.get("_target_")
    if isinstance(target, str) and target in RENAMED:
        config["_target_"] = RENAMED[target]
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_hook=_with_present_names)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: is not a JSON object")
    return value


def read_state(directory: str | Path) -> State:
    """What the aligner of a model directory has learnt."""
    return _read_weights(Path(directory) / WEIGHTS)


def _read_weights(path: Path) -> State:
    from safetensors import SafetensorError, safe_open

    state: dict[str, np.ndarray | list[str]] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            for key in file.keys():
                state[key] = file.get_tensor(key)
            for key, value in (file.metadata() or {}).items():
                if key != _WRITER:
                    state[key] = json.loads(value)
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: the weights cannot be read ({error}); is the file truncated?") from None
    return state


def signed(checksums: Iterable[int]) -> dict[str, str]:
    """The entry of a signature that holds the checksums of the training pairs."""
    packed = np.array(sorted(checksums), dtype="<u8").tobytes()
    return {CHECKSUMS: base64.b64encode(packed).decode()}


def trained_on(directory: str | Path) -> frozenset[int]:
    """The checksums of the pairs that a model was trained on; empty if its signature has none."""
    path = locate(directory)
    held = read_signature(path).get(CHECKSUMS, "")
    try:
        return frozenset(np.frombuffer(base64.b64decode(held, validate=True), dtype="<u8").tolist())
    except (TypeError, ValueError):
        raise ModelError(f"{path / SIGNATURE}: {CHECKSUMS!r} does not hold checksums of 8 bytes") from None


# The models of the package


@dataclass(frozen=True)
class ModelInfo:
    """A model of the package, as `jacana-torch models` lists it; `size` is in bytes."""

    name: str
    path: Path
    description: str
    resources: tuple[str, ...]
    size: int
    signature: Mapping[str, Any]

    @property
    def quick(self) -> bool:
        """Whether it reads no pretrained encoder. Those need an extra, and are many times slower."""
        return not ENCODERS.intersection(self.resources)


def names() -> list[str]:
    """The names of the shipped models."""
    return sorted(p.name for p in SHIPPED.iterdir() if (p / CONFIG).is_file()) if SHIPPED.is_dir() else []


def shipped() -> list[ModelInfo]:
    """The shipped models, the best first: those that read most resources."""
    infos = []
    for name in names():
        path = SHIPPED / name
        config, signature = read_config(path), read_signature(path)
        size = sum(file.stat().st_size for file in path.iterdir())
        resources = tuple(config.get("resources", ()))
        infos.append(ModelInfo(name, path, config.get("description", ""), resources, size, signature))
    return sorted(infos, key=lambda info: (-len(info.resources), info.name))


def untrained() -> list[ModelInfo]:
    """The aligners that need no training."""
    infos = []
    for name in systems.names():
        model, path = build(systems.model_config(name)), systems.path_of(name)
        assert path is not None
        infos.append(ModelInfo(name, path, systems.description(name), tuple(model.resources), 0, {}))
    return infos


def best_available() -> str:
    """The name of the best shipped model whose resources are installed, and which reads no encoder."""
    from .. import resources

    models = [info for info in shipped() if info.quick]
    if not models:
        raise JacanaError("this installation has no models; train one and name it with --model DIR")
    missing = {info.name: [r for r in info.resources if not resources.available(r)] for info in models}
    needs = [
        f"{name} needs {', '.join(lacking)} (jacana-torch resources install {' '.join(lacking)})"
        for name, lacking in missing.items()
        if lacking
    ]
    for info in models:
        if not missing[info.name]:
            if needs:
                log.info("models that this machine lacks resources for: %s", "; ".join(needs))
            return info.name
    raise MissingResource(f"no shipped model can run on this machine: {'; '.join(needs)}")
