"""Links by their posterior under both directions of a chain: the `posterior` symmetrizer, and its calibration.

How much each direction counts is learnt from held-out pairs (calibration.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import starmap
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ..crf.kernel import Flat
from ..crf.layout import Layout
from ..crf.links import alignments_of, decoded, expected_f1_links, link_posteriors, unsettled
from ..crf.scores import node_scores
from ..errors import ConfigError
from ..features.grid import Grid, grids
from ..symmetrize import Symmetrizer
from ..types import Alignment, SentencePair
from ..util.build import Inside, OneOf, Seed, Within

if TYPE_CHECKING:
    from .crf import Crf

DECIDE = ("threshold", "f1")
UNLIKELY = 1e-4  # links that no choice by expected F1 would hold
CERTAIN = 1e-6  # probabilities nearer to 0 or 1 are taken for this near
MOST = 1e6  # of the parameters; those of trained models are below 2
KEY = "together"  # of the parameters in a model's state
SHARED = ""  # in place of a style: the combination for the weights that styles share, or of a model without styles


@dataclass(frozen=True)
class Combination:
    """The log-odds of a link, as a linear function of those of two directions.

    They are `forward` and `backward` times the directions' log-odds, plus `smaller` times the smaller of the two,
    plus `bias`. Cells whose probability is at least `threshold` are links. A chain gives a word one link: if gold
    has several, one of the directions must miss all but one. Its doubt means little, so `smaller` is mostly below
    0.

    The defaults, for models that were not calibrated, are what two corpora and several feature sets agreed on.
    """

    forward: float = 0.36
    backward: float = 0.41
    bias: float = 0.24
    threshold: float = 0.5
    smaller: float = 0.0

    def combine(self, forward: np.ndarray, backward: np.ndarray, least: float = 0.0) -> np.ndarray:
        """Return [C] probabilities; those below `least` may be given as 0, which saves time."""
        both = self.forward + self.backward + self.smaller
        least_weight = min(self.forward, self.backward) + min(self.smaller, 0.0)
        if least > 0 and least_weight >= 0 and both >= 1e-3:  # else a higher posterior may make a link less likely
            # One direction at least must give this to a cell whose combined probability is `least`.
            least_odds = (math.log(least / (1 - least)) - self.bias) / both
            lowest = min((1 - 1e-6) / (1 + math.exp(min(-least_odds, 700.0))), 1 - CERTAIN)
            if lowest > CERTAIN:
                out = np.zeros(len(forward))
                likely = np.flatnonzero(np.maximum(forward, backward) >= lowest)
                out[likely] = self.combine(forward[likely], backward[likely])
                return out
        one, other = log_odds(forward), log_odds(backward)
        odds = self.forward * one + self.backward * other + self.smaller * np.minimum(one, other) + self.bias
        return logistic(odds)

    def state(self, style: str = SHARED) -> dict[str, np.ndarray]:
        return {f"{KEY}.{style}" if style else KEY: np.array(astuple(self))}

    @classmethod
    def restored(cls, state: Mapping[str, object], style: str = SHARED) -> Combination:
        """Return the combination of a style that a model's state holds, else the shared one, else the default."""
        key = f"{KEY}.{style}" if style and f"{KEY}.{style}" in state else KEY
        if key not in state:
            return cls()
        figures = np.asarray(state[key], dtype=np.float64)
        fine = figures.shape in ((4,), (5,)) and (np.abs(figures) < MOST).all() and 0 < figures[3] < 1
        if not fine:
            raise ConfigError(
                f"{key!r} holds {figures.tolist()}: expected two weights, a bias and a threshold, and perhaps the "
                "weight of the smaller"
            )
        return cls(*figures.tolist())  # a model of an older version has four figures

    def __str__(self) -> str:
        return (
            f"log-odds {self.forward:.3f} forward + {self.backward:.3f} backward + {self.smaller:.3f} the smaller "
            f"+ {self.bias:.3f}, links from {self.threshold:.2f}"
        )


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    p = np.clip(probabilities, CERTAIN, 1 - CERTAIN)
    odds: np.ndarray = np.log(p) - np.log1p(-p)
    return odds


