"""What a model proposes for each pair: links to start from, and how many mistakes they are expected to have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError, PairError
from ..types import Alignment, Example, Link
from .order import expected_mistakes

if TYPE_CHECKING:
    from ..model.model import Model

BATCH = 256  # pairs
SHOWN = 0.05  # cells that are less probable are not shaded


@dataclass(frozen=True)
class Proposal:
    """Links to start from; the probabilities of likely cells; and the expected number of mistakes, if known."""

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()
    likely: tuple[tuple[int, int, float], ...] = ()
    mistakes: float | None = None

    def to_list(self) -> list[Any]:
        return [sorted(self.sure), sorted(self.possible), self.likely, self.mistakes]

    @classmethod
    def of_list(cls, given: Sequence[Any]) -> Proposal:
        sure, possible, likely, mistakes = given
        links = [frozenset((i, j) for i, j in some) for some in (sure, possible)]
        return cls(links[0], links[1], tuple((i, j, p) for i, j, p in likely), mistakes)


def proposals(model: Model | None, examples: Sequence[Example]) -> list[Proposal]:
    """Return a proposal for each example: its own links if it has some, else the model's."""
    if model is None:
        return [_given(example) or Proposal(frozenset()) for example in examples]
    found: list[Proposal] = []
    for start in range(0, len(examples), BATCH):
        try:
            found += _batch(model, examples[start : start + BATCH])
        except PairError as error:
            raise PairError(error.reason, start + error.number if error.number else None) from None
    return found


def _batch(model: Model, examples: Sequence[Example]) -> list[Proposal]:
    from ..aligners.base import PosteriorOfCells

    worded = [k for k, one in enumerate(examples) if one.pair.source.tokens and one.pair.target.tokens]
    pairs = model.prepare([examples[k].pair for k in worded])
    aligned = model.align(pairs)
    posteriors = None
    if isinstance(model.aligner, PosteriorOfCells):
        posteriors = model.aligner.posteriors(pairs)
    out = [_given(example) or Proposal(frozenset()) for example in examples]
    for number, k in enumerate(worded):
        posterior = None if posteriors is None else posteriors[number]
        out[k] = _proposal(examples[k], aligned[number], posterior)
    return out


def _given(example: Example) -> Proposal | None:
    return None if example.gold is None else Proposal(example.gold.sure, example.gold.possible)


def _proposal(example: Example, found: Alignment, posterior: np.ndarray | None) -> Proposal:
    start = found if example.gold is None else example.gold
    if posterior is None:  # only the links that the model chose have a probability
        known = tuple((i, j, round(p, 4)) for (i, j), p in sorted(found.confidence.items()))
        mistakes = sum(1 - p for p in found.confidence.values()) if known or not found.sure else None
        return Proposal(start.sure, start.possible, known, mistakes)
    cells = [(int(i), int(j), round(float(posterior[i, j]), 4)) for i, j in np.argwhere(posterior >= SHOWN)]
    return Proposal(start.sure, start.possible, tuple(cells), expected_mistakes(posterior, start))


def ordered(found: Sequence[Proposal], by: str, seed: str) -> list[int]:
    """Return the numbers of the pairs in the order in which they should be annotated."""
    numbers = list(range(len(found)))
    if by == "random":
        random.Random(seed).shuffle(numbers)
    elif by == "confidence":
        if any(one.mistakes is None for one in found):
            raise ConfigError(
                "--order confidence needs a model that gives probabilities (core, standard, or one trained with "
                "aligner=crf): choose another --model, --order file or --order random"
            )
        numbers.sort(key=lambda k: -(found[k].mistakes or 0.0))
    return numbers
