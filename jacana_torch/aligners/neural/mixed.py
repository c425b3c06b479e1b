"""A neural aligner and two linear chains combined, which make fewer errors together than either alone.

The log-odds of a link are a weighted sum of those of both parts. The weights and the threshold are given, or
learnt from held-out pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from ...errors import ConfigError
from ...features.words import numbered
from ...types import Alignment, Example, SentencePair
from ...util.build import Inside, Items, Seed, Within
from ..bidirectional import Bidirectional
from ..calibration import FEWEST, NEAR, Sample, best_threshold, fitted
from ..posterior import Combination
from ..training import UNKEPT, Checkpoint, TrainingReport, Watcher, fit_phase, learnable
from .neural import Neural, alignment_of
from .training import matrix_of

if TYPE_CHECKING:
    from ...explain import Explanation

log = logging.getLogger(__name__)

Weight = Annotated[float, Within(-1000, 1000)]


@dataclass
class Mixed:
    """`network`, and `linear`, which is two chains (Crf); each has feature families of its own.

    `weights`    of the log-odds of the network and of the linear chains; `bias` is added to their sum.
    `threshold`  more probable cells are links.
    `folds`      learn these figures by cross-validation on the training pairs in so many folds; 0: keep them.
    """

    network: Neural
    linear: Bidirectional
    weights: Annotated[Sequence[Weight], Items(2, 2)] = (0.5, 0.5)
    bias: Weight = 0.0
    threshold: Inside = 0.5
    folds: Annotated[int, Within(0, 1000)] = 0
    seed: Seed = 1
    combination: Combination = field(
        init=False
    )  # "forward" stands for the network, "backward" for the linear chains
    _begun: tuple[Mapping[str, np.ndarray | list[str]], float] | None = field(init=False, default=None, repr=False)
    _phase: Checkpoint = field(default=UNKEPT, init=False, repr=False, compare=False)  # of training on a fold

    keeps_progress: ClassVar[bool] = True
    splits_pairs: ClassVar[bool] = True
    weighs_examples: ClassVar[bool] = True  # its chains are Crf, which do

    def __post_init__(self) -> None:
        if not isinstance(self.network, Neural):
            raise ConfigError(f"network={type(self.network).__name__}: should be a Neural aligner")
        if not isinstance(self.linear, Bidirectional) or self.linear.chains() is None:
            raise ConfigError("linear: should be a Bidirectional aligner of two Crf")
        if len(self.weights) != 2 or not np.isfinite([*self.weights, self.bias]).all():
            raise ConfigError(f"weights={list(self.weights)}, bias={self.bias}: give two weights and a bias")
        if not 0 < self.threshold < 1:
            raise ConfigError(f"threshold={self.threshold}: must be between 0 and 1")
        if type(self.folds) is not int or self.folds < 0 or self.folds == 1:
            raise ConfigError(f"folds={self.folds!r}: two or more, or 0 to learn nothing")
        self.combination = Combination(self.weights[0], self.weights[1], self.bias, self.threshold)

    @property
    def tolerance(self) -> float:
        return self.network.tolerance

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(sorted({*self.network.requires, *self.linear.requires}))

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(sorted({*self.network.resources, *self.linear.resources}))

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        """Train the chains, which takes seconds, then the network, then the combination."""
        examples = learnable(examples)
        self.network.check()
        report = fit_phase(self.linear, examples, dev, watch, checkpoint.phase("linear"))
        if report.interrupted:
            return report
        try:
            report += fit_phase(self.network, examples, dev, watch, checkpoint.phase("network"))
            if self.folds and not report.interrupted and len(examples) >= FEWEST:
                self._learn_combination(examples, checkpoint)
        except KeyboardInterrupt:  # what is trained so far is kept
            return replace(report, converged=False, interrupted=True)
        return report

    def _learn_combination(self, examples: Sequence[Example], checkpoint: Checkpoint) -> None:
        """Fit weights and threshold to pairs that neither part was trained on."""
        samples = []
        for number, (rest, held_out) in enumerate(self._splits(examples), 1):
            phase = checkpoint.phase(f"fold-{number}")
            sample = Sample.of_phase(phase)
            if sample is None:
                log.info("network and linear chains on held-out pairs: fold %d of %d", number, self.folds)
                sample = self._untrained(phase)._sample(rest, held_out)
                phase.finish(asdict(sample), TrainingReport())
            samples.append(sample)
        sample = Sample.joined(samples)
        found = fitted(sample) if self._begun is None else fitted(sample, self.combination, NEAR)
        self.combination = replace(found, threshold=best_threshold(sample, found))
        log.info("the network (forward) and the linear chains (backward) combined: %s", self.combination)

    def _splits(self, examples: Sequence[Example]) -> Iterator[tuple[list[Example], list[Example]]]:
        """Split examples into those to train on and those held out; those of one group stay together."""
        group = numbered([(e.group, k if e.group is None else 0) for k, e in enumerate(examples)])[1]
        order = np.random.default_rng(self.seed).permutation(int(group.max()) + 1)
        for fold in range(self.folds):
            inside = np.isin(group, order[fold :: self.folds])
            yield list(compress(examples, ~inside)), list(compress(examples, inside))

    def _untrained(self, phase: Checkpoint) -> Mixed:
        """An untrained aligner of the same settings, but of one network, which stands for several."""
        chains = self.linear.chains()
        assert chains is not None
        one, other = (replace(chain, names=[], weights=np.zeros(0), mean={}) for chain in chains)
        linear = replace(self.linear, forward=one, backward=other, combination=Combination())
        made = replace(self, network=replace(self.network, members=1), linear=linear, folds=0)
        if self._begun is not None:
            made.start_from(*self._begun)
        made._phase = phase
        return made

    def _sample(self, training: Sequence[Example], held_out: Sequence[Example]) -> Sample:
        """Train on some examples, and return the probabilities of all cells of others."""
        if self.fit(training, checkpoint=self._phase).interrupted:
            raise KeyboardInterrupt
        network, linear = self._both([e.pair for e in held_out])
        gold = [matrix_of(e.gold) for e in held_out if e.gold is not None]
        flat = [np.concatenate([one.ravel() for one in matrices]) for matrices in (network, linear, gold)]
        return Sample(flat[0], flat[1], flat[2] > 0, np.repeat(np.arange(len(gold)), [one.size for one in gold]))

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        combined, threshold = self.combination.combine, self.combination.threshold
        networks, linear = self._both(pairs)
        found = [combined(*both) if both[0].size else both[0] for both in zip(networks, linear, strict=True)]
        found = self.network.settled(pairs, found, threshold, lambda k, one: combined(one, linear[k]))
        return [alignment_of(one, threshold) if one.size else Alignment(*one.shape) for one in found]

    def explain(self, pairs: Sequence[SentencePair], symmetrize: object = None) -> Iterator[Explanation]:
        """Explain the log-odds of links by both parts. There is nothing to symmetrize."""
        from .explaining import explain_mixed

        return explain_mixed(self, pairs)

    def _both(self, pairs: Sequence[SentencePair]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """[M, N] the probability of each link by the network, and by the linear chains."""
        linear = self.linear.posteriors(pairs)
        assert linear is not None  # both directions are chains
        return self.network.probabilities(pairs), linear

    # Persistence

    def start_from(self, state: Mapping[str, np.ndarray | list[str]], pull: float) -> None:
        """Start from a mixed model, or one part from a model of that kind; the other part begins anew."""
        network, linear = "values" in state, "forward.names" in state
        if "network.values" in state:
            network = linear = True
            self.combination = Combination.restored(state)
        if not network and not linear:
            raise ConfigError("holds neither a network nor chains to start from")
        if network:
            self.network.start_from(state, pull)
        if linear:
            self.linear.start_from(state, pull)
        self._begun = state, pull

    def state(self) -> dict[str, np.ndarray | list[str]]:
        parts = {"network": self.network.state(), "linear": self.linear.state()}
        state = {f"{part}.{key}": value for part, own in parts.items() for key, value in own.items()}
        return {**state, **self.combination.state()}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        for part, aligner in (("network", self.network), ("linear", self.linear)):
            own = {k.removeprefix(f"{part}."): v for k, v in state.items() if k.startswith(f"{part}.")}
            aligner.restore(own)
        self.combination = Combination.restored(state)

    def check_columns(self) -> None:
        """Raise ConfigError unless the columns of both parts are those of their families."""
        self.network.check_columns()
        self.linear.check_columns()
