"""The neural aligner: two linear chains, one per direction, over scores of a network that sees the whole grid.

The network reads the columns of feature families and, with an encoder, contextual vectors of both sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from ...crf.arrays import usable_device
from ...crf.states import POLICIES
from ...encoders import checkpoint
from ...encoders.eight_bits import in_eight_bits, known, quick, quick_halves
from ...encoders.pieces import READINGS
from ...errors import ConfigError, ModelError, PairError
from ...features.featureset import Families, FeatureSet
from ...types import Alignment, Example, SentencePair, trusted
from ...util.build import Cells, Count, Items, NotNegative, OneOf, Seed, Within, check_bounds
from ..training import UNKEPT, Checkpoint, TrainingReport, Watcher, learnable
from . import weights
from .grid_chains import mean_posterior
from .inputs import AT_A_TIME, Batch, Columns, Encoded, Inputs, Projection, batches, inputs_of
from .network import Contextual, GridNetwork, Output, encoded, read
from .training import Training

if TYPE_CHECKING:
    from ...explain import Explanation

JUDGES = ("chains", "cells", "both")
NEAR = 0.01  # of the threshold: what 8 bits do not settle
LARGEST_PAIR = 1_000_000  # cells; the network holds some hundred numbers for each
_Layers = Annotated[Sequence[Annotated[int, Within(-1000, 1000)]], Items()]
_BelowOne = Annotated[float, Within(0, below=1)]
_Map = Callable[[int, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Prepared:
    """Pairs by their sizes, the indices of those with words on both sides, and the network's inputs for these."""

    sizes: list[tuple[int, int]]
    full: list[int]
    inputs: list[Inputs]


