"""The two linear chains on top of the network, one per direction; all that this package uses of `crf` inference.

A source token's score for a target token comes from the vector of their cell, its score for NULL from all cells of
its row, and the scores of transitions from the columns of the edge families. The backward direction sees the grid
transposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...crf.differentiable import softmax_margin
from ...crf.kernel import posteriors
from ...crf.layout import Layout
from ...features.api import Block, EdgeFamily
from ...util.geometry import Geometry

_TABLES_KEPT = 128  # target lengths whose columns are kept


class ChainScores(NamedTuple):
    """The scores of a batch of chains, as `layout` has them."""

    layout: Layout
    flat: tuple[Tensor, ...]


class Chain(nn.Module):
    """One direction."""

    def __init__(self, width: int, families: Sequence[EdgeFamily]) -> None:
        super().__init__()
        self.families = families
        self.link = nn.Linear(width, 1)
        self.null = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1))
        sizes = {space: sum(len(b.names) for b in blocks) for space, blocks in _step_blocks(families, 2).items()}
        self.steps = nn.ParameterDict({space: nn.Parameter(torch.zeros(size)) for space, size in sizes.items()})
        self._tables: dict[int, dict[str, Tensor]] = {}

    def forward(self, h: Tensor, inside: Tensor, sizes: Sequence[tuple[int, int]]) -> ChainScores:
        """Score cell vectors h [B, M, N, d], given the mask inside [B, M, N, 1]."""
        largest, mean = line(h, inside, 2)
        null = self.null(torch.cat([largest, mean], 3)).flatten(1)  # [B, M]
        link = self.link(h).flatten()
        n_source, n_target = (np.array(side) for side in zip(*sizes, strict=True))
        layout = Layout(Geometry(n_source, n_target))
        g, rows, columns = layout.geometry, h.shape[1], h.shape[2]
        # To select by numbers does not wait for the device, as to select by a mask does.
        token = torch.from_numpy(g.source_pair * rows + g.source_position).to(h.device)
        cell = torch.from_numpy((g.pair * rows + g.m) * columns + g.n).to(h.device)
        nodes = torch.cat([null.flatten().index_select(0, token), link.index_select(0, cell)])
        steps = zip(*(self._step_scores(n) for n in layout.distinct.tolist()), strict=True)
        return ChainScores(layout, (nodes, *map(torch.cat, steps)))

    def _step_scores(self, n: int) -> list[Tensor]:
        """Scores of the edges, starts and ends towards n tokens."""
        if not self.families:
            return [self.link.weight.new_zeros(size) for size in ((n + 1) ** 2, n + 1, n + 1)]
        if n not in self._tables:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            device = self.link.weight.device
            self._tables[n] = {
                space: torch.tensor(np.hstack([b.dense() for b in blocks]), dtype=torch.float32, device=device)
                for space, blocks in _step_blocks(self.families, n).items()
            }
        columns = self._tables[n]
        return [columns[kind].to(self.link.weight) @ self.steps[kind] for kind in ("edge", "start", "end")]


def _step_blocks(families: Sequence[EdgeFamily], n: int) -> dict[str, list[Block]]:
    """The blocks of transitions towards n target tokens."""
    return {
        "edge": [family.edge(n) for family in families],
        "start": [family.start(n) for family in families],
        "end": [family.end(n) for family in families],
    }


class Chains(nn.Module):
    """Both directions."""

    def __init__(self, width: int, families: Sequence[EdgeFamily]) -> None:
        super().__init__()
        self.forward_chain = Chain(width, families)
        self.backward_chain = Chain(width, families)

    def forward(
        self, h: Tensor, inside: Tensor, sizes: Sequence[tuple[int, int]]
    ) -> tuple[ChainScores, ChainScores]:
        forward = self.forward_chain(h, inside, sizes)
        flipped = [(n, m) for m, n in sizes]
        return forward, self.backward_chain(h.transpose(1, 2), inside.transpose(1, 2), flipped)


def line(h: Tensor, inside: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The maximum and the mean of h over the cells inside a row or column; 0 for a line of padding."""
    largest = h.masked_fill(inside == 0, -math.inf).amax(axis, keepdim=True)
    mean = (h * inside).sum(axis, keepdim=True) / inside.sum(axis, keepdim=True).clamp(min=1)
    return largest.masked_fill(largest.isneginf(), 0.0), mean


def mean_posterior(forward: ChainScores, backward: ChainScores) -> Tensor:
    """[B, M, N] the posterior of each link, averaged over the directions, in double precision."""
    ahead, back = (_link_posteriors(*scores) for scores in (forward, backward))
    return (ahead + back.transpose(1, 2)) / 2


def _link_posteriors(layout: Layout, flat: Sequence[Tensor]) -> Tensor:
    g, found = layout.geometry, posteriors(layout, [x.detach() for x in flat]).nodes[layout.n_tokens :]
    out = np.zeros((len(g.n_source), int(g.n_source.max()), int(g.n_target.max())))
    out[g.pair, g.m, g.n] = found
    return torch.as_tensor(out, device=flat[0].device)


def chain_loss(scores: ChainScores, paths: Sequence[np.ndarray], cost: float) -> Tensor:
    """[B] the softmax-margin loss of gold paths."""
    return softmax_margin(*scores, paths, cost, cost)
