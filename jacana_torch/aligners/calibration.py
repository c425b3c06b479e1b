"""Learning how to combine two directions: the combination that suits their posteriors on held-out pairs.

Chains are trained on the other folds. Aligning needs none of this.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError
from ..evaluate import Counts, Score
from ..features.words import numbered
from ..types import Example
from .base import UNKEPT, Checkpoint, TrainingReport, fit_phase, learnable, styles_of
from .posterior import SHARED, Combination, both_ways, log_odds, logistic

if TYPE_CHECKING:
    from .crf import Crf

log = logging.getLogger(__name__)

PART = "calibration.fold-"  # the beginning of the names of the phases of its folds
FEWEST = 20  # examples to calibrate on
NO_STYLE = -1  # in place of a style's number
HELD_OUT_TOLERANCE = 1e-5  # of training on folds; posteriors differ by less than 0.01
THRESHOLDS = np.arange(0.3, 0.7, 0.02)
WORTH_OF_EXACT = (
    0.25  # points of F1 that a point of exact match is worth: F1 alone changes little with the threshold
)
OF_MADE = 0.1  # how much made pairs count here, beside their weight: more, and real pairs are less well calibrated
NEAR = 100.0  # how much stronger the prior of a combination is if it is that of a trained model
STEADY = 100  # pairs that count as much for the threshold as the model that training started from
NEIGHBOURS = 3  # thresholds on either side that a threshold is judged with, because the score of one is noisy
STEPS = 50  # of Newton's method, which takes about ten


def learnt(
    one: Crf,
    other: Crf,
    examples: Sequence[Example],
    folds: tuple[int, int],
    usual: Combination | None = None,
    checkpoint: Checkpoint = UNKEPT,
) -> dict[str, Combination]:
    """Return the combination that suits held-out pairs best, for the shared weights and for each style.

    There is none for fewer than `FEWEST` pairs. `folds` is their number and the seed of the split, `usual` as in
    `fitted`.
    """
    usable = learnable(examples)
    if len(usable) < FEWEST:
        return {}
    whole = Sample.joined(list(held_out(one, other, usable, *folds, checkpoint)))
    combinations: dict[str, Combination] = {}
    for number, style in enumerate((SHARED, *styles_of(usable)), NO_STYLE):
        sample = whole if (whole.style == number).all() else whole.only(whole.style == number)
        pairs = len(np.unique(sample.pair))
        if pairs < FEWEST:
            continue
        found = fitted(sample.mostly_real(), usual, 1.0 if usual is None else NEAR)
        found = replace(found, threshold=best_threshold(sample.real(), found))
        if usual is not None:
            share = pairs / (pairs + STEADY)
            found = replace(found, threshold=usual.threshold + share * (found.threshold - usual.threshold))
        log.info("both directions together%s: %s", f" by {style}" if style else "", found)
        combinations[style] = found
    return combinations


@dataclass(frozen=True)
class Sample:
    """Cells of pairs: `forward`, `backward` [C] posteriors, `gold` [C] whether gold links them, `pair` [C].

    `weight` [C] is how much a cell counts, by default 1, and `made` [C] whether its pair was made for training.
    `style` [C] is the number of the style that the posteriors are by, `NO_STYLE` for the shared weights.
    """

    forward: np.ndarray
    backward: np.ndarray
    gold: np.ndarray
    pair: np.ndarray
    weight: np.ndarray = field(default_factory=partial(np.ones, 0))
    made: np.ndarray = field(default_factory=partial(np.zeros, 0, dtype=bool))
    style: np.ndarray = field(default_factory=partial(np.zeros, 0, dtype=np.int64))

    def __post_init__(self) -> None:
        for name, usual in (("weight", 1.0), ("made", False), ("style", NO_STYLE)):
            if len(getattr(self, name)) != len(self.gold):
                object.__setattr__(self, name, np.full(len(self.gold), usual))

    def only(self, kept: np.ndarray) -> Sample:
        """Return the cells of some pairs."""
        own = {name: value[kept] for name, value in vars(self).items()}
        return Sample(**{**own, "pair": np.unique(own["pair"], return_inverse=True)[1]})

    def real(self) -> Sample:
        """Return the cells of the corpus's own pairs; of all pairs if all of them were made."""
        return self if self.made.all() or not self.made.any() else self.only(~self.made)

    def mostly_real(self) -> Sample:
        """Return the same cells, where those of made pairs count less; they count in full if no pair is real."""
        return self if self.made.all() else replace(self, weight=np.where(self.made, OF_MADE, 1.0) * self.weight)

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
            numbered = part.pair + first
            columns.append((part.forward, part.backward, part.gold, numbered, part.weight, part.made, part.style))
            first += int(part.pair.max()) + 1
        return cls(*map(np.concatenate, zip(*columns, strict=True)))


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
    loss = _loss(x, sample, weights, prior, strength)
    for _ in range(STEPS):
        p = logistic(x @ weights)
        gradient = x.T @ (sample.weight * (p - sample.gold)) + strength * (weights - prior)
        curvature = (x * (sample.weight * p * (1 - p))[:, None]).T @ x + strength * np.eye(len(prior))
        step = np.linalg.solve(curvature, gradient)
        while (after := _loss(x, sample, weights - step, prior, strength)) > loss and np.abs(step).max() > 1e-12:
            step /= 2
        weights, before, loss = weights - step, loss, after
        if before - loss <= 1e-12 * abs(before):
            break
    forward, backward, bias, smaller = weights.tolist()
    return Combination(forward, backward, bias, smaller=smaller)


