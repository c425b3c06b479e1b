"""Write model directories, completely or not at all; persist.py reads them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..aligners.base import ReadsNatively, State, Trainable
from ..errors import ModelError
from ..resources.store import put_in_place, unfinished, write_whole
from ..version import __version__
from .model import Model

CONFIG, WEIGHTS, SIGNATURE = "config.json", "weights.safetensors", "signature.json"
CARD = "card.json"  # of the package's models: what was measured; it goes with the weights that it is of
CHECKSUMS = "pair_checksums"  # in the signature
FORMAT = 1
WRITER = "jacana_torch"  # the metadata key of the version that wrote the weights


def check_destination(directory: str | Path) -> None:
    """Raise an error if writing a model to this directory would delete anything but a model."""
    directory = Path(directory)
    if directory.is_dir():
        others = sorted(set(os.listdir(directory)) - {CONFIG, WEIGHTS, SIGNATURE, CARD})
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
        (fresh / CONFIG).write_bytes(_json({"format": FORMAT, **config}))
        (fresh / SIGNATURE).write_bytes(_json({"version": __version__, **signature}))
        put_in_place(fresh, directory, durable)
    if isinstance(model.aligner, ReadsNatively) and model.aligner.reads_natively:  # `load` asks for trust
        from ..util import trust

        trust.add_file(str(directory))
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

    arrays, metadata = {}, {WRITER: json.dumps(__version__)}
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


def signed(checksums: Iterable[int]) -> dict[str, str]:
    """The entry of a signature that holds the checksums of the training pairs."""
    packed = np.array(sorted(checksums), dtype="<u8").tobytes()
    return {CHECKSUMS: base64.b64encode(packed).decode()}
