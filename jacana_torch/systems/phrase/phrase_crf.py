"""The phrase aligner: a semi-Markov chain, whose segments of up to three tokens take target spans of up to three.

After Yao et al. (2013b), which the papers at hand only name; what they leave open is decided here: segments score
what the token aligner's features say of their cells, averaged over the span and summed over the tokens, and what
phrases add. Examples in, weights by feature name out; pairs in, alignments with posteriors out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ...aligners.base import Step, TrainingReport, Watcher, learnable
from ...aligners.crf import Crf, prior_factors
from ...crf.decoding import grids
from ...crf.linear import RawBlock, add_scores
from ...crf.objective import Objective
from ...crf.scoring import known_columns, node_scores, numbered
from ...crf.states import readings
from ...errors import ConfigError, ModelError
from ...features.featureset import FeatureBatch
from ...features.grid import Grid
from ...optimize.minimise import Result, minimise
from ...types import Alignment, Example, SentencePair
from .gold_segments import GoldSegments, gold_segments
from .phrase_features import PREFIX, phrase_blocks
from .segment_decoding import decoded
from .semi_layout import SemiLayout
from .semi_objective import SemiLattices, SemiObjective, segment_scores

log = logging.getLogger(__name__)

_ROUGHLY = 1e-3  # the accuracy of a start


@dataclass(frozen=True)
class PreparedPhrases:
    """Pairs by their sizes, which of them have words on both sides, and the lattices of those under `names`."""

    sizes: list[tuple[int, int]]
    full: list[int]
    names: list[str]
    lattices: SemiLattices | None


@dataclass
class PhraseCrf(Crf):
    """`longest` tokens a segment or span has at most; the rest is as in the token aligner, which training starts
    from: it is quick, and near the end. The cost of a wrong span is the share of links that differ."""

    longest: int = 3
    single_words: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.remember or self.prune:
            said = f"remember={self.remember}, prune={self.prune}"
            raise ConfigError(f"{said}: only a chain of single words does that, none of phrases")
        if len(self._policies) > 1:
            raise ConfigError(f"policy={self.policy!r}: phrases are chosen by one policy, not several")
        if not 1 <= self.longest <= 8:
            raise ConfigError(f"longest={self.longest}: between 1 and 8 tokens")
        if PREFIX in self.features.names:
            raise ConfigError(f"a feature family may not be named {PREFIX!r} here: phrases' own features are")

    @property
    def share(self) -> list[float]:
        """What a cell counts in spans of each size."""
        return [1 / (k + 1) for k in range(self.longest)]

    # Training

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        examples = learnable(examples)
        examples.sort(key=lambda e: len(e.pair.target))  # what features work quickest on
        pairs = [e.pair for e in examples]
        batch = self.features(pairs)
        if not self.names and self._tokens_alone(examples, batch).interrupted:
            return TrainingReport(converged=False, interrupted=True)
        layout = self._layout(batch.n_source, batch.n_target)
        phrases = self._phrases(Grid(pairs), layout)
        names = sorted({*batch.names(), *self.names, *(name for block in phrases for name in block.names)})
        gold = [gold_segments(e.gold, self.longest, self._policies[0]) for e in examples if e.gold is not None]
        l2 = self.l2 * prior_factors(names, self.priors)
        space = self._space(batch, layout, phrases, names)
        objective = SemiObjective(space, [g.segments for g in gold], self._costs(layout, gold), l2)

        def step(iteration: int, x: np.ndarray, loss: float, gradient_norm: float) -> None:
            self.names, self.weights = names, x
            if watch is not None:
                watch(Step(self.part, iteration, loss, gradient_norm, self))

        result = minimise(
            objective,
            self._first(names),
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            curvature=float(l2.min()),
            history=100,
            callback=step,
        )
        self.names, self.weights = names, result.x
        log.info("%s: loss %.6f after %d iterations (%s)",
                 self.part, result.loss, result.iterations, result.message)  # fmt: skip
        return TrainingReport(
            {self.part: result.loss}, {self.part: result.iterations}, result.converged, result.interrupted,
            sum(g.dropped for g in gold), sum(len(e.gold.links) for e in examples if e.gold is not None),
        )  # fmt: skip

    def _tokens_alone(self, examples: Sequence[Example], batch: FeatureBatch) -> Result:
        """The token aligner's weights, roughly: each of its steps is a tenth of the work."""
        names = batch.names()
        gold = [readings(e.gold, self._policies).paths for e in examples if e.gold is not None]
        l2 = self.l2 * prior_factors(names, self.priors)
        costs = {"cost_null": self.cost_null, "cost_link": self.cost_link}
        objective = Objective(self._lattices(batch, names), gold, l2, costs)
        result = minimise(
            objective,
            np.full(len(names), self.start),
            max_iterations=self.max_iterations,
            tolerance=max(self.tolerance, _ROUGHLY),
            curvature=float(l2.min()),
            history=100,
        )
        self.names, self.weights = names, result.x
        return result

    def _first(self, names: Sequence[str]) -> np.ndarray:
        known = dict(zip(self.names, self.weights, strict=True))
        return np.array([known.get(name, 0.0 if known else self.start) for name in names])

    def _layout(self, n_source: np.ndarray, n_target: np.ndarray) -> SemiLayout:
        return SemiLayout(n_source, n_target, self.longest, self.batch_cells, self.device)

    def _phrases(self, grid: Grid, layout: SemiLayout) -> list:
        """Phrases are asked for tags, lemmas and WordNet where one of the token families reads these."""
        reads = {*self.requires, *self.resources}
        return phrase_blocks(grid, layout, "pos" in reads, "wordnet" in reads, "lemma" in reads)

    def _space(
        self, batch: FeatureBatch, layout: SemiLayout, phrases: Sequence, names: Sequence[str]
    ) -> SemiLattices:
        tokens = self._lattices(batch, names)
        number = {name: i for i, name in enumerate(names)}
        raw: list[RawBlock] = [known_columns(block, numbered(block.names, number)) for block in phrases]
        return SemiLattices.of(layout, tokens, raw, len(names), self.share)

    def _costs(self, layout: SemiLayout, gold: Sequence[GoldSegments]) -> np.ndarray:
        """[flat segments] what each costs: a token pays the share of its and gold's links that are not in both."""
        spans = np.concatenate([g.spans for g in gold])
        linked = spans[:, 1] > 0
        null = np.where(linked, self.cost_link, 0.0)
        first, past = spans[layout.tokens.token_of_cell()].T
        of_cell = np.where(linked, self.cost_link, self.cost_null)[layout.tokens.token_of_cell()]
        by_span = []
        for k in range(self.longest):
            both = np.clip(np.minimum(layout.n + k + 1, past) - np.maximum(layout.n, first), 0, None)
            by_span.append(of_cell * (1 - both / (k + 1 + past - first - both)))
        sized = layout.stacked(torch.as_tensor(np.array(by_span), device=self.device))
        return np.concatenate([null, sized.reshape(-1).cpu().numpy()])

    # Alignment

    def prepared(self, pairs: Sequence[SentencePair]) -> PreparedPhrases:  # type: ignore[override]
        """Pairs with their features looked up, to be decoded as often as the weights change."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = sorted((k for k, (m, n) in enumerate(sizes) if m and n), key=lambda k: sizes[k][1])
        if full and not self.names:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")
        if not full:
            return PreparedPhrases(sizes, full, self.names, None)
        chosen = [pairs[k] for k in full]
        batch = self.features(chosen)
        layout = self._layout(batch.n_source, batch.n_target)
        space = self._space(batch, layout, self._phrases(Grid(chosen), layout), self.names)
        return PreparedPhrases(sizes, full, self.names, space)

    def decode(self, prepared: PreparedPhrases, confidence: bool = True) -> list[Alignment]:  # type: ignore[override]
        out = [Alignment(m, n) for m, n in prepared.sizes]
        if prepared.lattices is None:
            return out
        if prepared.names != self.names:
            raise ValueError("these pairs were prepared for another set of features")
        with torch.no_grad():
            flat = prepared.lattices.scores(torch.as_tensor(self.weights, dtype=torch.float64, device=self.device))
        for place, alignment in zip(
            prepared.full, decoded(prepared.lattices.layout, flat, confidence), strict=True
        ):
            out[place] = alignment
        return out

    def align(self, pairs: Sequence[SentencePair], confidence: bool = True) -> list[Alignment]:
        """As decode(prepared(pairs)), without keeping features: each family is scored and forgotten."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        for places, grid in grids(pairs, self.batch_cells):
            (nodes,) = node_scores(grid, self.scorer())
            layout = self._layout(grid.n_source, grid.n_target)
            flat = self._flat(grid, layout, nodes)
            for place, alignment in zip(places, decoded(layout, flat, confidence), strict=True):
                out[place] = alignment
        return out

    def _flat(self, grid: Grid, layout: SemiLayout, nodes: np.ndarray) -> tuple[torch.Tensor, ...]:
        """Flat segments, edges, starts and ends."""
        number = {name: i for i, name in enumerate(self.names) if name.startswith(f"{PREFIX}.")}
        phrases = np.zeros(layout.n_sized)
        for block in self._phrases(grid, layout):
            add_scores(phrases, known_columns(block, numbered(block.names, number)), self.weights)
        null, link, _ = np.split(nodes, [layout.tokens.n_tokens, layout.tokens.n_tokens + layout.tokens.n_cells])
        edges = [scores[:-1] for scores in self.scorer().edges(layout.tokens)]
        flat = [
            torch.as_tensor(x, device=self.device) for x in (null, link, phrases, np.array(self.share), *edges)
        ]
        return segment_scores(layout, *flat[:4]), *flat[4:]