@dataclass
class Neural:
    """A network over the grid, and two chains.

    `families`, `drop`, `policy`  as in Crf; `cost` is that of the softmax margin.
    `rarest`      one-hot columns are read if they are on in at least so many training cells; null: none is read.

    `encoder`     a resource's name, the folder of a checkpoint, or null. `reading` "together" shows it both
                  sentences at once, "apart" one at a time. The network reads cosines of its `layers` (none given:
                  all) and `views` learnt products of its last layer.
    `rank`        of the adapters by which the encoder is trained; 0: it is frozen; null: all its weights are
    trained. `width`, `blocks`, `dropout`  of the network over the grid. `members`     networks trained from
    different seeds, whose posteriors are averaged. The model that they start
                  from may have fewer members, which then serve several.
    `epochs`, `rate`, `encoder_rate`, `warmup`, `decay`, `accumulate`  of AdamW; see optimize/epochs.py. With
                  `encoder_rate` 0 the encoder is frozen and runs once per pair.
    `batch_pairs`, `batch_cells`  the most that a batch holds, and so many times more of processes that train
                  together; a larger pair is a batch by itself.
    `patience`    training ends after so many epochs without a better F1 on dev, and keeps the best epoch's
    weights. `mixed`       run the encoder in half precision; null: if that is faster on this device, and when
                  aligning on a CPU in 8 bits, if that is faster still (encoders/eight_bits.py). `judge`,
    `threshold`  cells above the threshold are links, by the mean posterior of both "chains", by the
                  probability of the "cells" by themselves, or by the mean of "both". "cells" suits corpora whose
                  words have many links each.
    `captured`    train with blocks that `torch.compile` has compiled; each shape of a batch may be compiled anew.
    `start`       the directory of a model of the same shape to start from, e.g. one trained on other corpora.
    """

    families: Families
    drop: str | Sequence[str] = ()
    encoder: checkpoint.Encoder | None = None
    reading: Annotated[str, OneOf(READINGS)] = "together"
    layers: _Layers = ()
    views: Annotated[int, Within(0, 1024)] = 16
    rank: Annotated[int, Within(0, 4096)] | None = 16
    width: Annotated[int, Within(1, 4096)] = 32
    blocks: Annotated[int, Within(0, 64)] = 2
    dropout: _BelowOne = 0.1
    rarest: Count | None = None
    policy: Annotated[str, OneOf(tuple(POLICIES))] = "monotone"
    cost: NotNegative = 0.5
    members: Annotated[int, Within(1, 64)] = 1
    epochs: Count = 8
    rate: NotNegative = 3e-3
    encoder_rate: NotNegative = 1e-3
    warmup: _BelowOne = 0.1
    decay: NotNegative = 0.01
    accumulate: Count = 1
    batch_pairs: Count = 8
    batch_cells: Cells = 40_000
    patience: Count = 5
    mixed: bool | None = False
    captured: bool = False
    judge: Annotated[str, OneOf(JUDGES)] = "chains"
    threshold: _BelowOne = 0.5
    start: str | None = None
    seed: Seed = 1
    device: str = "cpu"
    part: str = "grid"
    columns: Columns = field(default_factory=Columns, init=False, repr=False)
    _kept: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    _trained_with: str = field(default="", init=False, repr=False)  # the checksum of a folder's encoder
    networks: list[GridNetwork] = field(default_factory=list, init=False, repr=False, compare=False)

    keeps_progress: ClassVar[bool] = True
    splits_pairs: ClassVar[bool] = True
    weighs_examples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_bounds(Neural, vars(self))
        self.features = FeatureSet(self.families, self.drop)
        self.layers = tuple(self.layers)
        self.device = usable_device(self.device)

    @cached_property
    def halves(self) -> bool:
        """Whether the encoder runs in half precision."""
        return quick_halves(self.device) if self.mixed is None else self.mixed

    @property
    def tolerance(self) -> float:
        """How far a confidence may differ with the other pairs of a batch, by the rounding of sums."""
        return 1e-2 if self.halves else 1e-5

    @property
    def frozen(self) -> bool:
        """Whether there is an encoder that is not trained (any more); then all networks share it."""
        return self.encoder is not None and (self.rank == 0 or not self.encoder_rate)

    @property
    def requires(self) -> tuple[str, ...]:
        return self.features.requires

    @property
    def resources(self) -> tuple[str, ...]:
        own = checkpoint.resource_of(self.encoder) if self.encoder else ()
        return tuple(sorted({*self.features.resources, *own}))

    def check(self) -> None:
        """Raise an error if there is an encoder that cannot be opened, or no package that opens it."""
        if self.encoder is not None:
            checkpoint.tokenizer(self.encoder)

    # Training

    def fit(
        self,
        examples: Sequence[Example],
        dev: Sequence[Example] = (),
        watch: Watcher | None = None,
        checkpoint: Checkpoint = UNKEPT,
    ) -> TrainingReport:
        examples = learnable(examples)
        self.check()
        if self.start is not None and not self._kept:
            self.restore(weights.read(self.start))
        pairs = [e.pair for e in examples]
        fresh = not self._kept
        if fresh:
            self.columns = Columns.of(pairs, self.features, self.rarest)
        else:
            missing = {name.partition(".")[0] for name in self.columns.values} - set(self.features.names)
            if missing:
                raise ConfigError(
                    f"the model to start from reads the features {', '.join(sorted(missing))} as well: add them"
                )
        inputs = self._inputs(pairs)
        if fresh:
            self.columns.measure(inputs)
        training = Training(self, inputs, examples, dev, watch)
        networks = self._made()
        report = training.run(networks, checkpoint)
        self._fold(networks)
        return report

    def keep(self) -> None:
        """Make the networks' present weights those of the aligner's state."""
        weights.rounded(self.networks)
        if self.encoder is not None and not checkpoint.resource_of(self.encoder):
            self._trained_with = self._trained_with or checkpoint.checksum(self.encoder)
        self._kept = weights.arrays(self.networks, self.frozen)

    # Alignment

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Link the cells above the threshold."""
        found = self.settled(pairs, self.probabilities(pairs), self.threshold)
        return [alignment_of(one, self.threshold) if one.size else Alignment(*one.shape) for one in found]

    def prepared(self, pairs: Sequence[SentencePair]) -> Prepared:
        """Compute the network's inputs."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = [k for k, (m, n) in enumerate(sizes) if m and n]
        return Prepared(sizes, full, self._inputs([pairs[k] for k in full]))

    def decode(self, prepared: Prepared) -> list[Alignment]:
        """Align prepared pairs, as `align` does."""
        out = [Alignment(m, n) for m, n in prepared.sizes]
        for place, found in zip(prepared.full, self._probabilities(prepared.inputs), strict=True):
            out[place] = alignment_of(found, self.threshold)
        return out

    def settled(
        self, pairs: Sequence[SentencePair], found: list[np.ndarray], threshold: float, combine: _Map | None = None
    ) -> list[np.ndarray]:
        """Compute probabilities [M, N] that were found in 8 bits again, of pairs with a cell near the threshold;
        `combine` maps the number of a pair and the network's probabilities to those."""
        close = [k for k, one in enumerate(found) if one.size and np.abs(one - threshold).min() < NEAR]
        if not close or all(n.contextual is None or n.contextual.coarse is None for n in self.ready()):
            return found
        again = zip(close, self.probabilities([pairs[k] for k in close], finely=True), strict=True)
        finer = {k: one if combine is None else combine(k, one) for k, one in again}
        return [finer.get(k, one) for k, one in enumerate(found)]

    def probabilities(self, pairs: Sequence[SentencePair], finely: bool = False) -> list[np.ndarray]:
        """[M, N] the probability of a link in each cell of each pair; `finely`: not in 8 bits."""
        out = [np.zeros((len(p.source), len(p.target))) for p in pairs]
        full = [k for k, one in enumerate(out) if one.size]
        if not full:
            return out
        check_sizes(pairs)
        projection = Projection.beside([n.projection(len(self.columns.values)) for n in self.ready()])
        for start in range(0, len(full), AT_A_TIME):
            places = full[start : start + AT_A_TIME]
            inputs = self._inputs([pairs[k] for k in places], projection)
            for place, found in zip(places, self._probabilities(inputs, finely), strict=True):
                out[place] = found
        return out

    def explain(self, pairs: Sequence[SentencePair], symmetrize: object = None) -> Iterator[Explanation]:
        """Explain the log-odds of links by groups of the network's inputs. There is nothing to symmetrize."""
        from .explaining import explain_network

        return explain_network(self, pairs)

    def _inputs(self, pairs: Sequence[SentencePair], projection: Projection | None = None) -> list[Inputs]:
        check_sizes(pairs)
        tokenizer = checkpoint.tokenizer(self.encoder) if self.encoder is not None else None
        return inputs_of(pairs, self.columns, self.features, tokenizer, self.reading, projection)

    @torch.no_grad()
    def _probabilities(self, inputs: Sequence[Inputs], finely: bool = False) -> list[np.ndarray]:
        """[M, N] of each pair, averaged over the networks."""
        out: list[np.ndarray] = [np.zeros(0)] * len(inputs)
        if not inputs:
            return out
        networks, of_encoders = self.ready(), self.readings(inputs, finely)
        for places in batches([one.size for one in inputs], self.batch_pairs, self.batch_cells):
            batch = Batch.of([inputs[k] for k in places], self.columns, self.device)
            of_networks = []
            for number, (network, read_) in enumerate(zip(networks, of_encoders, strict=True)):
                own = batch.of_network(number, self.width, [read_[k] for k in places] if read_ else ())
                of_networks.append(self._judged(network.eval(), own))
            mean = torch.stack(of_networks).mean(0).cpu().numpy()
            if not np.isfinite(mean).all():
                raise ModelError(
                    "the network computes probabilities that are not numbers: its weights are damaged"
                )
            for place, found in zip(places, mean, strict=True):
                m, n = inputs[place].size
                out[place] = found[:m, :n]
        return out

    def _judged(self, network: GridNetwork, batch: Batch) -> Tensor:
        """[B, M, N] the probability of each link under one network."""
        if self.judge == "cells":  # the chains are not needed
            return torch.sigmoid(network.cells(batch).double())
        return link_probabilities(network(batch), self.judge)

    def ready(self) -> list[GridNetwork]:
        """Return the networks, with their weights."""
        if not self.networks:
            if not self._kept:
                raise ModelError("the neural aligner has not been trained: fit it, or continue with resume=DIR")
            self.networks = self._made()
            self._fold(self.networks)
        return self.networks

    def _fold(self, networks: Sequence[GridNetwork]) -> None:
        """Make encoders fast that are not trained any more."""
        for network in networks[: 1 if self.frozen else None]:  # all share a frozen encoder
            if network.contextual is not None:
                eight = self.mixed is None and self.device == "cpu" and known(network.contextual.encoder)
                network.contextual.fold(self._coarse if eight and quick(self.halves) else None)

    def _coarse(self, encoder: torch.nn.Module) -> torch.nn.Module:
        return in_eight_bits(encoder, checkpoint.tokenizer(str(self.encoder)), self.reading)

    @torch.no_grad()
    def encoded(
        self, network: GridNetwork, inputs: Sequence[Inputs], keep: bool = False, finely: bool = False
    ) -> list[Encoded]:
        """The output of a frozen encoder, from a cache if it is there; nothing of other encoders."""
        most = self.batch_pairs, self.batch_cells
        if not self.frozen:
            return []
        if network.contextual is not None and network.contextual.folded:  # its output differs by rounding
            return read(network, inputs, *most, finely)
        settings = (self.encoder, self.layers, self.reading, self.rank, self.halves, self.device)
        return encoded(network, inputs, most, settings, keep)

    def readings(self, inputs: Sequence[Inputs], finely: bool = False) -> list[list[Encoded]]:
        """What the encoder of each network puts out for each pair; nothing without an encoder."""
        networks = self.ready()
        if self.encoder is None:
            return [[] for _ in networks]
        if self.frozen:
            return [self.encoded(networks[0], inputs, finely=finely)] * len(networks)
        return [read(network, inputs, self.batch_pairs, self.batch_cells, finely) for network in networks]

    def _made(self) -> list[GridNetwork]:
        """Make the networks, with the weights that were kept."""
        weights.check_encoder(self.encoder, self._trained_with)
        first = self._network(self.seed)
        shared = first.contextual.encoder if self.frozen and first.contextual is not None else None
        made = [first, *(self._network(self.seed + k, shared) for k in range(1, self.members))]
        for member, network in enumerate(made if self._kept else ()):
            weights.fill(network, member, self._kept)
        return [network.to(self.device) for network in made]

    def _network(self, seed: int, shared: torch.nn.Module | None = None, alone: bool = False) -> GridNetwork:
        """Make a network with initial weights that depend on the seed alone. `shared` is another's encoder; if it
        is to be `alone`, it has none."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            contextual = None
            if self.encoder is not None and not alone:
                encoder = checkpoint.network(self.encoder) if shared is None else shared
                rank = self.rank if shared is None else 0
                contextual = Contextual(encoder, self.layers, self.views, rank, self.halves)
            sizes = len(self.columns.values), len(self.columns.marks)
            return GridNetwork(*sizes, self.features.edge, self.width, self.blocks, self.dropout, contextual)

    # Persistence

    def start_from(self, state: Mapping[str, np.ndarray | list[str]], pull: float) -> None:
        """Start from the weights of a network, also from one within a mixed model. Nothing pulls towards them."""
        own = {k.removeprefix("network."): v for k, v in state.items() if k.startswith("network.")} or state
        if "values" not in own:
            raise ConfigError("holds no network to start from")
        self.restore(own)

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return weights.joined(self.columns, self._kept, self._trained_with)

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        self.columns, self._kept = weights.split(state)
        self._trained_with = weights.encoder_in(state)
        self.networks = []

    def check_columns(self) -> None:
        """Raise an error unless columns and weights are those that the settings ask for."""
        self.features.check_columns([*self.columns.values, *self.columns.marks], edges=False)
        if self._kept:
            with torch.device("meta"):  # shapes without numbers
                network = self._network(self.seed, alone=True)
            weights.check(self._kept, self.members, network, None if self.encoder is None else self.views)


def check_sizes(pairs: Sequence[SentencePair]) -> None:
    """Raise an error for a pair that memory would not hold."""
    for pair in pairs:
        m, n = len(pair.source), len(pair.target)
        if m * n > LARGEST_PAIR:
            raise PairError(
                f"a pair of {m} x {n} tokens is more than the neural aligner takes ({LARGEST_PAIR:,} cells): "
                "split it into sentences"
            )


def link_probabilities(output: Output, judge: str) -> Tensor:
    """[B, M, N] the probability of each link by that judge, in double precision."""
    if judge == "cells":
        return torch.sigmoid(output.alone.double())
    chains = mean_posterior(output.forward, output.backward)
    return chains if judge == "chains" else (chains + torch.sigmoid(output.alone.double())) / 2


def alignment_of(probabilities: np.ndarray, threshold: float) -> Alignment:
    """Link the cells above the threshold. The score is the log-probability of all decisions per source token."""
    m, n = probabilities.shape
    linked = probabilities > threshold
    rows, columns = np.nonzero(linked)
    links = list(zip(rows.tolist(), columns.tolist(), strict=True))
    confidence = dict(zip(links, probabilities[rows, columns].tolist(), strict=True))
    decided = np.minimum(np.where(linked, probabilities, 1 - probabilities), 1.0)  # means can exceed 1 by rounding
    return trusted(m, n, frozenset(links), confidence=confidence, score=float(np.log(decided).sum() / m))
