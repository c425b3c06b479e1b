"""Alignment by phrase edits: MANLI (MacCartney et al. 2008) and MANLI-Exact (Thadani & McKeown 2011)."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from ...aligners.base import numbers_in, words_in
from ...aligners.training import UNKEPT, Checkpoint, Step, TrainingReport, Watcher, learnable
from ...errors import ConfigError, ModelError
from ...features.families.distsim import VectorFile
from ...types import Alignment, Example, SentencePair
from ...util.batches import by_size
from ...util.build import Count, OneOf, Positive, Seed, Within, check_bounds
from .averaged_perceptron import Progress, Rates, learn
from .edit_decoding import Schedule, anneal, conditions, decode, decode_under
from .edit_features import Edit, Extractor, Problem
from .phrase_similarity import Similarity, coverage

log = logging.getLogger(__name__)

AT_ONCE = 2_000_000  # edits of the pairs whose features are computed together
# Pairs with more positive gains are annealed in training: young weights like many edits. Six epochs on 60 pairs of
# Edinburgh take 1.5 s with this limit, 20 s by exact decoding alone, and 5.6 s by annealing alone.
RAW = 200
SPURIOUS = 0.9  # cost of a phrase's link that gold lacks; below 1, so that runs of links are merged
_TIE = 1e-3
_AtMostOne = Annotated[float, Within(above=0, most=1)]


@dataclass
class Manli:
    """EQ, SUB, DEL and INS edits of phrases; a linear score; an averaged perceptron; simulated annealing.

    `max_phrase`  the most tokens of a phrase, on either side; deletions and insertions are of single tokens.
    `wordnet`, `vectors`, `ppdb`  the resources of the lexical similarity, besides spelling. Word vectors replace
                  the paper's distributional similarity. NomBank and Jiang & Conrath's measure are left out.
    `steps`, `temperature`, `cooling`  the annealing's N, T0 and r.
    `epochs`, `burn_in`, `rate`, `decay`, `normalise`  the perceptron's N, N0, R0, r, and L2 normalisation, which
                  Thadani & McKeown leave out.
    `train_by`    decoding while training: "exact", as Thadani & McKeown, or "annealing", as in the paper.
    `sharpness`   scales the trained weights, so that a gold edit adds this much to the score on average. The best
                  alignment does not depend on the scale, but how soon the annealing settles does.
    `seed`        of the annealing, and of the order of the training examples.

    Constituents are base phrases by tags, so no parse is needed. Beyond the paper, there are features for equal
    forms, for levels of the similarity, for the similarity next to matching neighbours, and for neighbours up to
    three tokens away or behind one skipped token. The perceptron averages the mean weights of every epoch, not the
    last ones.
    """

    max_phrase: Annotated[int, Within(1, 12)] = 6
    wordnet: bool = True
    vectors: VectorFile | None = "glove-840b"
    ppdb: bool = False
    steps: Annotated[int, Within(1, 10_000)] = 100
    temperature: Positive = 40.0
    cooling: _AtMostOne = 0.9
    epochs: Count = 50
    burn_in: Annotated[int, Within(0)] = 10
    rate: Positive = 1.0
    decay: _AtMostOne = 0.8
    normalise: bool = False
    train_by: Annotated[str, OneOf(("exact", "annealing"))] = "exact"
    sharpness: Positive = 10.0
    seed: Seed = 1
    weights: np.ndarray | None = field(default=None, init=False, repr=False)

    keeps_progress: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(Manli, vars(self))
        self._rates = Rates(self.epochs, self.burn_in, self.rate, self.decay, self.normalise)
        self._schedule = Schedule(self.steps, self.temperature, self.cooling)
        self._progress: Progress | None = None
        self.extract = Extractor(Similarity(self.wordnet, self.vectors, self.ppdb), self.max_phrase)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lemma", "pos")

    @property
    def resources(self) -> tuple[str, ...]:
        return self.extract.similarity.resources

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Align pairs. The score of an alignment is that of all its edits, including deletions and insertions."""
        columns, out = self.extract.columns, []
        for batch in by_size(pairs, self._n_edits, AT_ONCE):
            for pair, problem in zip(batch, self.extract(batch), strict=True):
                m, n = len(pair.source), len(pair.target)
                if not (m and n):
                    out.append(Alignment(m, n))
                    continue
                if self.weights is None:
                    raise ModelError("this aligner has not been trained: fit it, or go on with resume=DIR")
                gains = columns.gains(problem, self.weights)
                edits = self.edits(pair, problem, gains)
                score = columns.base(problem, self.weights) + float(sum(gains[edit] for edit in edits))
                out.append(Alignment(m, n, links_of(edits, problem), score=score))
        return out

    def edits(self, pair: SentencePair, problem: Problem, gains: np.ndarray) -> list[Edit]:
        """Decode by annealing. The random numbers depend only on the seed and on the words of the pair."""
        words = "\n".join(" ".join(sentence.tokens) for sentence in (pair.source, pair.target))
        random = np.random.default_rng([self.seed, zlib.crc32(words.encode())])
        return anneal(gains, problem.source, problem.target, self._schedule, random)

    def problems(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        """Compute the features of all edits of each pair; they take eight bytes per edit."""
        batches = by_size(pairs, self._n_edits, AT_ONCE)
        return [problem for batch in batches for problem in self.extract(batch)]

    def _n_edits(self, pair: SentencePair) -> int:
        return len(pair.source) * len(pair.target) * self.max_phrase**2

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        examples = learnable(examples)
        columns, problems = self.extract.columns, self.problems([e.pair for e in examples])
        alignments = [e.gold for e in examples if e.gold is not None]
        gold = [reachable(alignment, problem) for alignment, problem in zip(alignments, problems, strict=True)]
        progress = self._progress
        if (resumed := checkpoint.kept()) is not None:
            progress = Progress(resumed["current"], resumed["total"], int(resumed["epoch"][0]))
        elif (
            progress is None or progress.epoch >= self.epochs
        ):  # a complete training starts again from its weights
            size = len(columns.names)
            progress = Progress(np.zeros(size) if self.weights is None else self.weights.copy(), np.zeros(size))
        loss, interrupted = 0.0, False
        try:
            for epoch in learn(problems, gold, columns, self._decode, self._rates, self.seed, progress):
                self.weights = self._scaled(progress.average(self._rates), problems, gold)
                self._progress, loss = progress, epoch.loss
                if watch is not None:
                    watch(Step("aligned", epoch.number, epoch.loss, epoch.change, self))
                if progress.epoch < self.epochs:
                    checkpoint.keep(partial(dict, progress.state()))
        except KeyboardInterrupt:
            if not progress.epoch:
                raise
            interrupted = True
        log.info("%d epochs, loss %.4f", progress.epoch, loss)
        kept = [links_of(edits, problem) for edits, problem in zip(gold, problems, strict=True)]
        dropped = sum(len(a.sure - links) for a, links in zip(alignments, kept, strict=True))
        total = sum(len(a.sure) for a in alignments)
        exact = sum(a.sure == links for a, links in zip(alignments, kept, strict=True))
        note = f"{exact} of {len(kept)} gold alignments consist of phrases edited one to one"
        log.info("%s; %d of %d links cannot be reached", note, dropped, total)
        done = {"aligned": progress.epoch}
        return TrainingReport({"aligned": loss}, done, not interrupted, interrupted, dropped, total, (note,))

    def _decode(self, problem: Problem, weights: np.ndarray, random: np.random.Generator) -> list[Edit]:
        """Decode while training."""
        gains = self.extract.columns.gains(problem, weights)
        if self.train_by == "exact" and np.count_nonzero(gains > 0) <= RAW:
            return decode(gains, problem.source, problem.target)
        return anneal(gains, problem.source, problem.target, self._schedule, random)

    def _scaled(self, weights: np.ndarray, problems: Sequence[Problem], gold: Sequence[list[Edit]]) -> np.ndarray:
        """Scale the weights as `sharpness` says."""
        columns, edits = self.extract.columns, sum(map(len, gold))
        total = sum(weights @ columns.features(*one) for one in zip(problems, gold, strict=True))
        return weights * (self.sharpness * edits / total) if total > 0 else weights

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        if self.weights is None:
            return {}
        state: dict[str, np.ndarray | list[str]] = {
            "names": list(self.extract.columns.names),
            "weights": self.weights,
        }
        if self._progress is not None and self._progress.epoch < self.epochs:
            state.update(self._progress.state())
        return state

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        if not state:  # saved untrained
            return
        names = words_in(state, "names")
        if names != list(self.extract.columns.names):
            raise ConfigError(
                f"the model has {len(names)} features, and max_phrase={self.max_phrase} makes "
                f"{len(self.extract.columns.names)}, of which some have other names"
            )
        self.weights = numbers_in(state, "weights", len(names))
        if "epoch" in state:
            current, total = (numbers_in(state, key, len(names)) for key in ("current", "total"))
            self._progress = Progress(current, total, int(numbers_in(state, "epoch", 1, least=0)[0]))


@dataclass
class ManliExact(Manli):
    """The same model, decoded exactly and under constraints over a parse.

    `modifier`, `lineage`: the constraints M and L, which need a parse. As in the paper, they hold in alignment and
    not in training, because gold alignments sometimes violate them.
    """

    modifier: bool = True
    lineage: bool = True

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "lemma", "pos") if self.modifier or self.lineage else ("lemma", "pos")

    def edits(self, pair: SentencePair, problem: Problem, gains: np.ndarray) -> list[Edit]:
        required = conditions(pair, self.modifier, self.lineage) if self.modifier or self.lineage else []
        return decode_under(gains, problem.source, problem.target, required)


