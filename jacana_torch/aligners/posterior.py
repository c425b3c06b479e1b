"""What both directions think of every link, as one calibrated chance, and the links that are chosen by it.

Two trained chains and pairs in; chances, alignments out. How much either direction counts is learnt from pairs
that the chains were not trained on, by training others on the rest (`Posterior.learn`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

import numpy as np

from ..crf.decoding import decoded, grids, link_posteriors
from ..crf.expected import expected_f1_links
from ..crf.flat import Flat
from ..crf.layout import Layout
from ..crf.scoring import node_scores
from ..errors import ConfigError
from ..features.grid import Grid
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair, trusted
from .combination import Sample, Weighing, weighed
from .crf import Crf

log = logging.getLogger(__name__)

DECIDE = ("threshold", "f1")
FEWEST = 20  # examples; from fewer nothing is learnt
HELD_OUT_TOLERANCE = 1e-5  # of training on folds; the chances differ by less than a hundredth
THRESHOLDS = np.arange(0.3, 0.7, 0.02)
WORTH_OF_EXACT = 0.25  # of a point of F1, in choosing the threshold: F1 alone is flat there
ABOUT = 3  # thresholds on either side, with which each is judged: what one is worth alone is half chance
UNLIKELY = 1e-4  # links that no choice by expected F1 would hold


@dataclass(frozen=True)
class Posterior:
    """A symmetrizer of two chains: links are chosen by their chance under both.

    `decide`     `threshold`: the links that are likelier than the threshold; `f1`: those that make the expected F1
                 of the pair the largest.
    `threshold`  null: the learnt one, which is a half where none is learnt.
    `folds`      of the training pairs, each judged by chains trained on the others; 0: nothing is learnt.
    """

    decide: str = "threshold"
    threshold: float | None = None
    folds: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        if self.decide not in DECIDE:
            raise ConfigError(f"symmetrize.decide={self.decide!r} is neither {' nor '.join(DECIDE)}")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ConfigError(
                f"symmetrize.threshold={self.threshold}: between 0 and 1, or null for the learnt one"
            )
        if type(self.folds) is not int or self.folds < 0 or self.folds == 1:
            raise ConfigError(f"symmetrize.folds={self.folds!r}: two or more, or 0 to learn nothing")

    def learn(self, one: Crf, other: Crf, examples: Sequence[Example]) -> Weighing | None:
        """The weighing that suits held-out pairs; None where there is nothing to learn it from."""
        examples = [e for e in examples if e.gold is not None and len(e.pair.source) and len(e.pair.target)]
        if not self.folds or len(examples) < FEWEST:
            return None
        sample = Sample.joined(list(held_out(one, other, examples, self.folds, self.seed)))
        found = weighed(sample)
        found = replace(found, threshold=best_threshold(sample, found))
        log.info("both directions together: %s", found)
        return found

    def chosen(self, both: Both, chances: np.ndarray, threshold: float) -> np.ndarray:
        """The numbers of the cells that are links, in order."""
        if self.decide == "threshold":
            return np.flatnonzero(chances >= (threshold if self.threshold is None else self.threshold))
        return np.flatnonzero(chances >= _least_for_f1(both.grid, chances))


Scored = tuple[Layout, Flat]


@dataclass(frozen=True)
class Both:
    """A grid, and its lattices in both directions: layout and flat scores of each."""

    grid: Grid
    forward: Scored
    backward: Scored

    def links(self, confidence: bool = False) -> tuple[list[Alignment], list[Alignment]]:
        """The best path of each direction, as source to target; with what the direction thinks of it."""
        forward, backward = decoded(*self.forward, confidence), decoded(*self.backward, confidence)
        return forward, [alignment.flip() for alignment in backward]

    def posteriors(self, single: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """[C] each: the chances of all cells in either direction, in the grid's order; in single precision, right
        to six digits, in two thirds of the time."""
        ahead, behind = (link_posteriors(*lattices, single) for lattices in (self.forward, self.backward))
        by_column = np.split(behind, self.grid.cell_start[1:])
        shapes = zip(self.grid.n_target.tolist(), self.grid.n_source.tolist(), strict=True)
        turned = [own.reshape(shape).T.ravel() for own, shape in zip(by_column, shapes, strict=True)]
        return ahead, np.concatenate(turned)


def both_ways(one: Crf, other: Crf, pairs: Sequence[SentencePair]) -> Iterator[tuple[list[int], Both]]:
    """Which pairs, and their lattices, a grid at a time. Pairs without words on a side are left out."""
    for places, grid in grids(pairs, min(one.batch_cells, other.batch_cells)):
        there, back = node_scores(grid, one.scorer(), other.scorer())
        yield (
            places,
            Both(
                grid,
                one.scored(grid.n_source, grid.n_target, there),
                other.scored(grid.n_target, grid.n_source, back),
            ),
        )


def aligned(
    one: Crf,
    other: Crf,
    pairs: Sequence[SentencePair],
    join: Posterior | Symmetrizer,
    weighing: Weighing,
    confidence: bool,
) -> list[Alignment]:
    """Links as `join` chooses them, of chances or of both directions' best paths. With `confidence`, the chance of
    each, and as the score the logarithm of that of all cells together, per source token."""
    out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
    for places, both in both_ways(one, other, pairs):
        if isinstance(join, Posterior):
            # Whoever wants links alone needs no exact chance of what cannot be one.
            least = 0.0 if confidence or join.decide == "f1" else join.threshold or weighing.threshold
            chances = weighing.chances(*both.posteriors(single=not confidence), least)
            cells = join.chosen(both, chances, weighing.threshold)
            found = _alignments(both.grid, cells, chances if confidence else None)
        else:
            found = list(starmap(join, zip(*both.links(), strict=True)))
            if confidence:
                chances = weighing.chances(*both.posteriors())
                found = _with_chances(both.grid, found, chances)
        for place, alignment in zip(places, found, strict=True):
            out[place] = alignment
    return out


def held_out(one: Crf, other: Crf, examples: Sequence[Example], folds: int, seed: int) -> Iterator[Sample]:
    """What chains that were trained on the other folds say of each fold; Ctrl-C goes through."""
    order = np.random.default_rng(seed).permutation(len(examples))
    folds = min(folds, len(examples))
    for number in range(folds):
        log.info("both directions on held-out pairs: fold %d of %d", number + 1, folds)
        inside = np.zeros(len(examples), dtype=bool)
        inside[order[number::folds]] = True
        rest = [e for e, out in zip(examples, inside, strict=True) if not out]
        there, back = _fresh(one), _fresh(other)
        for chain, seen in ((there, rest), (back, [e.flip() for e in rest])):
            if chain.fit(seen).interrupted:
                raise KeyboardInterrupt
        yield sampled(there, back, [e for e, out in zip(examples, inside, strict=True) if out])


def sampled(one: Crf, other: Crf, examples: Sequence[Example]) -> Sample:
    """Every cell's posteriors in both directions, and whether gold links it."""
    parts = []
    for places, both in both_ways(one, other, [e.pair for e in examples]):
        grid, gold = both.grid, [examples[place].gold for place in places]
        hits = np.zeros(grid.n_cells, dtype=bool)
        for start, width, links in zip(grid.cell_start.tolist(), grid.n_target.tolist(), gold, strict=True):
            hits[[start + i * width + j for i, j in links.sure]] = True  # type: ignore[union-attr]
        parts.append(Sample(*both.posteriors(), hits, grid.pair))
    return Sample.joined(parts)


