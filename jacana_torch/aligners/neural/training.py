"""Train the networks of a neural aligner, one after the other, and keep the best epoch of each on dev."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...crf.states import gold_states
from ...evaluate import score
from ...optimize.epochs import Group, Plan, Result, descend
from ...types import Alignment, Example
from ...util import ranks
from ..base import State
from ..training import UNKEPT, Arrays, Checkpoint, Step, TrainingReport, Watcher
from .grid_chains import chain_loss
from .inputs import Batch, Encoded, Inputs, batches
from .network import ENCODER, GridNetwork, Output

if TYPE_CHECKING:
    from .neural import Neural, Prepared

log = logging.getLogger(__name__)

ALONE = 0.3  # the weight of the loss of cells by themselves
BEST = "best."  # begins the names of the best weights in a checkpoint


class Gold(NamedTuple):
    """The targets of a pair: the states of either side's tokens, all links [M, N], and how many no state holds.

    `weight` is how much the pair counts.
    """

    forward: np.ndarray
    backward: np.ndarray
    links: np.ndarray
    dropped: int
    weight: float = 1.0


class _Given(NamedTuple):
    """A process's share of a batch; none if it has fewer pairs than there are processes."""

    batch: Batch | None
    gold: list[Gold]
    share: float


def gold_of(gold: Alignment, policy: str, weight: float = 1.0) -> Gold:
    """The targets of an alignment. `policy` chooses the state of a token that has several links."""
    forward, backward = gold_states(gold, policy).states, gold_states(gold.flip(), policy).states
    held = {(i, s - 1) for i, s in enumerate(forward.tolist()) if s}
    held |= {(s - 1, j) for j, s in enumerate(backward.tolist()) if s}
    return Gold(forward, backward, matrix_of(gold), len(gold.sure - held), weight)


def matrix_of(gold: Alignment) -> np.ndarray:
    """[M, N] 1 for each sure link, 0 elsewhere."""
    out = np.zeros((gold.n_source, gold.n_target), np.float32)
    for i, j in gold.sure:
        out[i, j] = 1.0
    return out


def mean_loss(output: Output, gold: Sequence[Gold], inside: Tensor, cost: float) -> Tensor:
    """The softmax-margin loss of both chains and the cross-entropy of single cells, weighted, per pair."""
    weight = torch.tensor([g.weight for g in gold]).to(inside)
    total = chain_loss(output.forward, [g.forward for g in gold], cost)
    total = total + chain_loss(output.backward, [g.backward for g in gold], cost)
    links = np.zeros(output.alone.shape, np.float32)
    for k, one in enumerate(gold):
        links[k, : one.links.shape[0], : one.links.shape[1]] = one.links
    target = torch.from_numpy(links).to(output.alone)
    alone = nn.functional.binary_cross_entropy_with_logits(output.alone, target, reduction="none")
    return ((total + ALONE * (alone * inside.squeeze(3)).sum((1, 2))) * weight).sum() / len(gold)


@dataclass
class Best:
    """The weights of a network that scored best on dev, and the number of epochs since then."""

    network: GridNetwork
    f1: float = -1.0
    since: int = 0
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def reached(self, f1: float) -> int:
        """Compare the present weights; return the number of epochs since the best ones."""
        self.since += 1
        if f1 > self.f1:
            self.f1, self.since, self.weights = f1, 0, learnt(self.network)
        return self.since

    def restore(self) -> None:
        """Give the network its best weights, if any were scored."""
        fill(self.network, self.weights)

    def state(self) -> dict[str, np.ndarray]:
        best = {f"{BEST}{name}": array for name, array in self.weights.items()}
        return {**best, "scored": np.array([self.f1, self.since])}

    def resume(self, state: Arrays) -> None:
        self.f1, self.since = float(state["scored"][0]), int(state["scored"][1])
        self.weights = {name.removeprefix(BEST): state[name] for name in state if name.startswith(BEST)}


def learnt(network: GridNetwork) -> dict[str, np.ndarray]:
    """A copy of the weights that training changes."""
    return {name: p.detach().cpu().numpy().copy() for name, p in network.learnt().items()}


@torch.no_grad()
def fill(network: GridNetwork, weights: State) -> None:
    """Set weights that training changes."""
    parameters = network.learnt()
    for name, array in weights.items():
        parameters[name].copy_(torch.from_numpy(np.array(array)))


