"""The token-based aligner of the Stanford RTE system (Chambers et al. 2007), as MacCartney et al. describe it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from ...aligners.base import numbers_in, words_in
from ...aligners.training import UNKEPT, Checkpoint, Step, TrainingReport, Watcher, learnable
from ...errors import ConfigError, ModelError, PairError
from ...features.families.distsim import VectorFile
from ...types import Alignment, Example, SentencePair, trusted
from ...util.batches import by_size
from ...util.build import Count, Seed, check_bounds
from .injective_search import Model, search
from .link_features import JOINT, Extractor, Lexicon, Problem

log = logging.getLogger(__name__)
CELLS_AT_ONCE = 1 << 16
LARGEST_PAIR = 1 << 25  # choices for both ends of all edges


@dataclass
class Stanford:
    """An injective map of target tokens to source tokens, scored by lexical and syntactic features.

    The features of a link are spelling, WordNet, vectors, tags, neighbours, heads and children. For two links
    whose target tokens are head and child, they are how the source tokens are joined. The paper gives no details
    of the features and the search. It says that the original skips punctuation; here punctuation is aligned like
    words, and the search is exact (see injective_search.py).

    `wordnet`, `vectors`  the resources; vectors measure distributional similarity.
    `epochs`  of the averaged perceptron;  `seed`  of the order of the training examples.
    """

    wordnet: bool = True
    vectors: VectorFile | None = "glove-840b"
    epochs: Count = 20
    seed: Seed = 1
    weights: np.ndarray | None = field(default=None, init=False, repr=False)

    keeps_progress: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(Stanford, vars(self))
        self._lexicon = Lexicon(self.wordnet, self.vectors)
        self._extract = Extractor(self._lexicon)

    @property
    def requires(self) -> tuple[str, ...]:
        return ("deprel", "head", "lemma", "pos")

    @property
    def resources(self) -> tuple[str, ...]:
        return self._lexicon.resources

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return (*self._extract.names, *(f"edge.{name}" for name in JOINT))

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Align pairs. The score of an alignment is that of its features, per target token."""
        return self.decode(self._problems(pairs))

    def prepared(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        return list(self._problems(pairs))

    def decode(self, problems: Sequence[Problem] | Iterator[Problem]) -> list[Alignment]:
        out = []
        for problem in problems:
            n, m, _ = problem.cells.shape
            if not (m and n):
                out.append(Alignment(m, n))
                continue
            if self.weights is None:
                raise ModelError("this aligner has not been trained: fit it, or go on with resume=DIR")
            found = search(self._model(problem, self.weights))
            links = frozenset((i, j) for j, i in enumerate(found.choice.tolist()) if i < m)
            out.append(trusted(m, n, links, score=found.score / n))
        return out

    def _problems(self, pairs: Sequence[SentencePair]) -> Iterator[Problem]:
        for some in by_size(pairs, _size, CELLS_AT_ONCE):
            yield from self._extract(some)

    def _model(self, problem: Problem, weights: np.ndarray) -> Model:
        n, m, _ = problem.cells.shape
        k = len(self._extract.names)
        unary = np.zeros((n, m + 1))
        unary[:, :m] = self._extract.scores(problem, weights[:k])
        tree = problem.tree
        return Model(unary, weights[k:][problem.joints()], tree.head[tree.child], tree.child, tree.levels)

    def features(self, problem: Problem, choice: np.ndarray) -> np.ndarray:
        """[K] the sum of the features of a map's links and edges. `choice` [N]: source tokens, M for none."""
        tree = problem.tree
        head, child = choice[tree.head[tree.child]], choice[tree.child]
        joints = problem.joints()[np.arange(len(tree.child)), head, child]
        return np.concatenate([self._extract.total(problem, choice), np.bincount(joints, minlength=len(JOINT))])

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        examples = learnable(examples)
        problems = self.prepared([e.pair for e in examples])
        golds = [e.gold for e in examples if e.gold is not None]
        identical = self.names.index("identical")
        wanted = [injective(gold, problem, identical) for gold, problem in zip(golds, problems, strict=True)]
        loss, done, interrupted = 0.0, 0, False
        try:
            for done, loss, change in self._learn(problems, wanted, checkpoint):
                if watch is not None:
                    watch(Step("aligned", done, loss, change, self))
        except KeyboardInterrupt:
            if not done:
                raise
            interrupted = True
        total = sum(len(gold.sure) for gold in golds)
        dropped = total - sum(int((w < p.cells.shape[1]).sum()) for w, p in zip(wanted, problems, strict=True))
        log.info("%d epochs, loss %.4f", done, loss)
        return TrainingReport({"aligned": loss}, {"aligned": done}, not interrupted, interrupted, dropped, total)

    def _learn(
        self, problems: Sequence[Problem], wanted: Sequence[np.ndarray], checkpoint: Checkpoint
    ) -> Iterator[tuple[int, float, float]]:
        """Train; yield the number and loss of each epoch, and the change of the averaged weights."""
        weights = np.zeros(len(self.names)) if self.weights is None else self.weights.copy()
        total, steps, begun = np.zeros_like(weights), 0, 0
        average = weights
        if (kept := checkpoint.kept()) is not None:
            weights, total, average = (kept[name].copy() for name in ("current", "total", "average"))
            steps, begun = map(int, kept["done"])
        for epoch in range(begun + 1, self.epochs + 1):
            loss = 0.0
            for k in np.random.default_rng([self.seed, epoch]).permutation(len(problems)).tolist():
                problem, gold = problems[k], wanted[k]
                model = self._model(problem, weights)
                found = search(model)
                if (found.choice != gold).any():
                    loss += max(0.0, found.score - model.score(gold))
                    weights = weights + self.features(problem, gold) - self.features(problem, found.choice)
                total += weights
                steps += 1
            before, average = average, total / steps
            self.weights = average
            yield epoch, loss / len(problems), float(np.linalg.norm(average - before))
            if epoch < self.epochs:
                done = np.array([steps, epoch])
                state = {"current": weights, "total": total.copy(), "average": average, "done": done}
                checkpoint.keep(partial(dict, state))

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return {} if self.weights is None else {"names": list(self.names), "weights": self.weights}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        if not state:  # saved untrained
            return
        names = words_in(state, "names")
        if names != list(self.names):
            raise ConfigError(
                f"the model has {len(names)} features, and these settings make {len(self.names)} others"
            )
        self.weights = numbers_in(state, "weights", len(names))


def injective(gold: Alignment, problem: Problem, identical: int) -> np.ndarray:
    """[N] the gold links, or as many as an injective map can hold; M for tokens without a link.

    Links of identical words are preferred; `identical` is the number of their feature.
    """
    from scipy.optimize import linear_sum_assignment

    n, m, _ = problem.cells.shape
    value = np.zeros((n, m))
    for i, j in gold.sure:
        value[j, i] = 1.0 + 1e-3 * problem.cells[j, i, identical]
    rows, columns = linear_sum_assignment(value, maximize=True)
    choice = np.full(n, m)
    kept = value[rows, columns] > 0
    choice[rows[kept]] = columns[kept]
    return choice


def _size(pair: SentencePair) -> int:
    """The number of cells; a pair that does not fit in memory is a PairError."""
    m, n = len(pair.source), len(pair.target)
    if (m + 1) ** 2 * n > LARGEST_PAIR:
        raise PairError(
            f"a pair of {m} x {n} tokens has more than {LARGEST_PAIR:,} choices of two links, which is too large: "
            "split it into sentences"
        )
    return m * n
