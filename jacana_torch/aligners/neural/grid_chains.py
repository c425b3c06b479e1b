"""From vectors of cells to two chains, one a direction: the same Potentials as the linear CRF's.

In: a vector for every cell. Out: `Potentials` of source tokens that choose target tokens, and of the reverse. What
a token's NULL is worth depends on all cells of its line; what a jump is worth, on the edge families' columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...crf.potentials import Potentials
from ...features.api import EdgeFamily

SPACES = ("edge", "start", "end")
_TABLES_KEPT = 128  # lengths whose columns are remembered


class Chain(nn.Module):
    """One direction; cells come with its own tokens first."""

    def __init__(self, width: int, families: Sequence[EdgeFamily]) -> None:
        super().__init__()
        self.families = families
        self.link = nn.Linear(width, 1)
        self.null = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1))
        sizes = {space: sum(len(getattr(f, space)(2).names) for f in families) for space in SPACES}
        self.steps = nn.ParameterDict({space: nn.Parameter(torch.zeros(size)) for space, size in sizes.items()})
        self._tables: dict[int, dict[str, Tensor]] = {}

    def forward(self, h: Tensor, inside: Tensor, sizes: Sequence[tuple[int, int]]) -> Potentials:
        """h [B, M, N, d], inside [B, M, N, 1]"""
        most, mean = line(h, inside, 2)
        null = self.null(torch.cat([most, mean], 3)).flatten(2)  # [B, M, 1]
        node = torch.cat([null, self.link(h).squeeze(3)], 2)  # [B, M, N + 1]
        lengths, states = (torch.tensor(side, device=h.device) for side in zip(*sizes, strict=True))
        different, table = torch.unique(states, return_inverse=True)
        scores = [self._scores(n, node.shape[2]) for n in different.tolist()]
        edge, start, end = (torch.stack(space) for space in zip(*scores, strict=True))
        return Potentials.build(node, edge, start, end, table, lengths, states + 1)

    def _scores(self, n: int, width: int) -> list[Tensor]:
        """Of edges, starts and ends for a target of n tokens, padded to so many states."""
        if not self.families:
            return [self.link.weight.new_zeros(shape) for shape in ((width, width), (width,), (width,))]
        edge, start, end = (self._columns(n)[space].to(self.link.weight) @ self.steps[space] for space in SPACES)
        more = width - n - 1
        square = functional.pad(edge.reshape(n + 1, n + 1), (0, more, 0, more))
        return [square, functional.pad(start, (0, more)), functional.pad(end, (0, more))]

    def _columns(self, n: int) -> dict[str, Tensor]:
        if n not in self._tables:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            device = self.link.weight.device
            columns = {s: np.hstack([getattr(f, s)(n).dense() for f in self.families]) for s in SPACES}
            self._tables[n] = {s: torch.tensor(x, dtype=torch.float32, device=device) for s, x in columns.items()}
        return self._tables[n]


def line(h: Tensor, inside: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The largest and the mean of each line of cells, with the axis kept; zero where a line is all padding."""
    most = h.masked_fill(inside == 0, -math.inf).amax(axis, keepdim=True)
    mean = (h * inside).sum(axis, keepdim=True) / inside.sum(axis, keepdim=True).clamp(min=1)
    return most.masked_fill(most.isneginf(), 0.0), mean


class Chains(nn.Module):
    """Both directions."""

    def __init__(self, width: int, families: Sequence[EdgeFamily]) -> None:
        super().__init__()
        self.forward_chain = Chain(width, families)
        self.backward_chain = Chain(width, families)

    def forward(
        self, h: Tensor, inside: Tensor, sizes: Sequence[tuple[int, int]]
    ) -> tuple[Potentials, Potentials]:
        ahead = self.forward_chain(h, inside, sizes)
        turned = [(n, m) for m, n in sizes]
        return ahead, self.backward_chain(h.transpose(1, 2), inside.transpose(1, 2), turned)
