"""Save and load models, and list those that come with the package.

A model is a directory of three files. `config.json` says what to build, `weights.safetensors` holds what was
learnt, and `signature.json` says what it was trained on and how. Loading reads nothing else, and builds only what
`build` allows. What a model names besides, it may read only if it is an installed resource, or if the user trusts
it. SECURITY.md says what this promises.
"""

from __future__ import annotations

import base64
import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aligners.base import Aligner, HasColumns, ReadsNatively, State, Trainable
from ..errors import ConfigError, JacanaError, MissingResource, ModelError, did_you_mean
from ..util import trust
from ..util.build import assemble, build, check
from ..version import __version__
from . import untrained as systems
from .model import Model, Origin
from .renamed import RENAMED
from .saving import CHECKSUMS as CHECKSUMS
from .saving import CONFIG as CONFIG
from .saving import FORMAT, WRITER
from .saving import SIGNATURE as SIGNATURE
from .saving import WEIGHTS as WEIGHTS
from .saving import _write_state as _write_state
from .saving import check_destination as check_destination
from .saving import save as save
from .saving import signed as signed
from .saving import write_json as write_json

if TYPE_CHECKING:
    from .info import ModelInfo

log = logging.getLogger(__name__)

SHIPPED = Path(__file__).parent / "shipped"
_CONFIG_KEYS = {"format": int, "description": str, "resources": list, "model": dict}
_MOST_CONFIG = 1 << 24  # bytes; those of our models have 5,000
_MOST_MESSAGE = 500  # letters of an error, which may quote what a file holds
_NATIVE = "native code of another package reads these weights, so load them only if you trust who made them"
_ADVICE = "; is this copy of the model whole, and of one training run? Copy or train it again"
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


# Loading


def load(
    name_or_directory: str | Path, device: str = "cpu", trust_files: bool = False, style: str | None = None
) -> Model:
    """Load a model: a shipped one or an aligner that needs no training by its name, any other by its directory.

    `style` names the convention to align by, if the model has learnt several; None is its usual one.
    With `trust_files`, the model may read every file and folder that its config names, as if JACANA_TRUST listed
    them. Shipped models are checked by the package's tests, and not again when they are loaded.
    """
    if not isinstance(device, str):
        raise ConfigError(f"device={device!r:.60} should be text, as in cuda:1")
    directory = locate(name_or_directory)
    if not directory.is_dir() and isinstance(name_or_directory, str) and systems.path_of(name_or_directory):
        made = systems.model_config(name_or_directory)
        built: Model = build(made, Model, device=device)
        built.origin = Origin(name_or_directory, {"model": made})
        return _styled(built, style)
    config, state = read_config(directory), _read_weights(directory / WEIGHTS)
    on_file = trust.add_file if trust_files else trust.check_file
    is_shipped = directory.parent == SHIPPED
    with _naming(directory / CONFIG):
        if not is_shipped:
            check(config["model"], Model, on_file)
        # The device of training says nothing about this machine.
        model: Model = assemble(config["model"], device=device)
        if not is_shipped and isinstance(model.aligner, ReadsNatively) and model.aligner.reads_natively:
            on_file(str(directory), _NATIVE)
    try:
        if is_shipped and isinstance(model.aligner, Trainable):
            model.aligner.restore(state)
        else:
            _restore(model.aligner, state)
    except (ConfigError, ModelError) as error:
        raise ModelError(f"{directory / WEIGHTS}: {str(error)[:_MOST_MESSAGE]}{_ADVICE}") from None
    except KeyError as error:
        raise ModelError(f"{directory / WEIGHTS}: the weights lack {error}{_ADVICE}") from None
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RuntimeError) as error:
        what = str(error)[:_MOST_MESSAGE]
        raise ModelError(f"{directory}: config and weights do not fit each other ({what}){_ADVICE}") from error
    signature = read_signature(directory)
    del config["format"]
    model.origin = Origin(directory.name, config, signature)
    if signature.get("interrupted"):
        log.warning("%s: the training of this model was interrupted; resume=%s continues", directory, directory)
    return model if style is None else _styled(model, style)