def logistic(odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # of odds below -700, whose probability is 0
        p: np.ndarray = 1 / (1 + np.exp(-odds))
    return p


@dataclass(frozen=True)
class Posterior:
    """Choose links by their combined posterior under two chains.

    `decide`     `threshold`: the links at least as likely as the threshold; `f1`: those of the highest expected
                 F1 of each pair.
    `threshold`  null: the learnt threshold, 0.5 before calibration.
    `folds`      number of folds of the training pairs for calibration; 0: no calibration.
    """

    decide: Annotated[str, OneOf(DECIDE)] = "threshold"
    threshold: Inside | None = None
    folds: Annotated[int, Within(0, 1000)] = 5
    seed: Seed = 1

    def __post_init__(self) -> None:
        if self.decide not in DECIDE:
            raise ConfigError(f"symmetrize.decide={self.decide!r}: choose {' or '.join(DECIDE)}")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ConfigError(
                f"symmetrize.threshold={self.threshold}: between 0 and 1, or null for the learnt one"
            )
        if type(self.folds) is not int or self.folds < 0 or self.folds == 1:
            raise ConfigError(f"symmetrize.folds={self.folds!r}: two or more, or 0 for no calibration")


@dataclass(frozen=True)
class Both:
    """A grid, and the layout, scores and device of its pairs in both directions."""

    grid: Grid
    forward: tuple[Layout, Flat, str]
    backward: tuple[Layout, Flat, str]

    def links(self, confidence: bool = False) -> tuple[list[Alignment], list[Alignment]]:
        """Return the best paths of both directions, as alignments from source to target."""
        forward, backward = decoded(*self.forward, confidence), decoded(*self.backward, confidence)
        return forward, list(map(Alignment.flip, backward))

    def posteriors(self, precise: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return twice [C]: the posterior of every cell in each direction, in the grid's order.

        Unless `precise`, they are right to six digits and take two thirds of the time.
        """
        forward, backward = link_posteriors(*self.forward, precise), link_posteriors(*self.backward, precise)
        turned = np.empty_like(backward)
        turned[self.grid.by_column] = backward
        return forward, turned


def both_ways(one: Crf, other: Crf, pairs: Sequence[SentencePair]) -> Iterator[tuple[list[int], Both]]:
    """Yield places of pairs and their scores in both directions, a grid at a time.

    Pairs without words on a side are left out. What two words say to both directions is computed once.
    """
    for places, grid in grids(pairs, min(one.batch_cells, other.batch_cells)):
        there, back = node_scores(grid, one.scorer(), other.scorer())
        yield places, Both(grid, one.scored(grid, there), other.scored(grid.flipped(), back))


def aligned(
    one: Crf,
    other: Crf,
    pairs: Sequence[SentencePair],
    join: Posterior | Symmetrizer,
    combination: Combination,
    confidence: bool,
) -> list[Alignment]:
    """Return the links that `join` chooses, by their combined posterior or from the best paths of both directions.

    With `confidence`, each link has its combined posterior, and the score is the log probability of all cells
    together, per source token.
    """
    out: list[Alignment] = []
    for pair in pairs:
        out.append(Alignment(len(pair.source), len(pair.target)))
    for places, both in both_ways(one, other, pairs):
        if isinstance(join, Posterior):
            threshold, by_f1 = join.threshold or combination.threshold, join.decide == "f1"
            posteriors = both.posteriors(precise=confidence)
            # Without confidences, only cells that may be links need an exact probability.
            probability = combination.combine(*posteriors, 0.0 if confidence or by_f1 else threshold)
            chosen = np.flatnonzero(probability >= (_least_for_f1(both.grid, probability) if by_f1 else threshold))
            if len(some := unsettled(both.grid, chosen, posteriors[0])):
                from .repeated import in_order  # ordinary text needs none of it

                chosen = in_order(both.grid, some, chosen, *posteriors, combination.combine)
            found = alignments_of(both.grid, chosen)
        else:
            found = list(starmap(join, zip(*both.links(), strict=True)))
            probability = combination.combine(*both.posteriors()) if confidence else np.zeros(0)
        if confidence:
            found = _with_probabilities(both.grid, found, probability)
        for place, alignment in zip(places, found, strict=True):
            out[place] = alignment
    return out


def _least_for_f1(grid: Grid, probability: np.ndarray) -> np.ndarray:
    """Return [C] how likely a link has to be for the highest expected F1 of its pair; above 1 without links."""
    least = np.empty(len(grid.n_source))
    for k, own in enumerate(np.split(probability, grid.cell_start[1:])):
        kept, last, _ = expected_f1_links(own[own >= UNLIKELY])
        least[k] = last if kept else 2.0
    return np.repeat(least, grid.n_source * grid.n_target)


def _with_probabilities(grid: Grid, found: Sequence[Alignment], probability: np.ndarray) -> list[Alignment]:
    """Return the same links with their probabilities, and the scores of the alignments."""
    floor = np.finfo(float).tiny
    without = np.add.reduceat(np.log(np.maximum(1 - probability, floor)), grid.cell_start)
    out = []
    for k, (alignment, start) in enumerate(zip(found, grid.cell_start.tolist(), strict=True)):
        links = alignment.all_links
        i, j = np.array(links, dtype=np.int64).reshape(-1, 2).T
        own = probability[start + i * alignment.n_target + j]
        score = without[k] + np.log(np.maximum(own, floor)).sum() - np.log(np.maximum(1 - own, floor)).sum()
        confidence = dict(zip(links, own.tolist(), strict=True))
        out.append(replace(alignment, confidence=confidence, score=float(score) / alignment.n_source))
    return out
