"""What every alignment can show of itself. It holds no words: who made it attaches the pair, or it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import JacanaError
from .kind import kinds

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..types import Alignment, SentencePair

    Words: TypeAlias = SentencePair | tuple[str | Sequence[str], str | Sequence[str]]


class Drawn:
    """For Alignment, which has `n_source`, `n_target`, `sure`, `possible` and `confidence`.

    In what follows `pair` is a SentencePair, or two sentences as lists of tokens or as strings with spaces
    between tokens; alignments that a model made know theirs. `gold` is another alignment of them, to tell hits
    from errors.
    """

    pair: Any = None

    def to_text(
        self: Any, pair: Words | None = None, *, gold: Alignment | None = None, ascii: bool = False
    ) -> str:
        """A grid of characters for terminals."""
        from .text import grid

        source, target = self._words(pair)
        return grid(source, target, self._kinds(gold), self.confidence, ascii=ascii)

    def to_html(self: Any, pair: Words | None = None, *, gold: Alignment | None = None) -> str:
        """A picture to put into a page: an SVG element that needs nothing else. (`jacana_torch.view.page` makes
        whole pages.)"""
        from .picture import svg

        source, target = self._words(pair)
        return svg(source, target, self._kinds(gold), self.confidence)

    def to_matplotlib(
        self: Any, pair: Words | None = None, *, gold: Alignment | None = None, ax: Any = None
    ) -> Any:
        """Matplotlib axes with the alignment as a matrix; drawn on `ax` where that is given."""
        from .plot import plot

        source, target = self._words(pair)
        return plot(source, target, self._kinds(gold), self.confidence, ax)

    def _repr_html_(self) -> str | None:
        """What notebooks show; without words, they show the text."""
        return None if self.pair is None else self.to_html()

    def _kinds(self: Any, gold: Alignment | None) -> dict:
        if gold is not None and (gold.n_source, gold.n_target) != (self.n_source, self.n_target):
            raise JacanaError(
                f"gold is of {gold.n_source} x {gold.n_target} tokens and this alignment of {self.n_source} x "
                f"{self.n_target}: both must be of the same tokens, in the same direction"
            )
        return kinds(self, gold)

    def _words(self: Any, pair: Words | None) -> tuple[Sequence[str], Sequence[str]]:
        pair = self.pair if pair is None else pair
        if pair is None:
            raise JacanaError("this alignment does not know its words: give the pair that it is of")
        sides: Any = pair if isinstance(pair, tuple) else (pair.source, pair.target)
        source, target = (
            side.split() if isinstance(side, str) else getattr(side, "tokens", side) for side in sides
        )
        if (len(source), len(target)) != (self.n_source, self.n_target):
            raise JacanaError(
                f"this alignment is of {self.n_source} x {self.n_target} tokens, and the pair has "
                f"{len(source)} x {len(target)}: give the tokens that were aligned"
            )
        return source, target