def _styled(model: Model, style: str | None) -> Model:
    """Return the model, which aligns by this style from now on."""
    if style is not None:
        from ..aligners.styles import Styled, no_style

        aligner, name = model.aligner, "" if model.origin is None else f"{model.origin.name}: "
        try:
            if not isinstance(aligner, Styled):
                raise no_style(style, ())
            aligner.choose(style)
        except ConfigError as error:
            raise ConfigError(f"{name}{error}") from None
        if model.origin is not None:
            model.origin = replace(model.origin, style=style)
    return model


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of a config name its file."""
    try:
        yield
    except ConfigError as error:
        raise ModelError(f"{path}: {str(error)[:_MOST_MESSAGE]}") from None


def _restore(aligner: Aligner, state: State) -> None:
    """Give an aligner its weights, all of which it has to use."""
    unused = set(state)
    if isinstance(aligner, Trainable):
        aligner.restore(state)
        if isinstance(aligner, HasColumns):
            aligner.check_columns()
        unused -= aligner.state().keys()
    if unused:
        raise ModelError(
            f"holds {', '.join(sorted(unused)[:3])[:200]}, which the aligner of the config "
            f"({type(aligner).__name__}) does not have"
        )


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
        near = did_you_mean(directory, [*names(), *systems.names()], listed=False)
        raise ModelError(
            f"there is no model {str(directory)!r}{near or ';'} shipped: {', '.join(names()) or 'none'}; "
            f"without training: {', '.join(systems.names()) or 'none'}"
        )
    for name in (CONFIG, WEIGHTS):
        if not (directory / name).is_file():
            raise ModelError(f"{directory}: not a model directory, {name} is missing")
    path = directory / CONFIG
    config = _read_json(path)
    if type(config.get("format")) is not int or config["format"] != FORMAT:
        raise ModelError(
            f"{path}: format {str(config.get('format'))[:60]!r}; this version ({__version__}) reads format "
            f"{FORMAT}"
        )
    if "model" not in config:
        raise ModelError(f"{path}: does not say what model to build")
    for key, value in config.items():
        if type(value) is not _CONFIG_KEYS.get(key):
            known = ", ".join(f"{name} ({kind.__name__})" for name, kind in _CONFIG_KEYS.items())
            raise ModelError(f"{path}: {key[:60]!r} is a {type(value).__name__}; a config has {known}")
    if not set(map(type, config.get("resources", ()))) <= {str}:
        raise ModelError(f"{path}: 'resources' should be a list of names")
    return config


def model_config(directory: str | Path) -> dict[str, Any]:
    """What `build` makes the model of; an error if `load` would not build it."""
    config: dict[str, Any] = read_config(directory)["model"]
    with _naming(Path(directory) / CONFIG):
        check(config, Model, trust.check_file)
    return config


def read_signature(directory: str | Path) -> dict[str, Any]:
    """What a model was trained on and how; empty if the directory does not say."""
    path = Path(directory) / SIGNATURE
    return _read_json(path) if path.exists() else {}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON file, with the present name of the class that its `_target_` names."""
    config = dict(pairs)
    if len(config) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!r} stands there twice")
    target = config.get("_target_")
    if isinstance(target, str) and target in RENAMED:
        config["_target_"] = RENAMED[target]
    return config


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _parsed(text: str) -> Any:
    """Parse JSON more strictly than Python does: without NaN, infinity and keys that come twice."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise ValueError("it is not a file")
        if (size := path.stat().st_size) > _MOST_CONFIG:
            raise ValueError(f"it has {size:,} bytes, and a config has a few thousand")
        value = _parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path}: is not a JSON object")
    return value


def read_state(directory: str | Path) -> State:
    """What the aligner of a model directory has learnt."""
    return _read_weights(Path(directory) / WEIGHTS)


def _read_weights(path: Path) -> State:
    """Read what `_write_state` wrote, and no more: the library takes duplicates, NaN and left-over bytes."""
    state: dict[str, np.ndarray | list[str]] = {}
    try:
        content = path.read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        if not 8 < end <= len(content):
            raise ValueError(f"it has {len(content)} bytes, and its header ends at {end}")
        header = _parsed(content[8:end].decode())
        if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
            raise ValueError("its header is not a JSON object")
        for name, value in header.pop("__metadata__", {}).items():
            if name == WRITER:
                continue
            state[name] = words = _parsed(value)
            if type(words) is not list or not set(map(type, words)) <= {str}:  # many, so no loop
                raise ValueError(f"{name[:60]!r} is not a list of words")
            "".join(words).encode()  # a half of a surrogate pair is no text
        places: dict[str, tuple[int, int]] = {}
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            places[name] = int(first), int(last)
        used = 0
        for name in sorted(places, key=places.__getitem__):
            if name in state:
                raise ValueError(f"{name[:60]!r} is both words and numbers")
            state[name] = _array(name, header[name], memoryview(content)[end:], used)
            used = places[name][1]
        if used != len(content) - end:
            raise ValueError(f"{len(content) - end - used} bytes belong to no array")
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        what = str(error)[:200] or type(error).__name__
        raise ModelError(f"{path}: the weights cannot be read ({what}){_ADVICE}") from None
    return state


def _array(name: str, entry: dict[str, Any], data: memoryview, begin: int) -> np.ndarray:
    """Return the array of an entry of the header, which has to start at `begin`."""
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in _DTYPES:
        raise ValueError(f"{name[:60]!r} is in {str(dtype)[:20]}; models have {', '.join(_DTYPES)}")
    kind = np.dtype(_DTYPES[dtype])
    if type(shape) is not list or not set(map(type, shape)) <= {int} or min(shape, default=0) < 0:
        raise ValueError(f"{name[:60]!r} has the shape {str(shape)[:60]}")
    end = begin + math.prod(shape) * kind.itemsize
    if place != [begin, end] or end > len(data):
        raise ValueError(
            f"{name[:60]!r} should be in bytes {begin} to {str(end)[:30]} of {len(data)}, and the header has "
            f"{str(place)[:60]}"
        )
    array: np.ndarray = np.frombuffer(data[begin:end], kind).reshape(shape).copy()
    if kind.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name[:60]!r} holds numbers that are not finite")
    return array


def trained_on(directory: str | Path) -> frozenset[int]:
    """The checksums of the pairs that a model was trained on; empty if its signature has none."""
    path = locate(directory)
    held = read_signature(path).get(CHECKSUMS, "")
    try:
        return frozenset(np.frombuffer(base64.b64decode(held, validate=True), dtype="<u8").tolist())
    except (TypeError, ValueError):
        raise ModelError(f"{path / SIGNATURE}: {CHECKSUMS!r} does not hold checksums of 8 bytes") from None


# The models of the package


def names() -> list[str]:
    """The names of the shipped models."""
    return sorted(p.name for p in SHIPPED.iterdir() if (p / CONFIG).is_file()) if SHIPPED.is_dir() else []


def shipped() -> list[ModelInfo]:
    """Return the shipped models. The first one reads most resources, and is the best."""
    from .info import ModelInfo

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
    from .info import ModelInfo

    infos = []
    for name in systems.names():
        model, path = build(systems.model_config(name)), systems.path_of(name)
        assert path is not None
        infos.append(ModelInfo(name, path, systems.description(name), tuple(model.resources), 0, {}))
    return infos


def best_available() -> str:
    """The name of the best shipped model whose resources are installed, and which is quick."""
    return best_and_skipped()[0]


def best_and_skipped() -> tuple[str, list[str]]:
    """As `best_available`, and for each better model what it needs and the command that installs it."""
    from .. import resources

    models = [info for info in shipped() if info.quick]
    if not models:
        raise JacanaError("this installation has no models; train one and name it with --model DIR")
    needs: list[str] = []
    for info in models:
        lacking = [name for name in info.resources if not resources.available(name)]
        if not lacking:
            return info.name, needs
        install = f"jacana-torch resources install {' '.join(lacking)}"
        needs.append(f"{info.name} needs {', '.join(lacking)} ({install})")
    raise MissingResource(f"no shipped model can run on this machine: {'; '.join(needs)}")
