"""The protocol of aligners whose training several processes can share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..types import Example
from .training import Checkpoint, Resumable


@runtime_checkable
class InParts(Resumable, Protocol):
    """Has parts that are trained without each other, so that several processes can share its training.

    A part is a phase of the training: `fit` with the same checkpoint takes what the part ended with.
    """

    def parts(self, examples: Sequence[Example]) -> Sequence[str]: ...

    def fit_part(self, part: str, examples: Sequence[Example], checkpoint: Checkpoint) -> None: ...
