"""Where an encoder lies, and how it is opened: the name of a resource or a folder in, tokenizer and network out.

Any local checkpoint in the format of `transformers` with safetensors weights; nothing is downloaded, no code of a
checkpoint is run, and pickled weights are refused.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import resources
from ..errors import ConfigError, MissingResource
from ..resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

INSTALL = "pip install 'jacana-torch[neural]'"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
ENCODERS = frozenset(row.name for row in CATALOGUE.values() if set(_FILES) <= set(row.files))
_PIECES = 512  # where neither tokenizer nor network says how much it takes


@dataclass(frozen=True)
class Tokenizer:
    """`longest`: how many pieces the encoder takes at once, those that the tokenizer adds among them."""

    split: Any  # transformers' fast tokenizer
    longest: int


def resource_of(name: str) -> tuple[str, ...]:
    """The resources that an encoder of that name reads: a folder of the user's own is none."""
    return (name,) if name in CATALOGUE else ()


def check_package() -> None:
    """An error that names the command, before any work, where the package is not there."""
    if find_spec("transformers") is None:
        raise MissingResource(f"encoders need the package transformers: {INSTALL}")


def located(name: str) -> Path:
    """The folder of a checkpoint: a resource's name, or a path. A missing file is named."""
    folder = resources.path(name) if name in CATALOGUE else Path(name).expanduser()
    lacking = [file for file in _FILES if not (folder / file).is_file()]
    if lacking:
        raise ConfigError(
            f"the encoder {name!r} is neither one of {', '.join(sorted(ENCODERS))} nor a folder with "
            f"{', '.join(_FILES)} (lacking: {', '.join(lacking)})"
        )
    return folder


@lru_cache(maxsize=4)
def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a checkpoint, opened once a process."""
    check_package()
    from transformers import AutoConfig, AutoTokenizer

    folder = located(name)
    with _understood(name):
        split = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not split.is_fast:
        raise ConfigError(f"the encoder {name!r} has a tokenizer that does not tell which word a piece is of")
    longest = min(split.model_max_length, getattr(config, "max_position_embeddings", _PIECES), _PIECES)
    return Tokenizer(split, longest)


def network(name: str) -> torch.nn.Module:
    """A network of its own with the weights of a checkpoint, without what pools a sentence; not to be trained."""
    check_package()
    from transformers import AutoModel
    from transformers.utils import logging as told

    told.disable_progress_bar()  # stderr is for people
    with _understood(name):
        made = AutoModel.from_pretrained(
            located(name), local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
    if getattr(made, "pooler", None) is not None:
        made.pooler = None
    return made.float().requires_grad_(False).eval()


@contextmanager
def _understood(name: str) -> Iterator[None]:
    """What transformers raises for a damaged or foreign folder is the user's to mend, so it is told as such."""
    try:
        yield
    except (OSError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ConfigError(f"the encoder {name!r} cannot be opened: {reason}") from None