@dataclass
class Training:
    """A training run of the networks of `aligner`, on the inputs of examples, all of which have gold links."""

    aligner: Neural
    inputs: Sequence[Inputs]
    examples: Sequence[Example]
    dev: Sequence[Example] = ()
    watch: Watcher | None = None
    _targets: list[Gold] = field(init=False, repr=False)
    _encoded: list[Encoded] = field(default_factory=list, init=False, repr=False)
    _prepared: Prepared | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        policy = self.aligner.policy
        self._targets = [gold_of(e.gold, policy, e.weight) for e in self.examples if e.gold is not None]
        self.dev = [e for e in self.dev if e.gold is not None]

    def run(self, networks: Sequence[GridNetwork], checkpoint: Checkpoint = UNKEPT) -> TrainingReport:
        """Train each network from its own seed, and have the aligner keep the weights, also on Ctrl-C."""
        aligner = self.aligner
        total = sum(len(e.gold.sure) for e in self.examples if e.gold is not None)
        report = TrainingReport(dropped_links=sum(g.dropped for g in self._targets), total_links=total)
        for member, network in enumerate(networks):
            aligner.networks = list(networks[: member + 1])  # untrained ones would only add noise
            phase = checkpoint.phase(f"network-{member}")
            if (finished := phase.finished()) is not None:
                fill(network, finished[0])
                report += finished[1]
                continue
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(aligner.seed + member)
                result = self._train(network, member, phase)
            part = aligner.part if len(networks) == 1 else f"{aligner.part}{member}"
            own = TrainingReport(
                {part: result.loss}, {part: result.epochs}, not result.interrupted, result.interrupted
            )
            report += own
            if result.interrupted:
                break
            phase.finish(learnt(network), own)
        aligner.keep()
        return report

    def _train(self, network: GridNetwork, member: int, phase: Checkpoint) -> Result:
        aligner, best = self.aligner, Best(network)
        random = Random(aligner.seed + member)
        self._encoded = self._encoded or self._read(network)
        for block in network.blocks if aligner.captured else ():
            block.compile()
        if ranks.world > 1:
            fill(network, ranks.same(learnt(network)))
        before = random.getstate()  # of the epoch's batches

        def given(epoch: int) -> list[list[int]]:
            nonlocal before
            before = random.getstate()
            network.train()
            most = aligner.batch_pairs * ranks.world, aligner.batch_cells * ranks.world
            return batches([one.size for one in self.inputs], *most, random)

        def ended(epoch: int, loss: float, norm: float) -> bool:
            nonlocal before
            before = random.getstate()
            if self.watch is not None:
                self.watch(Step(aligner.part, member * aligner.epochs + epoch, loss, norm, aligner))
            if not self.dev:
                return False
            f1 = self._dev_f1() if ranks.rank == 0 else 0.0
            if ranks.world > 1:
                f1 = ranks.same(f1)
            log.info("epoch %d: loss %.4f, dev F1 %.2f", epoch, loss, 100 * f1)
            return best.reached(f1) >= aligner.patience

        def keep(state: Callable[[], dict[str, np.ndarray]]) -> None:
            if phase.due():
                order = {"order": np.array(before[1], dtype=np.uint32)}
                phase.keep(partial(dict, {**state(), **best.state(), **order}))

        kept = phase.kept()
        if kept is not None:
            random.setstate((before[0], tuple(kept["order"].tolist()), None))
            best.resume(kept)
        plan = Plan(aligner.epochs, aligner.accumulate, aligner.warmup, aligner.decay)
        groups = rates(network, aligner.rate, aligner.encoder_rate)
        result = descend(groups, given, partial(self._loss, network), plan, ended, kept, keep, self._ready)
        best.restore()
        return result

    def _read(self, network: GridNetwork) -> list[Encoded]:
        """Return the output of a frozen encoder for all inputs, of which each process reads a share."""
        aligner = self.aligner
        if ranks.world == 1 or not aligner.frozen:
            return aligner.encoded(network, self.inputs, keep=True)
        own = aligner.encoded(network, self.inputs[ranks.rank :: ranks.world], keep=True)
        parts = ranks.gathered([Encoded(*(x.cpu() for x in one)) for one in own])
        found = [parts[k % ranks.world][k // ranks.world] for k in range(len(self.inputs))]
        return [Encoded(*(x.to(aligner.device) for x in one)) for one in found]

    def _ready(self, places: Sequence[int]) -> _Given:
        """Return what the loss of a batch takes: this process's share of its pairs, on the device."""
        own, aligner = places[ranks.rank :: ranks.world], self.aligner
        if not own:
            return _Given(None, [], 0.0)
        batch = Batch.of([self.inputs[k] for k in own], aligner.columns, aligner.device)
        if self._encoded:
            batch = replace(batch, encoded=[self._encoded[k] for k in own])
        return _Given(batch, [self._targets[k] for k in own], len(own) / len(places))

    def _loss(self, network: GridNetwork, given: _Given) -> Tensor:
        batch, gold, share = given
        if batch is None:
            return torch.zeros((), device=self.aligner.device, requires_grad=True)
        return mean_loss(network(batch), gold, batch.inside, self.aligner.cost) * share

    def _dev_f1(self) -> float:
        if self._prepared is None:
            self._prepared = self.aligner.prepared([e.pair for e in self.dev])
        gold = [e.gold for e in self.dev if e.gold is not None]
        return score(gold, self.aligner.decode(self._prepared)).f1


def rates(network: GridNetwork, rate: float, encoder_rate: float) -> list[Group]:
    """The parameters of the encoder, which have a learning rate of their own, and all others."""
    learnt = network.learnt().items()
    groups = [Group([p for name, p in learnt if not name.startswith(ENCODER)], rate)]
    if encoder_rate:
        groups.append(Group([p for name, p in learnt if name.startswith(ENCODER)], encoder_rate))
    return groups
