"""The learnt weights of networks as named arrays, in half precision, which is finer than training resolves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...encoders import checkpoint
from ...errors import ConfigError, ModelError
from ..base import numbers_in, words_in
from .inputs import Columns
from .network import ENCODER, SIZE, GridNetwork

_FILE = "weights.safetensors"
ENCODED = "encoder"  # in the state: the checksum of an encoder that is no resource
_COLUMNS = ("values", "marks")
_LARGEST = 65504.0  # of half precision
_PARTS = ("", "network.")  # the prefix of a neural model's arrays, by itself or within a mixed one


def rounded(networks: Sequence[GridNetwork]) -> None:
    """Round weights to half precision in place, so that saving a model does not change its output."""
    with torch.no_grad():
        for network in networks:
            for parameter in network.learnt().values():
                parameter.copy_(parameter.half().float())


def arrays(networks: Sequence[GridNetwork], shared: bool) -> dict[str, np.ndarray]:
    """The weights by `member.parameter`; an encoder that the networks share belongs to the first."""
    return {
        f"{member}.{name}": parameter.detach().half().cpu().numpy()
        for member, network in enumerate(networks)
        for name, parameter in network.learnt().items()
        if not (shared and member and name.startswith(ENCODER))
    }


def fill(network: GridNetwork, member: int, kept: Mapping[str, np.ndarray]) -> None:
    """Copy the weights of a member into a network of the same shape; members that were not kept reuse others."""
    there = sorted({int(name.partition(".")[0]) for name in kept})
    for name, parameter in network.learnt().items():
        own = f"{there[member % len(there)]}.{name}"
        value = kept.get(own, kept.get(f"0.{name}") if name.startswith(ENCODER) else None)
        if value is None or value.shape != tuple(parameter.shape):
            found = "is missing" if value is None else f"has the shape {value.shape}, not {tuple(parameter.shape)}"
            raise ModelError(f"the weight {own} {found}: it was trained with other settings")
        if not np.isfinite(value).all():
            raise ModelError(f"the weight {own} holds values that are not finite")
        with torch.no_grad():
            parameter.copy_(torch.as_tensor(value, dtype=torch.float32))


def split(state: Mapping[str, Any]) -> tuple[Columns, dict[str, np.ndarray]]:
    """Separate an aligner's state into its columns and its weights."""
    values, marks = (words_in(state, key) for key in _COLUMNS)
    mean = numbers_in(state, "mean", len(values)).astype(np.float32)
    spread = numbers_in(state, "spread", len(values), least=1e-6).astype(np.float32)
    kept = {k: np.asarray(v) for k, v in state.items() if k not in (*_COLUMNS, "mean", "spread", ENCODED)}
    for name in kept:
        if not name.partition(".")[0].isdecimal():
            raise ConfigError(f"{name!r} is not a weight of a neural aligner")
    return Columns(values, marks, mean, spread), kept


def encoder_in(state: Mapping[str, Any]) -> str:
    """The checksum of the encoder that a state was trained with; empty for a resource, or none."""
    found = words_in(state, ENCODED) if ENCODED in state else [""]
    if len(found) != 1:
        raise ConfigError(f"{ENCODED!r} should be one checksum")
    return found[0]


def check_encoder(name: str | None, trained_with: str) -> None:
    """Raise an error if an encoder is not the one of that checksum, which a model was trained with."""
    if trained_with and (name is None or checkpoint.checksum(name) != trained_with):
        raise ModelError(
            f"the encoder {name!r} is not the one that the model was trained with: its files have changed, or are "
            "those of another. Put the old ones back, or train the model again"
        )


def check(kept: Mapping[str, np.ndarray], members: int, network: GridNetwork, views: int | None) -> None:
    """Raise an error unless these are the weights of so many networks of the shape of one, which has no encoder.

    `views` are those of an encoder, or None without one. Its own weights are checked when it is opened.
    """
    expected: dict[str, list[int | None]] = {name: [*p.shape] for name, p in network.learnt().items()}
    if views is not None:
        expected["values.weight"][1] = None  # the columns and the layers and views of the encoder
        for side in ("source", "target"):
            expected[f"contextual.{side}.weight"] = [views * SIZE, None]
            expected[f"contextual.{side}.bias"] = [views * SIZE]
    for name, value in kept.items():
        if value.dtype.kind != "f" or not (np.abs(value) <= _LARGEST).all():
            raise ModelError(f"the weight {name} holds values that are not finite, or larger than {_LARGEST:g}")
    numbers = {name.partition(".")[0] for name in kept}
    if numbers != set(map(str, range(members))):
        raise ModelError(f"there are weights of {len(numbers)} networks, and members={members}")
    for member in numbers:
        own = {name.removeprefix(f"{member}."): v for name, v in kept.items() if name.startswith(f"{member}.")}
        if views is not None:
            own = {name: value for name, value in own.items() if not name.startswith(ENCODER)}
        for name in {**expected, **own}:
            if name not in expected or name not in own:
                what = "is missing" if name in expected else "is not a weight of this network"
                raise ModelError(f"the weight {member}.{name} {what}: it was trained with other settings")
            shape, wanted = own[name].shape, expected[name]
            if len(shape) != len(wanted) or any(n not in (None, m) for n, m in zip(wanted, shape, strict=True)):
                raise ModelError(
                    f"the weight {member}.{name} has the shape {shape}, and should have {wanted}: it was trained "
                    "with other settings"
                )


def joined(
    columns: Columns, kept: Mapping[str, np.ndarray], trained_with: str
) -> dict[str, np.ndarray | list[str]]:
    """Join columns, weights and the checksum of the encoder into an aligner's state; the inverse of `split`."""
    both = {"values": list(columns.values), "marks": list(columns.marks)}
    known = {ENCODED: [trained_with]} if trained_with else {}
    return {**both, "mean": columns.mean, "spread": columns.spread, **known, **kept}


def read(directory: str) -> dict[str, Any]:
    """Read the state of a neural model from its directory, to start training from."""
    from safetensors import SafetensorError, safe_open

    folder = Path(directory).expanduser()
    path = next((p for p in (folder / _FILE, folder / "model" / _FILE) if p.is_file()), None)
    if path is None:
        raise ConfigError(f"start={directory!r}: there is no model to start from (no {_FILE} in it)")
    try:
        with safe_open(path, framework="numpy") as file:
            state: dict[str, Any] = {key: file.get_tensor(key) for key in file.keys()}
            named = file.metadata() or {}
        part = next((part for part in _PARTS if part + _COLUMNS[0] in named), "")
        own = {key.removeprefix(part): array for key, array in state.items() if key.startswith(part)}
        words = [*_COLUMNS, *(key for key in (ENCODED,) if part + key in named)]
        return own | {key: json.loads(named[part + key]) for key in words}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"start={directory!r}: {path} holds no neural model ({error})") from None
