"""Alignment by agreement (Liang, Taskar & Klein 2006), the Cross-EM of MANLI's Table 1: directions learn together.

Each counts a link as likely as both think it: the product of their posteriors. Examples in, two aligners that
agree out; they align as `Bidirectional` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...aligners.base import Step, TrainingReport, Watcher
from ...aligners.bidirectional import Bidirectional
from ...errors import ConfigError
from ...types import Example
from .directed import Directed, report
from .em import as_expected, iterate
from .lattice import Posterior

ALIKE = ("form", "lexicon", "text", "stages", "batch_cells", "device")


@dataclass
class Agreement(Bidirectional):
    """`forward` and `backward` are two IBM 1 or two HMMs, trained on the same pairs in as many iterations.

    What a word's links leave of its certainty goes to NULL. Jumps are counted as each direction expects them by
    itself, which the paper leaves open. The sum of both log-likelihoods need not rise: agreement is what is
    maximised. The first `alone` iterations are each direction's own: from nothing, the product of two uncertain
    posteriors is next to nothing, and two that agree on NULL everywhere never come back from it.
    """

    alone: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alone < 0:
            raise ConfigError(f"alone={self.alone}: must be at least 0")
        for part in (self.forward, self.backward):
            if not isinstance(part, Directed):
                raise ConfigError(f"{type(part).__name__} cannot learn by agreement: Ibm1 and Hmm can")
        for name in ALIKE:
            one, other = getattr(self.forward, name), getattr(self.backward, name)
            if one != other:
                raise ConfigError(f"{name} is {one} forward and {other} backward: to agree, they must be the same")

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        aligners = [part for part in (self.forward, self.backward) if isinstance(part, Directed)]
        words = aligners[0].training_pairs(examples)
        flipped = [(target, source) for source, target in words]
        directions = [part.direction(pairs) for part, pairs in zip(aligners, (words, flipped), strict=True)]
        self._alone = 0 if len(aligners[0].table) else self.alone  # who goes on has something to agree upon
        stages, scale = aligners[0].stages, float(directions[0].text.weights.sum())
        losses: dict[str, list[float]] = {part.part: [] for part in aligners}

        def after(iteration: int) -> None:
            for part, direction in zip(aligners, directions, strict=True):
                losses[part.part].append(-direction.objective / scale)
            if watch is not None:
                for part, direction in zip(aligners, directions, strict=True):
                    part.learn(direction)
                for part in aligners:
                    watch(Step(part.part, iteration, losses[part.part][-1], 0.0, part))

        try:
            done = iterate(directions, stages, aligners[0].batch_cells, self._meet, after)
        finally:
            if all(losses.values()):
                for part, direction in zip(aligners, directions, strict=True):
                    part.learn(direction)
        return report(losses, done, len(stages), [direction.moves.p0 for direction in directions])

    def _meet(self, found: Sequence[Posterior], iteration: int) -> Sequence[tuple[torch.Tensor, torch.Tensor]]:
        return as_expected(found, iteration) if iteration <= self._alone else agreed(found)


def agreed(found: Sequence[Posterior]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The chances of links [M, B, N] and of NULL [M, B], as each direction counts them."""
    forward, backward = found
    both = forward.link * backward.link.permute(2, 1, 0)  # [M, B, N]
    out = []
    for own, link in ((forward, both), (backward, both.permute(2, 1, 0).clone())):
        left = (1 - link.sum(2)).clamp_min(0.0)
        out.append((link, torch.where(own.null > 0, left, 0.0)))  # no NULL where there is no word
    return out
