"""Links by their posterior under both directions of a chain: the `posterior` symmetrizer, and its calibration.

How much each direction counts is learnt from held-out pairs: chains are trained on the other folds
(`Posterior.learn`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import compress, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ..crf.kernel import Flat
from ..crf.layout import Layout
from ..crf.links import alignments_of, decoded, expected_f1_links, link_posteriors, unsettled
from ..crf.scores import node_scores
from ..errors import ConfigError
from ..features.grid import Grid, grids
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair
from ..util.build import Inside, OneOf, Seed, Within
from .base import UNKEPT, Checkpoint, TrainingReport, fit_phase

if TYPE_CHECKING:
    from .crf import Crf

log = logging.getLogger(__name__)

DECIDE = ("threshold", "f1")
FEWEST = 20  # examples to calibrate on
HELD_OUT_TOLERANCE = 1e-5  # of training on folds; posteriors differ by less than 0.01
THRESHOLDS = np.arange(0.3, 0.7, 0.02)
WORTH_OF_EXACT = (
    0.25  # points of F1 that a point of exact match is worth: F1 alone hardly depends on the threshold
)
NEAR = 100.0  # how much stronger the prior of a combination is if it is that of a trained model
STEADY = 100  # pairs that count as much for the threshold as the model that training started from
NEIGHBOURS = 3  # thresholds on either side that a threshold is judged with, because the score of one is noisy
UNLIKELY = 1e-4  # links that no choice by expected F1 would hold


CERTAIN = 1e-6  # probabilities nearer to 0 or 1 are taken for this near
STEPS = 50  # of Newton's method, which takes about ten
MOST = 1e6  # of the parameters; those of trained models are below 2
KEY = "together"  # of the parameters in a model's state


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
        if (lowest := self._lowest(least)) > 0:
            out = np.zeros(len(forward))
            likely = np.flatnonzero(np.maximum(forward, backward) >= lowest)
            out[likely] = self.combine(forward[likely], backward[likely])
            return out
        one, other = log_odds(forward), log_odds(backward)
        odds = self.forward * one + self.backward * other + self.smaller * np.minimum(one, other) + self.bias
        return logistic(odds)

    def _lowest(self, least: float) -> float:
        """Return what one direction at least must give a cell whose combined probability is `least`."""
        both = self.forward + self.backward + self.smaller
        least_weight = min(self.forward, self.backward) + min(self.smaller, 0.0)
        if least <= 0 or least_weight < 0 or both < 1e-3:  # then a higher posterior may make a link less likely
            return 0.0
        odds = (math.log(least / (1 - least)) - self.bias) / both
        lowest = (1 - 1e-6) / (1 + math.exp(min(-odds, 700.0)))
        return min(lowest, 1 - CERTAIN) if lowest > CERTAIN else 0.0

    def state(self) -> dict[str, np.ndarray]:
        return {KEY: np.array(astuple(self))}

    @classmethod
    def restored(cls, state: Mapping[str, object]) -> Combination:
        """Return the combination that a model's state holds, or the default one if it holds none."""
        if KEY not in state:
            return cls()
        figures = np.asarray(state[KEY], dtype=np.float64)
        fine = figures.shape in ((4,), (5,)) and (np.abs(figures) < MOST).all() and 0 < figures[3] < 1
        if not fine:
            raise ConfigError(
                f"{KEY!r} holds {figures.tolist()}: expected two weights, a bias and a threshold, and perhaps the "
                "weight of the smaller"
            )
        return cls(*figures.tolist())  # a model of an older version has four figures

    def __str__(self) -> str:
        return (
            f"log-odds {self.forward:.3f} forward + {self.backward:.3f} backward + {self.smaller:.3f} the smaller "
            f"+ {self.bias:.3f}, links from {self.threshold:.2f}"
        )


