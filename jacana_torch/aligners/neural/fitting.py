"""Training of the neural aligner's networks, one after the other.

What they read and should say in; a report out. The epoch that dev liked best is kept, where there is a dev.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ...crf.loss import softmax_margin
from ...crf.states import pad_states
from ...evaluate import score
from ...optimize.epochs import Group, Plan, Result, descend
from ...types import Alignment, Example
from ..base import Step, TrainingReport, Watcher
from .cells import Gold, batches, gold_of, padded
from .inputs import Batch, Inputs
from .network import GridNetwork, Judged, Seen
from .weights import ENCODER

if TYPE_CHECKING:
    from .neural import Neural, Prepared

log = logging.getLogger(__name__)

ALONE = 0.3  # the weight of what cells say by themselves

Weights = dict[str, Tensor]


@dataclass
class Fitting:
    """What a run of training has: the aligner, what its networks read and should say, and who watches."""

    aligner: Neural
    inputs: Sequence[Inputs]
    gold: Sequence[Alignment]
    dev: Sequence[Example] = ()
    watch: Watcher | None = None
    _gold: list[Gold] = field(init=False, repr=False)
    _seen: list[Seen] = field(default_factory=list, init=False, repr=False)
    _prepared: Prepared | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._gold = [gold_of(one, self.aligner.policy) for one in self.gold]
        self.dev = [e for e in self.dev if e.gold is not None]

    def run(self, networks: Sequence[GridNetwork]) -> TrainingReport:
        """Train networks, with random numbers of their own; what was learnt is kept, also after Ctrl-C."""
        aligner = self.aligner
        report = TrainingReport(dropped_links=sum(g.dropped for g in self._gold), total_links=self._n_links())
        for member, network in enumerate(networks):
            aligner.networks = list(networks[: member + 1])  # one not yet begun would only add noise
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(aligner.seed + member)
                result = self._train(network, member)
            part = aligner.part if len(networks) == 1 else f"{aligner.part}{member}"
            report += TrainingReport(
                {part: result.loss}, {part: result.epochs}, not result.interrupted, result.interrupted
            )
            if result.interrupted:
                break
        aligner.keep()
        return report

    def _n_links(self) -> int:
        return sum(len(one.sure) for one in self.gold)

    def _train(self, network: GridNetwork, member: int) -> Result:
        aligner = self.aligner
        random = Random(aligner.seed + member)
        best = _Best()
        self._seen = self._seen or aligner.seen(network, self.inputs, keep=True)

        def given(epoch: int) -> list[list[int]]:
            network.train()
            return batches([one.size for one in self.inputs], aligner.batch_pairs, aligner.batch_cells, random)

        def ended(epoch: int, loss: float, norm: float) -> bool:
            if self.watch is not None:
                self.watch(Step(aligner.part, member * aligner.epochs + epoch, loss, norm, aligner))
            if not self.dev:
                return False
            f1 = self._dev_f1()
            log.info("epoch %d: loss %.4f, dev F1 %.2f", epoch, loss, 100 * f1)
            return best.worse_for(f1, network) >= aligner.patience

        plan = Plan(aligner.epochs, aligner.accumulate, aligner.warmup, aligner.decay)
        groups = rates(network, aligner.rate, aligner.encoder_rate)
        result = descend(groups, given, lambda places: self._loss(network, places), plan, ended)
        best.restore(network)
        return result

    def _loss(self, network: GridNetwork, places: Sequence[int]) -> Tensor:
        aligner = self.aligner
        batch = Batch.of([self.inputs[k] for k in places], aligner.columns, aligner.device)
        if self._seen:
            batch = replace(batch, seen=[self._seen[k] for k in places])
        return mean_loss(network(batch), [self._gold[k] for k in places], batch.inside, aligner.cost)

    def _dev_f1(self) -> float:
        if self._prepared is None:
            self._prepared = self.aligner.prepared([e.pair for e in self.dev])
        gold = [e.gold for e in self.dev if e.gold is not None]
        return score(gold, self.aligner.decode(self._prepared)).f1


@dataclass
class _Best:
    """The weights of the epoch that dev liked best."""

    f1: float = -1.0
    since: int = 0
    weights: Weights = field(default_factory=dict)

    def worse_for(self, f1: float, network: GridNetwork) -> int:
        """How many epochs ago the best was."""
        if f1 > self.f1:
            self.f1, self.since = f1, 0
            self.weights = {name: p.detach().clone() for name, p in network.learnt().items()}
        else:
            self.since += 1
        return self.since

    def restore(self, network: GridNetwork) -> None:
        with torch.no_grad():
            for name, parameter in network.learnt().items() if self.weights else ():
                parameter.copy_(self.weights[name])


def rates(network: GridNetwork, rate: float, encoder_rate: float) -> list[Group]:
    """The encoder learns at a rate of its own."""
    inside = [name.startswith(ENCODER) for name in network.learnt()]
    own: list[nn.Parameter] = [
        p for p, within in zip(network.learnt().values(), inside, strict=True) if not within
    ]
    encoder = [p for p, within in zip(network.learnt().values(), inside, strict=True) if within]
    return [Group(own, rate), *([Group(encoder, encoder_rate)] if encoder_rate else [])]


def mean_loss(judged: Judged, gold: Sequence[Gold], inside: Tensor, cost: float) -> Tensor:
    """The softmax margin of both chains and the cross-entropy of cells by themselves: a mean over pairs."""
    total = inside.new_zeros(())
    for potentials, paths in ((judged.ahead, [g.ahead for g in gold]), (judged.back, [g.back for g in gold])):
        states = torch.from_numpy(pad_states(paths, potentials.shape[1])).to(inside.device)
        total = total + softmax_margin(potentials, states, cost, cost).sum()
    links = padded([g.links for g in gold], str(inside.device)).to(judged.alone)
    alone = nn.functional.binary_cross_entropy_with_logits(judged.alone, links, reduction="none")
    return (total + ALONE * (alone * inside.squeeze(3)).sum()) / len(gold)
