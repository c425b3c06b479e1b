"""The training loss of a linear chain and its gradient, as one function of the weight vector.

Feature blocks and gold states in; `objective(weights) -> (loss, gradient)` out. One evaluation is a product with
the feature tables, one forward-backward a bucket, and the transposed product. Autograd spans the lattice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .layout import Layout
from .linear import LinearScores, RawBlock
from .loss import softmax_margin
from .states import pad_states


@dataclass(frozen=True)
class Lattices:
    """All that the scores of some pairs depend on, on the device: where features are and where they go."""

    layout: Layout
    link: LinearScores
    null: LinearScores
    edge: LinearScores
    start: LinearScores
    end: LinearScores

    @property
    def spaces(self) -> tuple[LinearScores, ...]:
        return self.null, self.link, self.edge, self.start, self.end

    def flat(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The flat score vectors (nodes, edges, starts, ends), each with a padding entry at its end."""
        null, link, edge, start, end = (space.scores(weights) for space in self.spaces)
        pad = weights.new_zeros(1)
        nodes = torch.cat([null, link, pad])
        return nodes, torch.cat([edge, pad]), torch.cat([start, pad]), torch.cat([end, pad])

    def transpose(self, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """The gradient of the weights from those of the flat vectors."""
        tokens = self.layout.n_tokens
        total = self.null.transpose(nodes[:tokens]) + self.link.transpose(nodes[tokens:-1])
        for space, gradient in ((self.edge, edges), (self.start, starts), (self.end, ends)):
            total += space.transpose(gradient[:-1])
        return total


class Objective:
    """Softmax-margin loss plus L2, summed over pairs.

    `gold` holds the state sequence of each pair. `l2` is the inverse variance of the weights' Gaussian prior, one
    figure or one a weight.
    """

    def __init__(
        self, lattices: Lattices, gold: Sequence[np.ndarray], l2: float | np.ndarray, costs: dict[str, float]
    ) -> None:
        self.lattices, self.costs = lattices, costs
        self.device = lattices.layout.device
        self.l2 = torch.as_tensor(l2, dtype=torch.float64, device=self.device)
        self.gold = [
            torch.as_tensor(pad_states([gold[p] for p in bucket.pairs]), device=self.device)
            for bucket in lattices.layout.buckets
        ]

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.as_tensor(weights, dtype=torch.float64, device=self.device)
        flat = [vector.requires_grad_() for vector in self.lattices.flat(w)]
        total = w.new_zeros(())
        for bucket, gold in zip(self.lattices.layout.buckets, self.gold, strict=True):
            loss = softmax_margin(bucket.potentials(*flat), gold, **self.costs).sum()
            loss.backward()
            total += loss.detach()
        gradients = [torch.zeros_like(v) if v.grad is None else v.grad for v in flat]
        gradient = self.lattices.transpose(*gradients)
        total += 0.5 * (self.l2 * w * w).sum()
        gradient += self.l2 * w
        return float(total), gradient.cpu().numpy()


def lattices(
    layout: Layout, blocks: dict[str, Sequence[RawBlock]], n_weights: int, dtype: torch.dtype = torch.float64
) -> Lattices:
    """`blocks` by space: null, link, edge, start, end."""
    sizes = {
        "null": layout.n_tokens, "link": layout.n_cells, "edge": layout.n_edges,
        "start": layout.n_starts, "end": layout.n_starts,
    }  # fmt: skip
    spaces = {
        name: LinearScores(blocks[name], size, n_weights, dtype, layout.device) for name, size in sizes.items()
    }
    return Lattices(layout, **spaces)