@dataclass(frozen=True)
class Sample:
    """Cells of pairs: `forward`, `backward` [C] posteriors, `gold` [C] whether gold links them, `pair` [C]."""

    forward: np.ndarray
    backward: np.ndarray
    gold: np.ndarray
    pair: np.ndarray

    @classmethod
    def of_phase(cls, phase: Checkpoint) -> Sample | None:
        """Return the sample that a phase ended with, if an interrupted training ended it."""
        finished = phase.finished()
        return None if finished is None else cls(**{key: np.asarray(value) for key, value in finished[0].items()})

    @classmethod
    def joined(cls, parts: Sequence[Sample]) -> Sample:
        """Concatenate samples, numbering their pairs consecutively."""
        if not parts:
            raise ConfigError("there are no pairs with words on both sides to calibrate on")
        columns, first = [], 0
        for part in parts:
            columns.append((part.forward, part.backward, part.gold, part.pair + first))
            first += int(part.pair.max()) + 1
        return cls(*map(np.concatenate, zip(*columns, strict=True)))


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    p = np.clip(probabilities, CERTAIN, 1 - CERTAIN)
    odds: np.ndarray = np.log(p) - np.log1p(-p)
    return odds


def logistic(odds: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # of odds below -700, whose probability is 0
        p: np.ndarray = 1 / (1 + np.exp(-odds))
    return p


def fitted(sample: Sample, usual: Combination | None = None, strength: float = 1.0) -> Combination:
    """Return the most likely weights and bias, by Newton's method.

    A Gaussian prior, as strong as a few cells, keeps them near the default combination, or, `strength` times as
    strong, near the `usual` one of the model that training started from.
    """
    one, other = log_odds(sample.forward), log_odds(sample.backward)
    x = np.column_stack([one, other, np.ones(len(one)), np.minimum(one, other)])
    usual = usual or Combination()
    prior = np.array([usual.forward, usual.backward, usual.bias, usual.smaller])
    weights = prior.copy()
    loss = _loss(x, sample.gold, weights, prior, strength)
    for _ in range(STEPS):
        p = logistic(x @ weights)
        gradient = x.T @ (p - sample.gold) + strength * (weights - prior)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + strength * np.eye(len(prior))
        step = np.linalg.solve(curvature, gradient)
        while (after := _loss(x, sample.gold, weights - step, prior, strength)) > loss and np.abs(
            step
        ).max() > 1e-12:
            step /= 2
        weights, before, loss = weights - step, loss, after
        if before - loss <= 1e-12 * abs(before):
            break
    forward, backward, bias, smaller = weights.tolist()
    return Combination(forward, backward, bias, smaller=smaller)


def _loss(x: np.ndarray, gold: np.ndarray, weights: np.ndarray, prior: np.ndarray, strength: float) -> float:
    odds, away = x @ weights, weights - prior
    return float(np.logaddexp(0, np.where(gold, -odds, odds)).sum() + strength * (away**2).sum() / 2)


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

    def learn(
        self,
        one: Crf,
        other: Crf,
        examples: Sequence[Example],
        usual: Combination | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> Combination | None:
        """Return the combination that suits held-out pairs best; None without folds or with too few examples.

        `usual` is the combination of the model that the chains started from; few pairs move it little.
        """
        usable: list[Example] = []
        for example in examples:
            if example.gold is not None and len(example.pair.source) and len(example.pair.target):
                usable.append(example)
        if not self.folds or len(usable) < FEWEST:
            return None
        sample = Sample.joined(list(held_out(one, other, usable, self.folds, self.seed, checkpoint)))
        found = fitted(sample, usual, 1.0 if usual is None else NEAR)
        found = replace(found, threshold=best_threshold(sample, found))
        if usual is not None:
            share = len(usable) / (len(usable) + STEADY)
            found = replace(found, threshold=usual.threshold + share * (found.threshold - usual.threshold))
        log.info("both directions together: %s", found)
        return found

    def chosen(self, grid: Grid, probability: np.ndarray, threshold: float) -> np.ndarray:
        """Return the cells that are links, in ascending order."""
        if self.decide == "threshold":
            return np.flatnonzero(probability >= (threshold if self.threshold is None else self.threshold))
        return np.flatnonzero(probability >= _least_for_f1(grid, probability))


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
            # Without confidences, only cells that may be links need an exact probability.
            least = 0.0 if confidence or join.decide == "f1" else join.threshold or combination.threshold
            posteriors = both.posteriors(precise=confidence)
            probability = combination.combine(*posteriors, least)
            chosen = join.chosen(both.grid, probability, combination.threshold)
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


def held_out(
    one: Crf, other: Crf, examples: Sequence[Example], folds: int, seed: int, checkpoint: Checkpoint = UNKEPT
) -> Iterator[Sample]:
    """Yield the posteriors of each fold under chains that were trained on the others; Ctrl-C passes through."""
    order = np.random.default_rng(seed).permutation(len(examples))
    folds = min(folds, len(examples))
    for number in range(folds):
        phase = checkpoint.phase(f"fold-{number + 1}")
        if (sample := Sample.of_phase(phase)) is not None:
            yield sample
            continue
        log.info("both directions on held-out pairs: fold %d of %d", number + 1, folds)
        inside = np.zeros(len(examples), dtype=bool)
        inside[order[number::folds]] = True
        rest = list(compress(examples, ~inside))
        there, back = _fresh(one), _fresh(other)
        for chain, seen in ((there, rest), (back, list(map(Example.flip, rest)))):
            if fit_phase(chain, seen, phase=phase.phase(chain.part)).interrupted:
                raise KeyboardInterrupt
        sample = sampled(there, back, list(compress(examples, inside)))
        phase.finish(asdict(sample), TrainingReport())
        yield sample


def sampled(one: Crf, other: Crf, examples: Sequence[Example]) -> Sample:
    """Return the posteriors of every cell in both directions, and whether gold links it."""
    parts = []
    for places, both in both_ways(one, other, list(map(attrgetter("pair"), examples))):
        grid, linked = both.grid, np.zeros(both.grid.n_cells, dtype=bool)
        for place, start, width in zip(places, grid.cell_start.tolist(), grid.n_target.tolist(), strict=True):
            gold = examples[place].gold
            for i, j in gold.sure if gold is not None else ():
                linked[start + i * width + j] = True
        parts.append(Sample(*both.posteriors(), linked, grid.pair))
    return Sample.joined(parts)


def _fresh(chain: Crf) -> Crf:
    """Return an untrained chain of the same settings."""
    tolerance = max(chain.tolerance, HELD_OUT_TOLERANCE)
    return replace(chain, names=[], weights=np.zeros(0), tolerance=tolerance)


def best_threshold(sample: Sample, combination: Combination) -> float:
    """Return the threshold around which links score best; among equals, the one nearest to a half."""
    from ..evaluate import Counts, Score  # aligning needs none of it

    probability = combination.combine(sample.forward, sample.backward)
    pairs = int(sample.pair.max()) + 1

    worths = []
    for threshold in THRESHOLDS:
        chosen = probability >= threshold
        counts = np.zeros((pairs, 3), dtype=np.int64)
        for k, column in enumerate((sample.gold, chosen, sample.gold & chosen)):
            counts[:, k] = np.bincount(sample.pair, column, pairs)
        score = Score.of(Counts(counts))
        worths.append(score.f1 + WORTH_OF_EXACT * score.exact)
    merits = []
    for k, threshold in enumerate(THRESHOLDS):
        about = np.mean(worths[max(0, k - NEIGHBOURS) : k + NEIGHBOURS + 1])
        merits.append((round(float(about), 12), -abs(threshold - 0.5)))
    return round(float(THRESHOLDS[merits.index(max(merits))]), 6)


def _least_for_f1(grid: Grid, probability: np.ndarray) -> np.ndarray:
    """Return [C] how likely a link has to be for the highest expected F1 of its pair; above 1 if none is."""
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
