"""The two linear chains on top of the network, one per direction; all that this package uses of `crf` inference.

A source token's score for a target token comes from the vector of their cell, its score for NULL from all cells of
its row, and the scores of transitions from the columns of the edge families. The backward direction sees the grid
transposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...crf.inference import marginals
from ...crf.loss import softmax_margin
from ...crf.potentials import Potentials
from ...crf.states import pad_states
from ...features.api import Block, EdgeFamily

_TABLES_KEPT = 128  # target lengths whose columns are kept


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

    def forward(self, h: Tensor, inside: Tensor, sizes: Sequence[tuple[int, int]]) -> Potentials:
        """From cell vectors h [B, M, N, d] and the mask inside [B, M, N, 1]."""
        largest, mean = line(h, inside, 2)
        null = self.null(torch.cat([largest, mean], 3)).flatten(2)  # [B, M, 1]
        node = torch.cat([null, self.link(h).squeeze(3)], 2)  # [B, M, N + 1]
        lengths, states = (torch.tensor(side, device=h.device) for side in zip(*sizes, strict=True))
        distinct, table = torch.unique(states, return_inverse=True)
        scores = [self._step_scores(n, node.shape[2]) for n in distinct.tolist()]
        edge, start, end = (torch.stack(space) for space in zip(*scores, strict=True))
        return Potentials.build(node, edge, start, end, table, lengths, states + 1)

    def _step_scores(self, n: int, width: int) -> list[Tensor]:
        """Scores of edges [S, S], starts [S] and ends [S] towards n tokens, padded to S = `width` states."""
        if not self.families:
            return [self.link.weight.new_zeros(shape) for shape in ((width, width), (width,), (width,))]
        if n not in self._tables:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            device = self.link.weight.device
            self._tables[n] = {
                space: torch.tensor(np.hstack([b.dense() for b in blocks]), dtype=torch.float32, device=device)
                for space, blocks in _step_blocks(self.families, n).items()
            }
        columns = self._tables[n]
        edge, start, end = (columns[s].to(self.link.weight) @ self.steps[s] for s in ("edge", "start", "end"))
        more = width - n - 1
        square = functional.pad(edge.reshape(n + 1, n + 1), (0, more, 0, more))
        return [square, functional.pad(start, (0, more)), functional.pad(end, (0, more))]


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
    ) -> tuple[Potentials, Potentials]:
        forward = self.forward_chain(h, inside, sizes)
        flipped = [(n, m) for m, n in sizes]
        return forward, self.backward_chain(h.transpose(1, 2), inside.transpose(1, 2), flipped)


def line(h: Tensor, inside: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The maximum and the mean of h over the cells inside a row or column; 0 for a line of padding."""
    largest = h.masked_fill(inside == 0, -math.inf).amax(axis, keepdim=True)
    mean = (h * inside).sum(axis, keepdim=True) / inside.sum(axis, keepdim=True).clamp(min=1)
    return largest.masked_fill(largest.isneginf(), 0.0), mean


def mean_posterior(forward: Potentials, backward: Potentials) -> Tensor:
    """[B, M, N] the posterior of each link, averaged over the directions, in double precision."""
    ahead, back = (marginals(potentials).node[:, :, 1:].double() for potentials in (forward, backward))
    return (ahead + back.transpose(1, 2)) / 2


def chain_loss(potentials: Potentials, paths: Sequence[np.ndarray], cost: float) -> Tensor:
    """The softmax-margin loss of gold paths, summed over the batch."""
    states = torch.from_numpy(pad_states(paths, potentials.shape[1])).to(potentials.node.device)
    return softmax_margin(potentials, states, cost, cost).sum()
