"""The conditional random field: each source token takes a target position or NULL, in one direction.

Examples in, weights by feature name out; pairs in, alignments with posteriors out. `Bidirectional` runs two.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..crf.decoding import decoded, grids
from ..crf.layout import Layout
from ..crf.linear import RawBlock
from ..crf.scoring import Scorer, known_columns, node_scores, numbered
from ..crf.spaces import PLAIN, REMEMBERING
from ..crf.states import POLICIES, readings
from ..errors import ConfigError, ModelError
from ..features.api import Block, EdgeFamily, NodeFamily
from ..features.featureset import FeatureBatch, FeatureSet
from ..features.joining import join
from ..symmetrize import Symmetrizer
from ..types import Alignment, Example, SentencePair
from ..util.device import usable_device
from .base import Step, TrainingReport, Watcher, learnable
from .pruning import Among, mattering

if TYPE_CHECKING:
    from ..crf.flat import Flat
    from ..crf.objective import Lattices
    from ..explain import Explanation

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """Pairs by their sizes, which of them have words on both sides, and the lattices of those under `names`."""

    sizes: list[tuple[int, int]]
    full: list[int]
    names: list[str]
    lattices: Lattices | None


@dataclass
class Crf:
    """A first-order chain over source tokens.

    `families`    feature families by name; `drop` leaves some out.
    `l2`          inverse variance of the Gaussian prior on the weights; `priors` multiplies it for columns by the
                  beginning of their names (the longest that fits), e.g. `{"pos.": 4}`.
    `cost_null`, `cost_link`  softmax-margin cost of a wrong state where gold is NULL, where gold is a link.
    `policy`      which link trains where a source token has several (see crf/states.py); of several policies, each
                  chooses for an equal share.
    `remember`    whether NULL keeps the last linked position, so that jumps go on across it (see crf/spaces.py).
    `prune`       columns that change no score by this much (weight times value) go, and the others are trained on.
    `start`       the weight that every feature starts from; the optimum does not depend on it.
    `batch_cells` how many lattice cells go through inference at once.
    """

    families: Mapping[str, NodeFamily | EdgeFamily | None]
    drop: Sequence[str] = ()
    l2: float = 1.0
    priors: Mapping[str, float] = field(default_factory=dict)
    cost_null: float = 1.0
    cost_link: float = 1.0
    policy: str | Sequence[str] = "monotone"
    remember: bool = False
    prune: float = 0.0
    max_iterations: int = 500
    tolerance: float = 1e-7
    start: float = 0.0
    batch_cells: int = 500_000
    device: str = "cpu"
    part: str = "forward"
    names: list[str] = field(default_factory=list, repr=False)
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)

    def __post_init__(self) -> None:
        self.features = FeatureSet(self.families, self.drop, gaps=self.remember)
        self._scorer: Scorer | None = None
        priors = [self.l2, *self.priors.values()]
        if not all(0 < factor < np.inf for factor in priors):
            raise ConfigError(
                f"l2={self.l2}, priors={dict(self.priors)}: all must be positive, or the optimum is not unique"
            )
        at_least = {"cost_null": 0, "cost_link": 0, "prune": 0, "max_iterations": 1, "batch_cells": 1}
        for name, least in at_least.items():
            if not least <= getattr(self, name) < np.inf:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least {least}, and finite")
        if not (0 < self.tolerance < 1 and np.isfinite(self.start)):
            raise ConfigError(f"tolerance={self.tolerance}, start={self.start}: between 0 and 1, and finite")
        several = isinstance(self.policy, Sequence) and not isinstance(self.policy, str)
        self._policies: list[str] = list(self.policy) if several else [self.policy]  # type: ignore[list-item]
        if not self._policies or not all(policy in tuple(POLICIES) for policy in self._policies):
            raise ConfigError(f"policy={self.policy!r}: one or several of {', '.join(POLICIES)}")
        self.device = usable_device(self.device)

    @property
    def requires(self) -> tuple[str, ...]:
        return self.features.requires

    @property
    def resources(self) -> tuple[str, ...]:
        return self.features.resources

    # Training

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        from ..crf.objective import Objective  # starts torch, which aligning does without
        from ..optimize.minimise import minimise

        examples = sorted(learnable(examples), key=lambda e: len(e.pair.target))  # what features work quickest on
        batch = self.features([e.pair for e in examples])
        names = sorted({*batch.names(), *self.names})
        known = dict(zip(self.names, self.weights, strict=True))
        first = np.array([known.get(name, 0.0 if known else self.start) for name in names])
        gold = [readings(e.gold, self._policies) for e in examples if e.gold is not None]
        dropped = sum(g.dropped for g in gold)
        l2 = self.l2 * prior_factors(names, self.priors)
        costs = {"cost_null": self.cost_null, "cost_link": self.cost_link}
        objective = Objective(self._lattices(batch, names), [g.paths for g in gold], l2, costs)

        def step(iteration: int, x: np.ndarray, loss: float, gradient_norm: float) -> None:
            self.names, self.weights = names, x
            if watch is not None:
                watch(Step(self.part, iteration, loss, gradient_norm, self))

        search = partial(
            minimise,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            curvature=float(l2.min()),
            history=100,  # short memories take up to eight times the steps on features as correlated as these
        )
        result, done = search(objective, first, callback=step), 0
        self.names, self.weights = names, result.x
        if self.prune and not result.interrupted:
            among, done = Among(objective, mattering(batch, names, result.x, self.prune)), result.iterations
            log.info("%s: %d of %d columns matter, the others go", self.part, among.kept.sum(), len(names))

            def later(iteration: int, x: np.ndarray, *rest: float) -> None:
                step(done + iteration, among.whole(x), *rest)  # whoever watches sees the same columns throughout

            result = search(among, result.x[among.kept], callback=later)
            self.names, self.weights = [names[k] for k in np.flatnonzero(among.kept)], result.x
        log.info(
            "%s: loss %.6f after %d iterations, %d evaluations (%s)",
            self.part,
            result.loss,
            done + result.iterations,
            result.evaluations,
            result.message,
        )
        return TrainingReport(
            {self.part: result.loss}, {self.part: done + result.iterations}, result.converged, result.interrupted,
            dropped, sum(len(e.gold.links) for e in examples if e.gold is not None),
        )  # fmt: skip

    def _lattices(self, batch: FeatureBatch, names: Sequence[str]) -> Lattices:
        from ..crf.objective import lattices

        number = {name: i for i, name in enumerate(names)}
        layout = self.layout(batch.n_source, batch.n_target)

        def known(blocks: Sequence[Block]) -> list[RawBlock]:
            return [known_columns(block, numbered(block.names, number)) for block in blocks]

        blocks: dict[str, Sequence[RawBlock]] = {"null": known(batch.null), "link": known(batch.link)}
        for space in ("edge", "start", "end"):
            per_length = getattr(batch, space)
            of_lengths = zip(*(per_length[n] for n in layout.distinct), strict=True)
            blocks[space] = known([join(blocks_of_family) for blocks_of_family in of_lengths])
        return lattices(layout, blocks, len(names))

    def layout(self, n_source: np.ndarray, n_target: np.ndarray) -> Layout:
        """Where the scores of pairs of these lengths stand."""
        space = REMEMBERING if self.remember else PLAIN
        return Layout(n_source, n_target, self.batch_cells, self.device, space)

    # Alignment

    def prepared(self, pairs: Sequence[SentencePair]) -> Prepared:
        """Pairs with their features looked up, to be decoded as often as the weights change."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = sorted((k for k, (m, n) in enumerate(sizes) if m and n), key=lambda k: sizes[k][1])
        if full and not self.names:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")
        space = self._lattices(self.features([pairs[k] for k in full]), self.names) if full else None
        return Prepared(sizes, full, self.names, space)

    def decode(self, prepared: Prepared, confidence: bool = True) -> list[Alignment]:
        """Viterbi links; `confidence` adds posteriors, and as the score log p(states | pair) per source token."""
        out = [Alignment(m, n) for m, n in prepared.sizes]
        if prepared.lattices is None:
            return out
        if prepared.names != self.names:
            raise ValueError("these pairs were prepared for another set of features")
        found = decoded(prepared.lattices.layout, prepared.lattices.numbers(self.weights), confidence)
        for place, alignment in zip(prepared.full, found, strict=True):
            out[place] = alignment
        return out

    def align(self, pairs: Sequence[SentencePair], confidence: bool = True) -> list[Alignment]:
        """As decode(prepared(pairs)), without keeping features: each family is scored and forgotten."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        for places, grid in grids(pairs, self.batch_cells):
            (nodes,) = node_scores(grid, self.scorer())
            found = self.decode_scores(grid.n_source, grid.n_target, nodes, confidence)
            for place, alignment in zip(places, found, strict=True):
                out[place] = alignment
        return out

    def align_links(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """The links that `align` finds, without posteriors and scores, which is faster."""
        return self.align(pairs, confidence=False)

    def scorer(self) -> Scorer:
        """What scores grids under the weights as they are now."""
        if not self.names:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")
        if self._scorer is None or not self._scorer.has(self.names, self.weights):
            self._scorer = Scorer(self.features, self.names, self.weights)
        return self._scorer

    def decode_scores(
        self, n_source: np.ndarray, n_target: np.ndarray, nodes: np.ndarray, confidence: bool = True
    ) -> list[Alignment]:
        """Links of pairs of these lengths, all with words on both sides, from their node scores."""
        return decoded(*self.scored(n_source, n_target, nodes), confidence)

    def scored(self, n_source: np.ndarray, n_target: np.ndarray, nodes: np.ndarray) -> tuple[Layout, Flat]:
        """The lattices of such pairs, and their flat scores."""
        layout = self.layout(n_source, n_target)
        return layout, (nodes, *self.scorer().edges(layout))

    def explain(
        self, pairs: Sequence[SentencePair], symmetrize: Symmetrizer | str | None = None
    ) -> Iterator[Explanation]:
        """What features say of the links that `align` finds; there is one direction, so nothing to symmetrize."""
        from ..explain.linear import explained

        return explained(self, None, pairs, self.align)

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return {"names": list(self.names), "weights": self.weights}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        names, weights = list(state["names"]), np.asarray(state["weights"], dtype=np.float64)
        if len(names) != len(weights) or len(set(names)) != len(names):
            raise ConfigError(
                f"{len(names)} feature names, {len(set(names))} of them distinct, for {len(weights)} weights"
            )
        if not np.isfinite(weights).all():
            raise ConfigError(f"the weight of {names[int(np.argmin(np.isfinite(weights)))]!r} is not finite")
        self.names, self.weights = names, weights


def prior_factors(names: Sequence[str], priors: Mapping[str, float]) -> np.ndarray:
    """[K] what multiplies the prior of each column: that of the longest beginning of its name, else 1."""
    longest_first = sorted(priors.items(), key=lambda item: -len(item[0]))
    return np.array([next((f for start, f in longest_first if name.startswith(start)), 1.0) for name in names])
