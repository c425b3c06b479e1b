"""What is known of a model of the package without loading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..resources.catalogue import ENCODERS

SLOW = ENCODERS | {"spacy-en"}  # resources that need an extra, and make a model many times slower


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
        """Whether it reads neither a pretrained encoder nor spaCy's parse: only such a model is chosen unasked."""
        return SLOW.isdisjoint(self.resources)
