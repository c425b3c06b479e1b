"""Open an encoder, given as the name of a resource or as a folder: its tokenizer and its network.

Any local checkpoint in the format of `transformers` with safetensors weights will do. Nothing is downloaded, no
code of a checkpoint is run, and pickled weights are refused.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .. import resources
from ..errors import ConfigError, MissingResource
from ..resources.catalogue import CATALOGUE, ENCODER_FILES, ENCODERS
from ..util.build import OnDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

Encoder = Annotated[str, OnDisk(ENCODERS.__contains__)]
_AGAIN = (
    """python -c "from transformers import Auto{0} as A; A.from_pretrained('{1}').save_pretrained('{1}'{2})\""""
)
_ONE_FILE = ", max_shard_size='99GB'"
INSTALL = "pip install 'jacana-torch[neural]'"
_PIECES = 512  # the longest window if neither tokenizer nor network sets one


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer and the limit of its encoder."""

    split: Any  # transformers' fast tokenizer
    longest: int  # the most pieces of a window, including those that the tokenizer adds


def resource_of(name: str) -> tuple[str, ...]:
    """The resources that an encoder of that name reads: none if it is a folder."""
    return (name,) if name in CATALOGUE else ()


def check_package() -> None:
    """Raise an error with the command that installs transformers, if it is missing."""
    if find_spec("transformers") is None:
        raise MissingResource(f"encoders need the package transformers. Install it with: {INSTALL}")


def located(name: str) -> Path:
    """The folder of a checkpoint, given as a resource's name or a path."""
    folder = resources.path(name) if name in CATALOGUE else Path(name).expanduser()
    missing = [file for file in ENCODER_FILES if not (folder / file).is_file()]
    if missing:
        raise ConfigError(
            f"the encoder {name!r} is neither one of {', '.join(sorted(ENCODERS))} nor a folder with "
            f"{', '.join(ENCODER_FILES)} (missing: {', '.join(missing)}){_remedy(name, folder, missing)}"
        )
    return folder


def _remedy(name: str, folder: Path, missing: Sequence[str]) -> str:
    """What to do about a checkpoint that lacks files; empty for a folder that is none."""
    if not (folder / "config.json").is_file():
        return ": give the folder of a checkpoint, as save_pretrained writes it"
    advice = ""
    if "model.safetensors" in missing:
        if any(folder.glob("*.bin")):
            advice = ". Its weights are pickles, which run code: open them only if you trust who made them"
        advice += f". To write safetensors in one file: {_AGAIN.format('Model', name, _ONE_FILE)}"
    if "tokenizer.json" in missing:
        advice += f". It has no fast tokenizer. To make one: {_AGAIN.format('Tokenizer', name, '')}"
    return advice


def checksum(name: str) -> str:
    """The SHA-256 of a checkpoint's files, by which a model knows the encoder that it was trained with."""
    from ..resources.download import sha256

    folder = located(name)
    return hashlib.sha256("".join(sha256(folder / file) for file in ENCODER_FILES).encode()).hexdigest()


@lru_cache(maxsize=4)
def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a checkpoint, opened once per process."""
    check_package()
    from transformers import AutoConfig, AutoTokenizer

    folder = located(name)
    with _readable_errors(name):
        split = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not split.is_fast:
        raise ConfigError(
            f"the encoder {name!r} has a slow tokenizer, which does not map pieces to words: it needs a fast one"
        )
    _begin_words_with_spaces(split.backend_tokenizer.pre_tokenizer)
    places, pad = getattr(config, "max_position_embeddings", _PIECES), getattr(config, "pad_token_id", None)
    if pad:  # RoBERTa and its kin number positions from the one after the padding's
        places -= pad + 1
    return Tokenizer(split, min(split.model_max_length, places, _PIECES))


def _begin_words_with_spaces(splitter: Any) -> None:
    """Have a byte-level tokenizer read each word as it stands within a sentence: with the space before it."""
    from tokenizers.pre_tokenizers import ByteLevel, Sequence

    steps: Any = splitter if isinstance(splitter, Sequence) else (splitter,)
    for one in steps:
        if isinstance(one, ByteLevel):
            one.add_prefix_space = True


def network(name: str) -> torch.nn.Module:
    """A new network with the frozen weights of a checkpoint, without its sentence pooler."""
    check_package()
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with _readable_errors(name):
        made: torch.nn.Module = AutoModel.from_pretrained(
            located(name), local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
    if made.config.is_encoder_decoder:  # type: ignore[union-attr]
        raise ConfigError(f"the encoder {name!r} has a decoder as well: give a model like BERT or RoBERTa")
    if "pooler" in dict(made.named_children()):
        made.register_module("pooler", None)
    return made.float().requires_grad_(False).eval()


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Turn what transformers raises for a damaged or foreign folder into an error that names the encoder."""
    try:
        yield
    except (OSError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ConfigError(f"the encoder {name!r} cannot be opened: {reason}") from None