def _loss(x: np.ndarray, sample: Sample, weights: np.ndarray, prior: np.ndarray, strength: float) -> float:
    odds, away = x @ weights, weights - prior
    each = sample.weight * np.logaddexp(0, np.where(sample.gold, -odds, odds))
    return float(each.sum() + strength * (away**2).sum() / 2)


def held_out(
    one: Crf,
    other: Crf,
    examples: Sequence[Example],
    folds: int,
    seed: int,
    checkpoint: Checkpoint = UNKEPT,
    only: int | None = None,
) -> Iterator[Sample]:
    """Yield the posteriors of each fold under chains that were trained on the others; Ctrl-C passes through.

    Examples of one group are in one fold. With `only`, the number of a fold, the others are left out.
    """
    groups: list[tuple[str | None, int]] = []
    for k, example in enumerate(examples):
        groups.append((example.group, k if example.group is None else 0))
    group = numbered(groups)[1]
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1)
    folds, styles = min(folds, len(order)), styles_of(examples)
    for number in range(folds) if only is None else (only - 1,):
        phase = checkpoint.phase(f"fold-{number + 1}")
        if (sample := Sample.of_phase(phase)) is not None:
            yield sample
            continue
        log.info("both directions on held-out pairs: fold %d of %d", number + 1, folds)
        inside = np.isin(group, order[number::folds])
        rest = list(compress(examples, ~inside))
        trained: list[Crf] = []
        for chain, seen in ((one, rest), (other, list(map(Example.flip, rest)))):
            tolerance = max(chain.tolerance, HELD_OUT_TOLERANCE)
            trained.append(replace(chain, names=[], weights=np.zeros(0), tolerance=tolerance))
            if fit_phase(trained[-1], seen, phase=phase.phase(chain.part)).interrupted:
                raise KeyboardInterrupt
        there, back = trained
        held = list(compress(examples, inside))
        samples = [sampled(there, back, held)]
        for number, style in enumerate(styles):
            own = [example for example in held if example.style == style]
            if own and style in there.styles:
                there.choose(style)
                back.choose(style)
                samples.append(sampled(there, back, own, number))
        sample = Sample.joined(samples)
        phase.finish(asdict(sample), TrainingReport())
        yield sample


def folds_of(examples: Sequence[Example], folds: int) -> int:
    """Return how many folds `learnt` trains on these examples, if `folds` is what it is asked for."""
    usable = learnable(examples)
    if len(usable) < FEWEST:
        return 0
    groups = {example.group for example in usable} - {None}
    return min(folds, len(groups) + sum(example.group is None for example in usable))


def sampled(one: Crf, other: Crf, examples: Sequence[Example], style: int = NO_STYLE) -> Sample:
    """Return the posteriors of every cell in both directions, and whether gold links it.

    `style` is the number of the style that was chosen.
    """
    parts = []
    for places, both in both_ways(one, other, list(map(attrgetter("pair"), examples))):
        grid, linked = both.grid, np.zeros(both.grid.n_cells, dtype=bool)
        weight, made = np.ones(len(places)), np.zeros(len(places), dtype=bool)
        starts, widths = grid.cell_start.tolist(), grid.n_target.tolist()
        for k, place in enumerate(places):
            example = examples[place]
            for i, j in example.gold.sure if example.gold is not None else ():
                linked[starts[k] + i * widths[k] + j] = True
            weight[k], made[k] = example.weight, example.origin is not None
        own = np.full(grid.n_cells, style)
        parts.append(Sample(*both.posteriors(), linked, grid.pair, weight[grid.pair], made[grid.pair], own))
    return Sample.joined(parts)


def best_threshold(sample: Sample, combination: Combination) -> float:
    """Return the threshold around which links score best; among equals, the one nearest to a half."""
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
