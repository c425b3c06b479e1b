"""MANLI (MacCartney, Galley & Manning 2008): phrases edited into each other, found by simulated annealing."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...aligners.base import Step, TrainingReport, Watcher, learnable
from ...errors import ConfigError, ModelError
from ...types import Alignment, Example, SentencePair
from .annealing import Schedule, anneal
from .edit_features import Edit, Extractor, Problem
from .gold_edits import links_of, reachable
from .lexical_similarity import Similarity
from .packing import decode
from .perceptron import Progress, Rates, learn

log = logging.getLogger(__name__)
AT_ONCE = 2_000_000  # edits of the pairs whose features are computed together
RAW = 200  # edits: where more look good, weights are young, and exact decoding in training is not worth its time


@dataclass
class Manli:
    """EQ, SUB, DEL and INS edits of phrases, a linear score, an averaged perceptron, simulated annealing.

    `max_phrase`  the most tokens of a phrase, on either side; deletions and insertions are of single tokens.
    `wordnet`, `vectors`, `ppdb`  the resources whose maximum is the lexical similarity, besides spelling. Vectors
                  stand for the paper's distributional similarity; NomBank and Jiang & Conrath's are absent.
    `steps`, `temperature`, `cooling`  the annealing's N, T0 and r; `seed` also of the order of training examples.
    `epochs`, `burn_in`, `rate`, `decay`, `normalise`  the perceptron's N, N0, R0, r, and L2 normalisation, which
                  Thadani & McKeown leave out.
    `train_by`    "exact" decoding while training, as Thadani & McKeown, or the paper's "annealing".
    `sharpness`   what a gold edit adds to the score on average, with the weights that come out: no best alignment
                  depends on their scale, but how soon the annealing settles does.

    Constituents are base phrases seen in the tags, so no parse is needed. Beyond the paper, features say whether
    EQ edits have the same form, let the similarity be worth more by steps and next to matching neighbours, and
    look for neighbours up to three tokens away or behind one that is skipped; and what the perceptron stores of
    an epoch are its mean weights, not its last ones.
    """

    max_phrase: int = 6
    wordnet: bool = True
    vectors: str | None = "glove-840b"
    ppdb: bool = False
    steps: int = 100
    temperature: float = 40.0
    cooling: float = 0.9
    epochs: int = 50
    burn_in: int = 10
    rate: float = 1.0
    decay: float = 0.8
    normalise: bool = False
    train_by: str = "exact"
    sharpness: float = 10.0
    seed: int = 1
    weights: np.ndarray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.train_by not in ("exact", "annealing"):
            raise ConfigError(f"train_by={self.train_by!r} is neither exact nor annealing")
        if not 1 <= self.max_phrase <= 12:
            raise ConfigError(f"max_phrase={self.max_phrase}: a phrase has between 1 and 12 tokens")
        if self.seed < 0 or not 0 < self.sharpness < np.inf:
            raise ConfigError(f"seed={self.seed}, sharpness={self.sharpness}: not negative, and positive")
        self._rates = Rates(self.epochs, self.burn_in, self.rate, self.decay, self.normalise)
        self._schedule = Schedule(self.steps, self.temperature, self.cooling)
        self._progress: Progress | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lemma", "pos")

    @property
    def resources(self) -> tuple[str, ...]:
        return self._similarity.resources

    @cached_property
    def _similarity(self) -> Similarity:
        return Similarity(self.wordnet, self.vectors, self.ppdb)

    @cached_property
    def extract(self) -> Extractor:
        """Pairs in, the features of all their edits out."""
        return Extractor(self._similarity, self.max_phrase)

    # Training

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        examples = learnable(examples)
        problems = self.problems([e.pair for e in examples])
        alignments = [e.gold for e in examples if e.gold is not None]
        gold = [reachable(alignment, problem) for alignment, problem in zip(alignments, problems, strict=True)]
        progress = self._begin()
        loss, interrupted = 0.0, False
        try:
            for epoch in learn(
                problems, gold, self.extract.columns, self._guess, self._rates, self.seed, progress
            ):
                self.weights, self._progress = (
                    self._scaled(progress.average(self._rates), problems, gold),
                    progress,
                )
                loss = epoch.loss
                if watch is not None:
                    watch(Step("aligned", epoch.number, epoch.loss, epoch.change, self))
        except KeyboardInterrupt:
            if not progress.epoch:
                raise
            interrupted = True
        log.info("%d epochs, loss %.4f", progress.epoch, loss)
        return self._report(alignments, problems, gold, progress.epoch, loss, interrupted)

    def _begin(self) -> Progress:
        """Where training was left; a finished one starts once more, from what was learnt."""
        size = len(self.extract.columns.names)
        if self._progress is not None and self._progress.epoch < self.epochs:
            return self._progress
        return Progress(np.zeros(size) if self.weights is None else self.weights.copy(), np.zeros(size))

    def _report(
        self,
        alignments: Sequence[Alignment],
        problems: Sequence[Problem],
        gold: Sequence[list[Edit]],
        epochs: int,
        loss: float,
        interrupted: bool,
    ) -> TrainingReport:
        kept = [links_of(edits, problem) for edits, problem in zip(gold, problems, strict=True)]
        dropped = sum(len(a.sure - links) for a, links in zip(alignments, kept, strict=True))
        total = sum(len(a.sure) for a in alignments)
        exact = sum(a.sure == links for a, links in zip(alignments, kept, strict=True))
        note = f"{exact} of {len(kept)} gold alignments are phrases edited one to one as they are"
        log.info("%s; %d of %d links are out of reach", note, dropped, total)
        done = {"aligned": epochs}
        return TrainingReport({"aligned": loss}, done, not interrupted, interrupted, dropped, total, (note,))

    def _guess(self, problem: Problem, weights: np.ndarray, random: np.random.Generator) -> list[Edit]:
        gains = self.extract.columns.gains(problem, weights)
        if self.train_by == "exact" and np.count_nonzero(gains > 0) <= RAW:
            return decode(gains, problem.source, problem.target)
        return anneal(gains, problem.source, problem.target, self._schedule, random)

    def _scaled(self, weights: np.ndarray, problems: Sequence[Problem], gold: Sequence[list[Edit]]) -> np.ndarray:
        """The weights times a factor: that of `sharpness`."""
        columns, edits = self.extract.columns, sum(map(len, gold))
        total = sum(weights @ columns.features(*one) for one in zip(problems, gold, strict=True))
        return weights * (self.sharpness * edits / total) if total > 0 else weights

    # Alignment

    def problems(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        """The features of all edits of each pair; eight bytes an edit."""
        return [problem for batch in self._batches(pairs) for problem in self.extract(batch)]

    def _batches(self, pairs: Sequence[SentencePair]) -> Iterator[Sequence[SentencePair]]:
        """The pairs in order, in batches that fit in memory."""
        edits = [len(p.source) * len(p.target) * self.max_phrase**2 for p in pairs]
        start = total = 0
        for k, size in enumerate(edits):
            if total + size > AT_ONCE and k > start:
                yield pairs[start:k]
                start, total = k, 0
            total += size
        if start < len(pairs):
            yield pairs[start:]

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """The score of each alignment is the sum of its edits', deletions and insertions among them."""
        return [alignment for batch in self._batches(pairs) for alignment in self._align(batch)]

    def _align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        out = []
        for pair, problem in zip(pairs, self.extract(pairs), strict=True):
            m, n = len(pair.source), len(pair.target)
            if not (m and n):
                out.append(Alignment(m, n))
                continue
            if self.weights is None:
                raise ModelError("this aligner has not been trained: fit it, or go on with resume=DIR")
            gains = self.extract.columns.gains(problem, self.weights)
            edits = self.edits(pair, problem, gains)
            score = self.extract.columns.base(problem, self.weights) + float(sum(gains[edit] for edit in edits))
            out.append(Alignment(m, n, links_of(edits, problem), score=score))
        return out

    def edits(self, pair: SentencePair, problem: Problem, gains: np.ndarray) -> list[Edit]:
        """What the annealing finds; chance depends on the seed and the words, not on the company of the pair."""
        words = "\n".join(" ".join(sentence.tokens) for sentence in (pair.source, pair.target))
        random = np.random.default_rng([self.seed, zlib.crc32(words.encode())])
        return anneal(gains, problem.source, problem.target, self._schedule, random)

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        if self.weights is None:
            return {}
        state: dict[str, np.ndarray | list[str]] = {
            "names": list(self.extract.columns.names),
            "weights": self.weights,
        }
        if self._progress is not None and self._progress.epoch < self.epochs:
            state["current"], state["total"] = self._progress.current, self._progress.total
            state["epoch"] = np.array([self._progress.epoch])
        return state

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        if not state:  # saved before it was trained
            return
        names, weights = list(state["names"]), np.asarray(state["weights"], dtype=np.float64)
        if names != list(self.extract.columns.names):
            raise ConfigError(
                f"the model has {len(names)} features, and max_phrase={self.max_phrase} makes "
                f"{len(self.extract.columns.names)} of which some have other names"
            )
        if weights.shape != (len(names),) or not np.isfinite(weights).all():
            raise ConfigError(f"{weights.shape} weights for {len(names)} features, or some that are not finite")
        self.weights = weights
        if "epoch" in state:
            current, total = (np.asarray(state[key], dtype=np.float64) for key in ("current", "total"))
            self._progress = Progress(current, total, int(np.asarray(state["epoch"])[0]))