def reachable(gold: Alignment, problem: Problem) -> list[Edit]:
    """Return the edits that training aims at: those whose links are nearest to gold.

    Contiguous links become phrases, of which every token has a link. Of the links of a word that no phrase holds
    together, those remain that agree best with the others; similarity breaks ties.
    """
    source, target = problem.source, problem.target
    links = np.zeros((source.n, target.n))
    if gold.sure:
        links[tuple(np.array(sorted(gold.sure)).T)] = 1.0
    total = np.pad(links, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    found = total[source.end[:, None], target.end] - total[source.start[:, None], target.end]
    found -= total[source.end[:, None], target.start] - total[source.start[:, None], target.start]
    spurious = source.length[:, None] * target.length - found
    gains = found - SPURIOUS * spurious + _TIE * problem.similarity * found
    return decode(np.where(coverage(links, source, target) > 1 - _TIE, gains, 0.0), source, target)


def links_of(edits: Sequence[Edit], problem: Problem) -> frozenset[tuple[int, int]]:
    """Link each token of an edit's source phrase to each token of its target phrase."""
    source, target = problem.source, problem.target
    return frozenset(
        (i, j)
        for s, t in edits
        for i in range(int(source.start[s]), int(source.end[s]))
        for j in range(int(target.start[t]), int(target.end[t]))
    )
