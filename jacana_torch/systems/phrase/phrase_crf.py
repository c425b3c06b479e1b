"""The phrase aligner: a semi-Markov chain whose segments of source tokens take spans of target tokens.

After Yao et al. (2013b), as far as the available papers describe it. The rest is decided here: a segment scores
what the token aligner's features give its cells, averaged over the span and summed over the tokens, plus features
of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from ...aligners.base import State
from ...aligners.crf import Crf, Policy
from ...aligners.training import UNKEPT, Checkpoint, Step, TrainingReport, Watcher, fit_phase, learnable
from ...crf.objective import prior
from ...crf.scores import ChainScores, LinearScores, known_columns, node_scores, numbered
from ...errors import ConfigError, ModelError
from ...features.api import Block
from ...features.featureset import Families
from ...features.grid import Grid, grids
from ...optimize.minimise import minimise
from ...types import Alignment, Example, SentencePair, trusted
from ...util.build import Cells, Count, Inside, Items, NotNegative, Positive, Within, check_bounds
from .segment_features import PREFIX, segment_blocks
from .segments import GoldSegments, Segments, gold_segments, links_of
from .semi_markov import SemiMarkov

log = logging.getLogger(__name__)

_ROUGH_TOLERANCE = 1e-3  # of the token aligner that training starts from


@dataclass(frozen=True)
class SegmentScores:
    """Scores of flat segments, edges, starts and ends as linear functions of one weight vector.

    `tokens` scores single tokens; a segment pools its cells by `share` [D]. `phrases` adds features of segments.
    """

    segments: Segments
    tokens: ChainScores
    phrases: LinearScores
    share: Tensor

    def scores(self, weights: Tensor) -> tuple[Tensor, ...]:
        nodes, *steps = self.tokens.flat(weights)
        n_tokens = self.segments.tokens.n_tokens
        sized = self.segments.pooled(nodes[n_tokens:], self.share).view(-1)
        return torch.cat([nodes[:n_tokens], sized.add_(self.phrases.scores(weights))]), *steps

    def transpose(self, segments: Tensor, *steps: Tensor) -> Tensor:
        """The gradient with respect to the weights, from that with respect to the scores."""
        D, n_tokens = self.segments.longest, self.segments.tokens.n_tokens
        null, sized = segments[:n_tokens], segments[n_tokens:]
        link = self.segments.unpooled(sized.view(D, D, -1), self.share)
        return self.tokens.transpose(torch.cat([null, link]), *steps) + self.phrases.transpose(sized)


class SegmentObjective:
    """Softmax-margin loss plus L2, summed over pairs, and its gradient.

    `gold` holds the path of each pair, `cost` [segments] what each segment costs if it is not gold's, `l2` [K] the
    inverse prior variances.
    """

    def __init__(
        self, model: SegmentScores, semi: SemiMarkov, gold: Sequence[np.ndarray], cost: np.ndarray, l2: np.ndarray
    ) -> None:
        segments = model.segments
        self.model, self.semi, self.device = model, semi, segments.device
        sizes = segments.n_segments, segments.n_edges, segments.n_starts, segments.n_starts
        entries = (torch.as_tensor(x, device=self.device) for x in segments.entries(gold))
        taken = [torch.bincount(x, minlength=n).double() for x, n in zip(entries, sizes, strict=True)]
        self._gold = model.transpose(*taken)
        self._cost, self._l2 = (torch.as_tensor(x, dtype=torch.float64, device=self.device) for x in (cost, l2))

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.as_tensor(weights, dtype=torch.float64, device=self.device)
        with torch.no_grad():
            segments, *steps = self.model.scores(w)
            log_z, counts = self.semi.expected(segments + self._cost, *steps)
            prior = self._l2 * w
            loss = log_z.sum() + (w * (prior / 2 - self._gold)).sum()
            return float(loss), (self.model.transpose(*counts) + prior - self._gold).cpu().numpy()


@dataclass(frozen=True)
class PreparedPhrases:
    """The sizes of all pairs, the places of those with words on both sides, and their scores under `names`."""

    sizes: list[tuple[int, int]]
    full: list[int]
    names: list[str]
    model: SegmentScores | None


class PhraseCrf:
    """A semi-Markov chain in one direction.

    `longest` is the largest number of tokens of a segment or span. All other settings are those of `Crf`, with one
    `policy`, and without `remember` and `prune`. Training starts from a roughly trained `Crf`, which is quick and
    close. A wrong span costs the share of its and gold's links that differ.

    `chain` holds the features of single tokens, and the names and weights of all features.
    """

    keeps_progress: ClassVar[bool] = True

    def __init__(
        self,
        families: Families,
        drop: str | Sequence[str] = (),
        l2: Positive = 1.0,
        priors: Mapping[str, Positive] | None = None,
        cost_null: NotNegative = 1.0,
        cost_link: NotNegative = 1.0,
        policy: Policy | Annotated[Sequence[Policy], Items(1)] = "monotone",
        remember: bool = False,
        prune: NotNegative = 0.0,
        max_iterations: Count = 500,
        tolerance: Inside = 1e-7,
        start: float = 0.0,
        batch_cells: Cells = 500_000,
        device: str = "cpu",
        part: str = "forward",
        longest: Annotated[int, Within(1, 8)] = 3,
    ) -> None:
        if remember or prune:
            raise ConfigError(
                f"remember={remember}, prune={prune}: only a chain of single words supports these, not the phrase "
                "aligner"
            )
        policies = [policy] if isinstance(policy, str) else list(policy)
        if len(policies) > 1:
            raise ConfigError(f"policy={policies!r}: phrases are chosen by one policy, not several")
        check_bounds(PhraseCrf, {"longest": longest})
        self.chain = Crf(
            families,
            drop,
            l2,
            priors or {},
            cost_null,
            cost_link,
            policy,
            max_iterations=max_iterations,
            tolerance=tolerance,
            start=start,
            batch_cells=batch_cells,
            device=device,
            part=part,
        )
        if PREFIX in self.chain.features.names:
            raise ConfigError(f"no feature family may be named {PREFIX!r} here: features of phrases are")
        self.longest, self.policy = longest, policies[0]
        self._share = 1 / np.arange(1, longest + 1)  # of each cell in spans of each size

    @property
    def part(self) -> str:
        return self.chain.part

    @part.setter
    def part(self, part: str) -> None:
        self.chain.part = part

    @property
    def requires(self) -> tuple[str, ...]:
        return self.chain.requires

    @property
    def resources(self) -> tuple[str, ...]:
        return self.chain.resources

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        chain = self.chain
        examples = sorted(learnable(examples), key=lambda e: len(e.pair.target))  # fastest in this order
        if not chain.names:
            rough = replace(chain, tolerance=max(chain.tolerance, _ROUGH_TOLERANCE))
            interrupted = fit_phase(rough, examples, phase=checkpoint.phase("rough")).interrupted
            chain.names, chain.weights = rough.names, rough.weights
            if interrupted:
                return TrainingReport(converged=False, interrupted=True)
        gold = [gold_segments(e.gold, self.longest, self.policy) for e in examples if e.gold is not None]
        model, names = self._model([e.pair for e in examples])
        l2 = chain.l2 * prior(names, chain.priors, {}, 1.0)[1]
        semi = SemiMarkov(model.segments, chain.batch_cells)
        cost = span_costs(model.segments, gold, chain.cost_null, chain.cost_link)

        def step(iteration: int, x: np.ndarray, loss: float, gradient_norm: float) -> None:
            chain.names, chain.weights = names, x
            if watch is not None:
                watch(Step(self.part, iteration, loss, gradient_norm, self))

        known = dict(zip(chain.names, chain.weights, strict=True))
        result = minimise(
            SegmentObjective(model, semi, [g.path for g in gold], cost, l2),
            np.array([known.get(name, 0.0) for name in names]),
            max_iterations=chain.max_iterations,
            tolerance=chain.tolerance,
            curvature=float(l2.min()),
            history=100,
            callback=step,
            resume=checkpoint.kept(),
            keep=checkpoint.keep,
        )
        chain.names, chain.weights = names, result.x
        log.info("%s: loss %.6f after %d iterations (%s)",
                 self.part, result.loss, result.iterations, result.message)  # fmt: skip
        return TrainingReport(
            {self.part: result.loss}, {self.part: result.iterations}, result.converged, result.interrupted,
            sum(g.dropped for g in gold), sum(len(e.gold.links) for e in examples if e.gold is not None),
        )  # fmt: skip

    def _blocks(self, grid: Grid, segments: Segments) -> list[Block]:
        """Features of phrases read the tags, lemmas and WordNet if a token family does."""
        reads = {*self.requires, *self.resources}
        return segment_blocks(grid, segments, "pos" in reads, "wordnet" in reads, "lemma" in reads)

    def _model(
        self, pairs: Sequence[SentencePair], names: list[str] | None = None
    ) -> tuple[SegmentScores, list[str]]:
        """The scores of pairs as a function of the weights under `names`; by default all known and new names."""
        batch, grid = self.chain.features(pairs), Grid(pairs)
        segments = Segments(grid, self.longest, self.chain.device)
        blocks = self._blocks(grid, segments)
        if names is None:
            own = {name for block in blocks for name in block.names}
            names = sorted({*batch.names(), *self.chain.names, *own})
        phrases = _linear_scores(blocks, segments, names)
        share = torch.as_tensor(self._share, device=segments.device)
        return SegmentScores(segments, self.chain.chain_scores(batch, names), phrases, share), names

    def prepared(self, pairs: Sequence[SentencePair]) -> PreparedPhrases:
        """Pairs with their features looked up, to be decoded as often as the weights change."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = sorted((k for k, (m, n) in enumerate(sizes) if m and n), key=lambda k: sizes[k][1])
        names = self.chain.names
        if full and not names:
            raise ModelError(f"the {self.part} direction has not been trained: fit it, or go on with resume=DIR")
        return PreparedPhrases(
            sizes, full, names, self._model([pairs[k] for k in full], names)[0] if full else None
        )

    @torch.no_grad()
    def decode(self, prepared: PreparedPhrases, confidence: bool = True) -> list[Alignment]:
        """The alignments of prepared pairs under the present weights."""
        out = [Alignment(m, n) for m, n in prepared.sizes]
        if prepared.model is None:
            return out
        if prepared.names != self.chain.names:
            raise ValueError("these pairs were prepared for another set of features")
        segments = prepared.model.segments
        flat = prepared.model.scores(torch.as_tensor(self.chain.weights, device=segments.device))
        for place, alignment in zip(prepared.full, self._decoded(segments, flat, confidence), strict=True):
            out[place] = alignment
        return out

    def align_links(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """The links that `align` finds, without confidences and scores."""
        return self.align(pairs, confidence=False)

    @torch.no_grad()
    def align(self, pairs: Sequence[SentencePair], confidence: bool = True) -> list[Alignment]:
        """As `decode(prepared(pairs))`, without keeping features."""
        out = [Alignment(len(pair.source), len(pair.target)) for pair in pairs]
        chain, device = self.chain, self.chain.device
        for places, grid in grids(pairs, chain.batch_cells):
            (nodes,) = node_scores(grid, chain.scorer())
            _, scores, _ = chain.scored(grid, nodes)
            tokens, *steps = (torch.as_tensor(x, device=device) for x in scores)
            segments = Segments(grid, self.longest, device)
            sized = segments.pooled(tokens[grid.n_tokens :], torch.as_tensor(self._share, device=device)).view(-1)
            phrases = _linear_scores(self._blocks(grid, segments), segments, chain.names).once(chain.weights)
            sized += torch.as_tensor(phrases, device=device)
            flat = torch.cat([tokens[: grid.n_tokens], sized]), *steps
            for place, alignment in zip(places, self._decoded(segments, flat, confidence), strict=True):
                out[place] = alignment
        return out

    def _decoded(self, segments: Segments, flat: Sequence[Tensor], confidence: bool) -> list[Alignment]:
        """The links of the best paths.

        `confidence` adds the posterior of each link over all segmentations, and the log posterior of the path per
        source token as the score.
        """
        semi, of = SemiMarkov(segments, self.chain.batch_cells), segments.tokens
        pair, path, best = semi.best_paths(*flat)
        segment, i, j = links_of(path)
        pair = pair[segment]
        links = list(zip(i.tolist(), j.tolist(), strict=True))
        ends = np.searchsorted(pair, np.arange(len(best)), side="right").tolist()
        sizes = zip(of.n_source.tolist(), of.n_target.tolist(), [0, *ends], ends, strict=False)
        if not confidence:
            return [trusted(m, n, frozenset(links[begin:end])) for m, n, begin, end in sizes]
        log_z, counts = semi.expected(*flat)
        if not (torch.isfinite(log_z).all() and torch.isfinite(counts[0]).all()):
            raise ModelError(
                f"the {self.part} direction computes probabilities that are not numbers: its weights are far "
                "larger than those of a trained model"
            )
        sized = counts[0][of.n_tokens :].view(self.longest, self.longest, -1)
        posterior = segments.unpooled(sized, sized.new_ones(self.longest)).clamp_(0.0, 1.0).cpu().numpy()
        of_links = posterior[of.cell_start[pair] + i * of.n_target[pair] + j].tolist()
        score = ((best - log_z.cpu().numpy()) / of.n_source).tolist()
        out = []
        for (m, n, begin, end), own in zip(sizes, score, strict=True):
            found = dict(zip(links[begin:end], of_links[begin:end], strict=True))
            out.append(trusted(m, n, frozenset(found), confidence=found, score=own))
        return out

    def state(self) -> State:
        return self.chain.state()

    def restore(self, state: State) -> None:
        self.chain.restore(state)

    def check_columns(self) -> None:
        """Raise ConfigError unless the columns are those of the families, and of phrases."""
        self.chain.check_columns((PREFIX,))


def _linear_scores(blocks: Sequence[Block], segments: Segments, names: Sequence[str]) -> LinearScores:
    """The scores of sized segments under the weights of these names; other columns are ignored."""
    number = {name: i for i, name in enumerate(names)}
    known = [known_columns(block, numbered(block.names, number)) for block in blocks]
    return LinearScores(known, segments.n_sized, len(names), segments.device)


def span_costs(segments: Segments, gold: Sequence[GoldSegments], cost_null: float, cost_link: float) -> np.ndarray:
    """[segments] what each segment costs: a token pays the share of its and gold's links that are not in both."""
    of, D = segments.tokens, segments.longest
    spans = np.concatenate([g.spans for g in gold])
    linked = spans[:, 1] > 0
    first, past = spans[of.source_token].T
    of_cell = np.where(linked, cost_link, cost_null)[of.source_token]
    size = np.arange(1, D + 1)[:, None]
    both = np.clip(np.minimum(of.n + size, past) - np.maximum(of.n, first), 0, None)  # [D, C]
    by_span = of_cell * (1 - both / (size + past - first - both))
    sized = segments.over_rows(torch.as_tensor(by_span, device=segments.device))
    return np.concatenate([np.where(linked, cost_link, 0.0), sized.reshape(-1).cpu().numpy()])