def _fresh(chain: Crf) -> Crf:
    """One of the same settings that has learnt nothing."""
    tolerance = max(chain.tolerance, HELD_OUT_TOLERANCE)
    return replace(chain, names=[], weights=np.zeros(0), tolerance=tolerance)


def best_threshold(sample: Sample, weighing: Weighing) -> float:
    """The one about which links score best; of equals, that nearest to a half."""
    from ..evaluate import Counts, Score

    chances = weighing.chances(sample.forward, sample.backward)
    pairs = int(sample.pair.max()) + 1

    def worth(threshold: float) -> float:
        chosen = chances >= threshold
        columns = (sample.hit, chosen, sample.hit & chosen)
        counts = [np.bincount(sample.pair, column, pairs).astype(np.int64) for column in columns]
        score = Score.of(Counts(np.column_stack(counts)))
        return score.f1 + WORTH_OF_EXACT * score.exact

    worths = [worth(threshold) for threshold in THRESHOLDS.tolist()]
    about = [np.mean(worths[max(0, k - ABOUT) : k + ABOUT + 1]) for k in range(len(worths))]
    best = max(range(len(about)), key=lambda k: (round(about[k], 12), -abs(THRESHOLDS[k] - 0.5)))
    return round(float(THRESHOLDS[best]), 6)


def _least_for_f1(grid: Grid, chances: np.ndarray) -> np.ndarray:
    """[C] how likely a link of its pair has to be for the largest expected F1; above 1 where none is."""
    least = np.empty(len(grid.n_source))
    for k, own in enumerate(np.split(chances, grid.cell_start[1:])):
        kept, last, _ = expected_f1_links(own[own >= UNLIKELY])
        least[k] = last if kept else 2.0
    return np.repeat(least, grid.n_source * grid.n_target)


def _alignments(grid: Grid, cells: np.ndarray, chances: np.ndarray | None) -> list[Alignment]:
    """The pairs of a grid with links in these cells, in their order."""
    pair = np.searchsorted(grid.cell_start, cells, side="right") - 1
    rows, columns = np.divmod(cells - grid.cell_start[pair], grid.n_target[pair])
    links = list(zip(rows.tolist(), columns.tolist(), strict=True))
    ends = np.searchsorted(pair, np.arange(len(grid.n_source)), side="right").tolist()
    sizes = zip(grid.n_source.tolist(), grid.n_target.tolist(), strict=True)
    found = [
        trusted(m, n, frozenset(links[begin:end]))
        for (m, n), begin, end in zip(sizes, [0, *ends], ends, strict=False)
    ]
    return found if chances is None else _with_chances(grid, found, chances)


def _with_chances(grid: Grid, found: Sequence[Alignment], chances: np.ndarray) -> list[Alignment]:
    """The same links, each with its chance, and the alignments' scores."""
    floor = np.finfo(float).tiny
    without = np.add.reduceat(np.log(np.maximum(1 - chances, floor)), grid.cell_start)
    out = []
    for k, (alignment, start) in enumerate(zip(found, grid.cell_start.tolist(), strict=True)):
        links = alignment.all_links
        own = chances[[start + i * alignment.n_target + j for i, j in links]]
        score = without[k] + np.log(np.maximum(own, floor)).sum() - np.log(np.maximum(1 - own, floor)).sum()
        confidence = dict(zip(links, own.tolist(), strict=True))
        out.append(replace(alignment, confidence=confidence, score=float(score) / alignment.n_source))
    return out
