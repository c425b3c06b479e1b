"""A network and two linear chains, asked together: they err in different places, so both together err less.

Examples in, both trained on them; pairs in, alignments out. The log-odds of a link are a weighed sum of what the
network and what the linear chains think of it; weights and threshold are given, or learnt from held-out pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import ConfigError
from ...types import Alignment, Example, SentencePair
from ..base import TrainingReport, Watcher, learnable
from ..bidirectional import Bidirectional
from ..combination import Sample, Weighing, weighed
from ..posterior import FEWEST, best_threshold
from .cells import alignment_of, matrix_of
from .neural import Neural

log = logging.getLogger(__name__)

PARTS = ("network", "linear")


@dataclass
class Mixed:
    """`network`, and `linear`, which is two chains (Crf); each reads feature families of its own.

    `weights`    of the network's log-odds and of the linear chains'; `bias` is added to their sum.
    `threshold`  what is likelier is a link.
    `folds`      of the training pairs, each judged by a network and chains trained on the others, to learn these
                 figures; 0: they stay as they are.
    """

    network: Neural
    linear: Bidirectional
    weights: Sequence[float] = (0.5, 0.5)
    bias: float = 0.0
    threshold: float = 0.5
    folds: int = 0
    seed: int = 1
    weighing: Weighing = field(init=False)  # its forward is the network's, its backward the linear chains'

    def __post_init__(self) -> None:
        if not isinstance(self.network, Neural):
            raise ConfigError(f"network={type(self.network).__name__}: a Neural aligner is expected")
        if not isinstance(self.linear, Bidirectional) or self.linear.chains() is None:
            raise ConfigError("linear: a Bidirectional aligner of two Crf is expected")
        if len(self.weights) != 2 or not np.isfinite([*self.weights, self.bias]).all():
            raise ConfigError(f"weights={list(self.weights)}, bias={self.bias}: two figures, and one")
        if not 0 < self.threshold < 1:
            raise ConfigError(f"threshold={self.threshold}: between 0 and 1")
        if type(self.folds) is not int or self.folds < 0 or self.folds == 1:
            raise ConfigError(f"folds={self.folds!r}: two or more, or 0 to learn nothing")
        network, linear = self.weights
        self.weighing = Weighing(network, linear, self.bias, self.threshold)

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
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        """The chains first, which take seconds."""
        examples = learnable(examples)
        self.network.check()
        report = self.linear.fit(examples, dev, watch)
        if report.interrupted:
            return report
        try:
            report += self.network.fit(examples, dev, watch)
            if self.folds and not report.interrupted and len(examples) >= FEWEST:
                self.weighing = self._learnt(examples)
        except KeyboardInterrupt:  # the parts are done, or the chains are
            return replace(report, converged=False, interrupted=True)
        return report

    def _learnt(self, examples: Sequence[Example]) -> Weighing:
        """What suits pairs that neither part was trained on."""
        sample = Sample.joined([self._fresh()._judged(*split) for split in self._splits(examples)])
        found = weighed(sample)
        found = replace(found, threshold=best_threshold(sample, found))
        log.info("the network (forward) and the linear chains (backward) together: %s", found)
        return found

    def _splits(self, examples: Sequence[Example]) -> Iterator[tuple[list[Example], list[Example]]]:
        order = np.random.default_rng(self.seed).permutation(len(examples))
        for fold in range(self.folds):
            log.info("network and linear chains on held-out pairs: fold %d of %d", fold + 1, self.folds)
            held_out = np.sort(order[fold :: self.folds])
            rest = np.setdiff1d(order, held_out)
            yield [examples[k] for k in rest], [examples[k] for k in held_out]

    def _fresh(self) -> Mixed:
        """One of the same settings that has learnt nothing; of one network, which is much like several."""
        one, other = (
            replace(chain, names=[], weights=np.zeros(0))  # type: ignore[type-var]
            for chain in (self.linear.forward, self.linear.backward)
        )
        linear = replace(self.linear, forward=one, backward=other, weighing=Weighing())
        return replace(self, network=replace(self.network, members=1), linear=linear, folds=0)

    def _judged(self, training: Sequence[Example], held_out: Sequence[Example]) -> Sample:
        """Trained on some, what it thinks of every cell of others, and whether gold links it."""
        if self.fit(training).interrupted:
            raise KeyboardInterrupt
        network, linear = self._both([e.pair for e in held_out])
        gold = [matrix_of(e.gold) for e in held_out if e.gold is not None]
        flat = [np.concatenate([one.ravel() for one in matrices]) for matrices in (network, linear, gold)]
        return Sample(flat[0], flat[1], flat[2] > 0, np.repeat(np.arange(len(gold)), [one.size for one in gold]))

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        both = zip(*self._both(pairs), strict=True)
        return [
            alignment_of(self.weighing.chances(*one), self.weighing.threshold) if one[0].size
            else Alignment(*one[0].shape)
            for one in both
        ]  # fmt: skip

    def _both(self, pairs: Sequence[SentencePair]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """[M, N] of each pair: how likely every link is to the network, and to the linear chains."""
        linear = self.linear.posteriors(pairs)
        assert linear is not None  # both directions are chains
        return self.network.chances(pairs), linear

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        parts = {part: getattr(self, part).state() for part in PARTS}
        state = {f"{part}.{key}": value for part, own in parts.items() for key, value in own.items()}
        return {**state, **self.weighing.state()}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        for part in PARTS:
            mine = {k.removeprefix(f"{part}."): v for k, v in state.items() if k.startswith(f"{part}.")}
            getattr(self, part).restore(mine)
        self.weighing = Weighing.restored(state)
