"""Warn when a model is scored on pairs that it was trained on: its scores say nothing about new text then.

Pairs are recognised by the checksums of the model's signature, wherever the file is and whatever its format.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..types import SentencePair
from . import persist


def warning(model: str | Path, pairs: Iterable[SentencePair]) -> str | None:
    """Say how many of the scored pairs the model was trained on; None if it saw none, or is no saved model."""
    directory = persist.locate(model)
    if not (directory / persist.SIGNATURE).is_file():
        return None
    return said(str(model), persist.trained_on(directory), pairs)


def said(model: str, known: frozenset[int], pairs: Iterable[SentencePair]) -> str | None:
    """As `warning`, given the checksums that the model knows."""
    if not known:
        return None
    scored = [pair.checksum in known for pair in pairs]
    if not any(scored):
        return None
    return (
        f"{model} was trained on {sum(scored)} of the {len(scored)} scored pairs, so its scores are too high for "
        "new text"
    )
