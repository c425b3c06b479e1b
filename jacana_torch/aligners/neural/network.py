"""The network over the grid of two sentences, and the pretrained encoder that may inform it.

Each block sees a cell's neighbourhood, and the maximum and the mean of its row and of its column: the other links
that the two words could have. The result for a pair depends neither on the size of the grid nor on padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...encoders.encoder_network import adapt, checked_layers, cut, fold, word_vectors
from ...encoders.pieces import Window
from ...features.api import EdgeFamily
from .grid_chains import Chains, ChainScores, line
from .inputs import Batch, Encoded, Inputs, Projection, batches

SIZE = 32  # dimensions of a view
MOST_WORDS = 120_000  # whose vectors are kept, of some hundred numbers each
ENCODER = "contextual.encoder."  # the prefix of the encoder's parameters
_LINKED = 0.05  # about the share of cells that are links, where the bias starts


class Block(nn.Module):
    """A residual layer: the 3 x 3 neighbourhood of each cell, its row and its column."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.near = nn.Conv2d(width, width, 3, padding=1)
        self.out = nn.Linear(5 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        h = self.norm(x) * inside  # [B, M, N, d]
        seen = [self.near(h.movedim(3, 1)).movedim(1, 3)]
        for axis in (1, 2):
            seen += [summary.expand_as(h) for summary in line(h, inside, axis)]
        update: Tensor = self.dropout(self.out(functional.gelu(torch.cat(seen, 3))))
        return x + update * inside


class Contextual(nn.Module):
    """An encoder's view of two words: their cosine in some layers, and products of learnt views of the last."""

    def __init__(
        self, encoder: nn.Module, layers: Sequence[int], views: int, rank: int | None, mixed: bool
    ) -> None:
        """`rank` is that of the adapters; 0 freezes the encoder, and None trains all its weights."""
        super().__init__()
        self.layers = checked_layers(encoder, layers)
        encoder = cut(encoder, max(self.layers))
        if rank is None:
            encoder.requires_grad_(True)
        self.encoder = adapt(encoder, rank) if rank else encoder
        self.views, self.mixed, self.folded = views, mixed, False
        self.coarse: nn.Module | None = None
        width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.source = nn.Linear(width, views * SIZE)
        self.target = nn.Linear(width, views * SIZE)

    @property
    def channels(self) -> int:
        return len(self.layers) + self.views

    def fold(self, coarse: Callable[[nn.Module], nn.Module] | None = None) -> None:
        """Make the encoder fast, for aligning: without adapters and casts. `coarse` makes a faster one."""
        self.encoder, self.folded = fold(self.encoder), True
        self.coarse = None if coarse is None else coarse(self.encoder)
        if self.mixed:
            self.encoder = self.encoder.to(torch.bfloat16)

    def read(
        self, windows: Sequence[Sequence[Window]], sizes: Sequence[tuple[int, int]], finely: bool = False
    ) -> list[Encoded]:
        """Run the encoder. The result does not depend on the views, so a frozen encoder need run only once."""
        encoder = self.encoder if finely or self.coarse is None else self.coarse
        device = self.source.weight.device.type
        casts = self.mixed and not self.folded
        with torch.autocast(device, torch.bfloat16, enabled=casts):  # it has the range of float32
            states = word_vectors(encoder, windows, [m + n for m, n in sizes], self.layers)
        split = [m + n for m, n in sizes]
        by_layer = [torch.split(functional.normalize(state, dim=-1), split) for state in states]
        cosines = [
            torch.stack([words[:m] @ words[m:].T for words in of_pair], 2)
            for (m, _), of_pair in zip(sizes, zip(*by_layer, strict=True), strict=True)
        ]
        return [Encoded(*one) for one in zip(cosines, torch.split(states[-1], split), strict=True)]

    def forward(self, encoded: Sequence[Encoded], inside: Tensor) -> Tensor:
        """[B, M, N, channels]"""
        sizes = [one.cosines.shape[:2] for one in encoded]
        cosines = inside.new_zeros(*inside.shape[:3], len(self.layers))
        for k, (one, (m, n)) in enumerate(zip(encoded, sizes, strict=True)):
            cosines[k, :m, :n] = one.cosines
        pad = nn.utils.rnn.pad_sequence
        a = pad([one.last[:m] for one, (m, _) in zip(encoded, sizes, strict=True)], batch_first=True)
        b = pad([one.last[m:] for one, (m, _) in zip(encoded, sizes, strict=True)], batch_first=True)
        a, b = (linear(x).unflatten(2, (self.views, SIZE)) for linear, x in ((self.source, a), (self.target, b)))
        views = torch.einsum("bmvd,bnvd->bmnv", a, b) / (4 * math.sqrt(SIZE))
        return torch.cat([cosines, views.to(cosines)], 3)


class Output(NamedTuple):
    """The network's output for a batch: the potentials of both chains, and the log-odds of each cell by itself."""

    forward: ChainScores
    backward: ChainScores
    alone: Tensor  # [B, M, N]


class GridNetwork(nn.Module):
    """Feature columns and encoder, then one vector per cell, then blocks, then the two chains."""

    def __init__(
        self,
        n_values: int,
        n_marks: int,
        edges: Sequence[EdgeFamily],
        width: int,
        blocks: int,
        dropout: float,
        contextual: Contextual | None,
    ) -> None:
        super().__init__()
        self.contextual = contextual
        self.values = nn.Linear(n_values + (contextual.channels if contextual else 0), width)
        self.marks = nn.Embedding(n_marks + 1, width, padding_idx=0)
        nn.init.normal_(self.marks.weight, std=0.01)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(width, dropout) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)
        self.chains = Chains(width, edges)
        self.alone = nn.Linear(width, 1)
        with torch.no_grad():
            self.marks.weight[0] = 0
            self.alone.bias.fill_(math.log(_LINKED / (1 - _LINKED)))

    def forward(self, batch: Batch) -> Output:
        return self.judged(self.first(batch), batch.inside, batch.sizes)

    def cells(self, batch: Batch) -> Tensor:
        """[B, M, N] the log-odds of each cell by itself, without the chains' potentials."""
        alone: Tensor = self.alone(self.hidden(self.first(batch), batch.inside)).squeeze(3)
        return alone

    def first(self, batch: Batch) -> Tensor:
        """[B, M, N, width] the first vector of each cell."""
        if not batch.summed:
            first: Tensor = self.values(self.seen(batch)) + self.marks(batch.marks).sum(3)
            return first
        if self.contextual is None:
            return batch.values
        weight = self.values.weight[:, -self.contextual.channels :]
        return batch.values + functional.linear(self.of_encoder(batch), weight)

    def projection(self, n_values: int) -> Projection:
        """The part of `first` that reads the feature columns, for networks that are not trained any more."""
        weight, marks, bias = self.values.weight[:, :n_values].T, self.marks.weight, self.values.bias
        return Projection(*(x.detach().float().cpu().numpy() for x in (weight, marks, bias)))

    def seen(self, batch: Batch) -> Tensor:
        """[B, M, N, channels] what the network reads of each cell: feature columns, and the encoder's view."""
        if self.contextual is None:
            return batch.values
        return torch.cat([batch.values, self.of_encoder(batch)], 3)

    def of_encoder(self, batch: Batch) -> Tensor:
        """[B, M, N, channels] the encoder's view of each cell."""
        assert self.contextual is not None
        found: Tensor = self.contextual(batch.encoded or self.read(batch), batch.inside)
        return found

    def judged(self, h: Tensor, inside: Tensor, sizes: list[tuple[int, int]]) -> Output:
        """Score cells, given the first vector of each [B, M, N, width]."""
        h = self.hidden(h, inside)
        forward, backward = self.chains(h, inside, sizes)
        return Output(forward, backward, self.alone(h).squeeze(3))

    def hidden(self, h: Tensor, inside: Tensor) -> Tensor:
        """[B, M, N, width] the last vector of each cell, given the first."""
        h = self.dropout(h) * inside
        for block in self.blocks:
            h = block(h, inside)
        last: Tensor = self.norm(h)
        return last

    def read(self, batch: Batch) -> list[Encoded]:
        """The encoder's output for each pair; empty without an encoder."""
        return self.contextual.read(batch.windows, batch.sizes) if self.contextual is not None else []

    def learnt(self) -> dict[str, nn.Parameter]:
        """The parameters that training changes: all but the weights of a frozen encoder."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}


@dataclass
class EncoderCache:
    """The output of one frozen encoder for pairs of the training data, by their word pieces.

    Folds and networks that share an encoder run it once per pair.
    """

    encoder: bytes = b""
    words: int = 0
    kept: dict[bytes, Encoded] = field(default_factory=dict)


CACHE = EncoderCache()


def read(
    network: GridNetwork, inputs: Sequence[Inputs], most_pairs: int, most_cells: int, finely: bool = False
) -> list[Encoded]:
    """The output of the network's encoder for each pair, in batches of like numbers of word pieces."""
    contextual = network.eval().contextual
    assert contextual is not None
    out: list[Encoded | None] = [None] * len(inputs)
    longest = [max(len(window.ids) for window in one.windows) for one in inputs]
    if finely and contextual.coarse is not None:
        most_pairs = 1  # what is near the threshold must not depend on the pairs beside it
    for places in batches([(length, 1) for length in longest], most_pairs, most_cells):
        some = [inputs[k] for k in places]
        found = contextual.read([one.windows for one in some], [one.size for one in some], finely)
        for place, one in zip(places, found, strict=True):
            out[place] = one
    return [one for one in out if one is not None]


