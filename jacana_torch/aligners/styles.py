"""The protocol of aligners that learn several conventions of what to link, their styles."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from ..errors import ConfigError, did_you_mean
from .base import Aligner


@runtime_checkable
class Styled(Aligner, Protocol):
    """May learn several conventions, and aligns by one of them."""

    @property
    def learns_styles(self) -> bool:
        """Whether `fit` tells the styles of examples apart."""
        ...

    @property
    def styles(self) -> tuple[str, ...]:
        """The names of the conventions; none if it has learnt one alone."""
        ...

    def choose(self, style: str | None) -> None:
        """Align by a style from now on; None: by the usual one. ConfigError if there is no such style."""
        ...


def no_style(style: str, styles: Collection[str]) -> ConfigError:
    """Return the error for a style that a model does not have."""
    if not styles:
        return ConfigError(f"there is no style {style!r}: this model has learnt one convention alone")
    return ConfigError(f"there is no style {style!r}{did_you_mean(style, styles)}")
