"""The network over the grid of two sentences: a batch in, the potentials of two chains out.

Each block looks at a cell's neighbours, and at the largest and the mean of its row and of its column: what else
the two words could be linked to. Nothing depends on how large the grid is, nor on what pads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...crf.potentials import Potentials
from ...encoders.encoder_network import adapt, checked_layers, word_vectors
from ...encoders.pieces import Window
from ...features.api import EdgeFamily
from .grid_chains import Chains, line
from .inputs import Batch

SIZE = 32  # of a view
_FEW = 0.05  # about as many cells of a grid hold a link


class Block(nn.Module):
    """A residual step of every cell: its 3 x 3 neighbourhood, its row, its column."""

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
        return x + self.dropout(self.out(functional.gelu(torch.cat(seen, 3)))) * inside


class Seen(NamedTuple):
    """What an encoder has seen in a pair: `cosines` [M, N, layers], `last` [M + N, d] of its words."""

    cosines: Tensor
    last: Tensor


class Contextual(nn.Module):
    """What an encoder says of two words: cosines of some layers, and products of learnt views of the last."""

    def __init__(
        self, encoder: nn.Module, layers: Sequence[int], views: int, rank: int | None, mixed: bool
    ) -> None:
        """`rank` of the adapters; 0 leaves the encoder as it is, None trains its own weights."""
        super().__init__()
        self.layers = checked_layers(encoder, layers)
        if rank is None:
            encoder.requires_grad_(True)
        self.encoder = adapt(encoder, rank) if rank else encoder
        self.views, self.mixed = views, mixed
        width = int(encoder.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.source = nn.Linear(width, views * SIZE)
        self.target = nn.Linear(width, views * SIZE)

    @property
    def channels(self) -> int:
        return len(self.layers) + self.views

    def read(self, windows: Sequence[Sequence[Window]], sizes: Sequence[tuple[int, int]]) -> list[Seen]:
        """What does not depend on the views, of each pair: all that a fixed encoder has to be asked for."""
        device = self.source.weight.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.mixed):  # it has the range of float32
            states = word_vectors(self.encoder, windows, [m + n for m, n in sizes], self.layers)
        split = [m + n for m, n in sizes]
        by_layer = [functional.normalize(state, dim=-1).split(split) for state in states]
        cosines = [
            torch.stack([words[:m] @ words[m:].T for words in of_pair], 2)
            for (m, _), of_pair in zip(sizes, zip(*by_layer, strict=True), strict=True)
        ]
        return [Seen(*one) for one in zip(cosines, states[-1].split(split), strict=True)]

    def forward(self, seen: Sequence[Seen], inside: Tensor) -> Tensor:
        """[B, M, N, channels]"""
        sizes = [one.cosines.shape[:2] for one in seen]
        cosines = inside.new_zeros(*inside.shape[:3], len(self.layers))
        for k, (one, (m, n)) in enumerate(zip(seen, sizes, strict=True)):
            cosines[k, :m, :n] = one.cosines
        pad = nn.utils.rnn.pad_sequence
        a = pad([one.last[:m] for one, (m, _) in zip(seen, sizes, strict=True)], batch_first=True)
        b = pad([one.last[m:] for one, (m, _) in zip(seen, sizes, strict=True)], batch_first=True)
        a, b = (linear(x).unflatten(2, (self.views, SIZE)) for linear, x in ((self.source, a), (self.target, b)))
        views = torch.einsum("bmvd,bnvd->bmnv", a, b) / (4 * math.sqrt(SIZE))
        return torch.cat([cosines, views.to(cosines)], 3)


class Judged(NamedTuple):
    """What a network says of a batch: the chains of both directions, and log-odds of each cell by itself."""

    ahead: Potentials
    back: Potentials
    alone: Tensor  # [B, M, N]; only training looks at it


class GridNetwork(nn.Module):
    """Columns and what the encoder says, into one vector a cell; blocks; chains."""

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
            self.alone.bias.fill_(math.log(_FEW / (1 - _FEW)))

    def forward(self, batch: Batch) -> Judged:
        values = batch.values
        if self.contextual is not None:
            values = torch.cat([values, self.contextual(batch.seen or self.read(batch), batch.inside)], 3)
        h = self.values(values) + self.marks(batch.marks).sum(3)
        h = self.dropout(h) * batch.inside
        for block in self.blocks:
            h = block(h, batch.inside)
        h = self.norm(h)
        ahead, back = self.chains(h, batch.inside, batch.sizes)
        return Judged(ahead, back, self.alone(h).squeeze(3))

    def read(self, batch: Batch) -> list[Seen]:
        """What its encoder sees in the pairs."""
        return self.contextual.read(batch.windows, batch.sizes) if self.contextual is not None else []

    def learnt(self) -> dict[str, nn.Parameter]:
        """What training changes: everything but the encoder's own weights."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}