def encoded(
    network: GridNetwork,
    inputs: Sequence[Inputs],
    most: tuple[int, int],
    settings: Sequence[object],
    keep: bool,
) -> list[Encoded]:
    """The output of the network's frozen encoder for each pair, from the cache where it is there.

    `most` limits the pairs and cells of a batch. `settings` are all that the output depends on, besides the
    weights of adapters. With `keep`, what is new enters the cache; another encoder empties it.
    """
    digest = blake2b(repr(settings).encode())
    for name, parameter in network.learnt().items():
        if name.startswith(ENCODER):
            digest.update(name.encode() + parameter.detach().cpu().numpy().tobytes())
    cache = CACHE
    if cache.encoder != digest.digest():
        cache.encoder, cache.words = digest.digest(), 0
        cache.kept.clear()
    keys = [b"|".join(w.ids.tobytes() + w.word.tobytes() for w in one.windows) for one in inputs]
    found = {k: cache.kept[key] for k, key in enumerate(keys) if key in cache.kept}
    unread = [k for k in range(len(inputs)) if k not in found]
    for k, one in zip(unread, read(network, [inputs[k] for k in unread], *most), strict=True):
        found[k] = one
        if keep and cache.words + len(one.last) <= MOST_WORDS:
            cache.words += len(one.last)
            cache.kept[keys[k]] = one
    return [found[k] for k in range(len(inputs))]
