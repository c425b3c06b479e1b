"""The neural aligner: two chains, one a direction, over scores of a network that sees the whole grid.

Examples in, weights out; pairs in, alignments with the probability of each link out. Feature families are what it
reads; with an encoder, contextual vectors of both sentences as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from ...crf.states import POLICIES
from ...encoders import checkpoint
from ...encoders.pieces import READINGS
from ...errors import ConfigError, ModelError
from ...features.api import EdgeFamily, NodeFamily
from ...features.featureset import FeatureSet
from ...types import Alignment, Example, SentencePair
from ...util.device import quick_halves, usable_device
from ..base import TrainingReport, Watcher, learnable
from . import weights
from .cells import JUDGES, alignment_of, batches, chances_of
from .fitting import Fitting
from .inputs import AT_A_TIME, Batch, Columns, Inputs, inputs_of
from .network import Contextual, GridNetwork, Seen
from .readings import identity, read

log = logging.getLogger(__name__)

LARGEST_PAIR = 1_000_000  # cells; the network holds some hundred numbers for each
_LEAST = {
    "width": 1, "blocks": 0, "views": 0, "members": 1, "epochs": 1, "batch_pairs": 1, "batch_cells": 1,
    "accumulate": 1, "patience": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """Pairs by their sizes, which of them have words on both sides, and what the network reads of those."""

    sizes: list[tuple[int, int]]
    full: list[int]
    inputs: list[Inputs]


@dataclass
class Neural:
    """`families`, `drop` and `policy` as in Crf; `cost` is the softmax margin's.

    `rarest`      one-hot columns count if they are on in so many training cells or more; null: none of them does.

    `encoder`     a resource's name, the folder of a checkpoint, or null; `reading` says whether it sees both
                  sentences "together" or each "apart"; `layers` whose cosines are taken (none: all), `views`
                  learnt products of the last.
    `rank`        of the adapters through which the encoder learns; 0: it learns nothing; null: all its weights do.
    `width`, `blocks`, `dropout`  of the network over the grid.
    `members`     networks trained from different seeds whose posteriors are averaged; what they start from may
                  have fewer, which then serve several.
    `epochs`, `rate`, `encoder_rate`, `warmup`, `decay`, `accumulate`  of AdamW; see train/epochs.py. An encoder of
                  rate 0 is asked once and stays as it is.
    `batch_pairs`, `batch_cells`  what a batch holds at most; a pair of more cells is a batch of its own.
    `patience`    epochs without a better F1 on dev after which training ends; the best epoch's weights are kept.
    `mixed`       the encoder computes in half precision; null: where that is faster (`halves`).
    `judge`, `threshold`  links are the cells that are likelier by that judge: the mean posterior of both "chains",
                  "cells" by themselves, which suits corpora whose words have many links each, or "both".
    `start`       the directory of a model of the same shape to start from, e.g. one trained on other corpora.
    """

    families: Mapping[str, NodeFamily | EdgeFamily | None]
    drop: Sequence[str] = ()
    encoder: str | None = None
    reading: str = "together"
    layers: Sequence[int] = ()
    views: int = 16
    rank: int | None = 16
    width: int = 32
    blocks: int = 2
    dropout: float = 0.1
    rarest: int | None = None
    policy: str = "monotone"
    cost: float = 0.5
    members: int = 1
    epochs: int = 8
    rate: float = 3e-3
    encoder_rate: float = 1e-3
    warmup: float = 0.1
    decay: float = 0.01
    accumulate: int = 1
    batch_pairs: int = 8
    batch_cells: int = 40_000
    patience: int = 5
    mixed: bool | None = False
    judge: str = "chains"
    threshold: float = 0.5
    start: str | None = None
    seed: int = 1
    device: str = "cpu"
    part: str = "grid"
    columns: Columns = field(default_factory=Columns, init=False, repr=False)
    _kept: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    networks: list[GridNetwork] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.features = FeatureSet(self.families, self.drop)
        self.layers = tuple(self.layers)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least {least}")
        for name in ("dropout", "threshold", "warmup"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: from 0 to less than 1")
        for name in ("rate", "encoder_rate", "decay", "cost"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ConfigError(f"{name}={getattr(self, name)}: must be a figure from 0 on")
        if self.rank is not None and self.rank < 0:
            raise ConfigError(f"rank={self.rank}: 0 or more, or null to train all of the encoder")
        if self.rarest is not None and self.rarest < 1:
            raise ConfigError(f"rarest={self.rarest}: 1 or more cells, or null to read no one-hot column")
        if self.policy not in tuple(POLICIES):
            raise ConfigError(f"policy={self.policy!r} is none of {', '.join(POLICIES)}")
        if self.judge not in JUDGES:
            raise ConfigError(f"judge={self.judge!r} is none of {', '.join(JUDGES)}")
        if self.reading not in READINGS:
            raise ConfigError(f"reading={self.reading!r} is neither {' nor '.join(READINGS)}")
        self.device = usable_device(self.device)

    @cached_property
    def halves(self) -> bool:
        return quick_halves(self.device) if self.mixed is None else self.mixed

    @property
    def tolerance(self) -> float:
        """How far the company of a pair may move a confidence: sums in another order differ in their last bits."""
        return 1e-2 if self.halves else 1e-5

    @property
    def requires(self) -> tuple[str, ...]:
        return self.features.requires

    @property
    def resources(self) -> tuple[str, ...]:
        own = checkpoint.resource_of(self.encoder) if self.encoder else ()
        return tuple(sorted({*self.features.resources, *own}))

    def check(self) -> None:
        """Before any work: is the package that opens encoders there, if there is an encoder?"""
        if self.encoder is not None:
            checkpoint.check_package()

    # Training

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
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
            self._check_families()
        inputs = self._inputs(pairs)
        if fresh:
            self.columns.measure(inputs)
        fitting = Fitting(self, inputs, [e.gold for e in examples if e.gold is not None], dev, watch)
        return fitting.run(self._made())

    def _check_families(self) -> None:
        """What was learnt of a family is worth nothing without it."""
        lacking = {name.partition(".")[0] for name in self.columns.values} - set(self.features.names)
        if lacking:
            raise ConfigError(
                f"the model to start from reads the features {', '.join(sorted(lacking))} as well: add them"
            )

    def keep(self) -> None:
        """What the networks have learnt is what counts from now on; until then it is what was kept before."""
        weights.rounded(self.networks)
        self._kept = weights.arrays(self.networks, self.fixed)

    # Alignment

    def prepared(self, pairs: Sequence[SentencePair]) -> Prepared:
        """Pairs with their features looked up, to be decoded as often as the weights change."""
        sizes = [(len(p.source), len(p.target)) for p in pairs]
        full = [k for k, (m, n) in enumerate(sizes) if m and n]
        return Prepared(sizes, full, self._inputs([pairs[k] for k in full]))

    def decode(self, prepared: Prepared) -> list[Alignment]:
        """The cells that are likelier than the threshold."""
        out = [Alignment(m, n) for m, n in prepared.sizes]
        for place, chances in zip(prepared.full, self._chances(prepared.inputs), strict=True):
            out[place] = alignment_of(chances, self.threshold)
        return out

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """As decode(prepared(pairs)), some pairs at a time."""
        out: list[Alignment] = []
        for start in range(0, len(pairs), AT_A_TIME):
            out += self.decode(self.prepared(pairs[start : start + AT_A_TIME]))
        return out

    def chances(self, pairs: Sequence[SentencePair]) -> list[np.ndarray]:
        """[M, N] of each pair: how likely every link is."""
        out = [np.zeros((len(p.source), len(p.target))) for p in pairs]
        for start in range(0, len(pairs), AT_A_TIME):
            prepared = self.prepared(pairs[start : start + AT_A_TIME])
            for place, chances in zip(prepared.full, self._chances(prepared.inputs), strict=True):
                out[start + place] = chances
        return out

    def _inputs(self, pairs: Sequence[SentencePair]) -> list[Inputs]:
        for pair in pairs:
            m, n = len(pair.source), len(pair.target)
            if m * n > LARGEST_PAIR:
                raise ConfigError(
                    f"a pair of {m} x {n} tokens is more than the neural aligner takes ({LARGEST_PAIR:,} cells): "
                    "split it into sentences"
                )
        tokenizer = checkpoint.tokenizer(self.encoder) if self.encoder is not None else None
        return inputs_of(pairs, self.columns, self.features, tokenizer, self.reading)

    @torch.no_grad()
    def _chances(self, inputs: Sequence[Inputs]) -> list[np.ndarray]:
        """[M, N] the probability of a link in each cell of each pair."""
        out: list[np.ndarray] = [np.zeros(0)] * len(inputs)
        if not inputs:
            return out
        self._ready()
        for places in batches([one.size for one in inputs], self.batch_pairs, self.batch_cells):
            some = [inputs[k] for k in places]
            batch = replace(Batch.of(some, self.columns, self.device), seen=self.seen(self.networks[0], some))
            chances = torch.stack(
                [chances_of(network.eval()(batch), self.judge) for network in self.networks]
            ).mean(0)
            for place, found in zip(places, chances.cpu().numpy(), strict=True):
                m, n = inputs[place].size
                out[place] = found[:m, :n]
        return out

    @torch.no_grad()
    def seen(self, network: GridNetwork, inputs: Sequence[Inputs], keep: bool = False) -> list[Seen]:
        """What a fixed encoder sees in pairs, to be remembered if they are asked for again; nothing of another."""
        if not self.fixed:
            return []
        settings = (self.encoder, self.layers, self.reading, self.rank, self.halves, self.device)
        encoder = identity(network, settings)
        most = self.batch_pairs, self.batch_cells
        return read(network, inputs, self.columns, self.device, most, encoder, keep)

    def _ready(self) -> None:
        """The networks with what was learnt are made when they are first needed."""
        if not self.networks:
            if not self._kept:
                raise ModelError("the neural aligner has not been trained: fit it, or go on with resume=DIR")
            self.networks = self._made()

    @property
    def fixed(self) -> bool:
        """Whether there is an encoder, and learns nothing more: then all networks share it."""
        return self.encoder is not None and (self.rank == 0 or not self.encoder_rate)

    def _made(self) -> list[GridNetwork]:
        """Networks as they were kept, or new ones."""
        first = self._network(self.seed)
        shared = first.contextual.encoder if self.fixed and first.contextual is not None else None
        made = [first, *(self._network(self.seed + k, shared) for k in range(1, self.members))]
        for member, network in enumerate(made if self._kept else ()):
            weights.fill(network, member, self._kept)
        return [network.to(self.device) for network in made]

    def _network(self, seed: int, shared: torch.nn.Module | None = None) -> GridNetwork:
        """The same for the same seed; nobody else's random numbers are touched."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            contextual = None
            if self.encoder is not None:
                encoder, rank = (
                    (shared, 0) if shared is not None else (checkpoint.network(self.encoder), self.rank)
                )
                contextual = Contextual(encoder, self.layers, self.views, rank, self.halves)
            sizes = len(self.columns.values), len(self.columns.marks)
            return GridNetwork(*sizes, self.features.edge, self.width, self.blocks, self.dropout, contextual)

    # Persistence

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return weights.joined(self.columns, self._kept)

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        self.columns, self._kept = weights.split(state)
        self.networks = []
