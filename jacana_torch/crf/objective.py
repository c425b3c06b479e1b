"""The training loss of a linear chain and its gradient, as one function of the weight vector.

Feature blocks and gold states in; `objective(weights) -> (loss, gradient)` out. One evaluation is a product with
the feature matrices, a sweep there and back over each band, and the transposed product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import logspace, sweep
from .bands import bands
from .layout import Layout
from .linear import LinearScores, RawBlock


@dataclass(frozen=True)
class Lattices:
    """All that the scores of some pairs depend on, on the device: where features are and where they go."""

    layout: Layout
    null: LinearScores
    link: LinearScores
    edge: LinearScores
    start: LinearScores
    end: LinearScores

    @property
    def spaces(self) -> tuple[LinearScores, ...]:
        return self.null, self.link, self.edge, self.start, self.end

    def scores(self, weights: Tensor) -> tuple[Tensor, ...]:
        """The flat score vectors: null, link, edge, start, end."""
        return tuple(space.scores(weights) for space in self.spaces)

    def transpose(self, *gradients: Tensor) -> Tensor:
        """The gradient of the weights from those of the flat vectors."""
        each = [space.transpose(gradient) for space, gradient in zip(self.spaces, gradients, strict=True)]
        return torch.stack(each).sum(0)

    @torch.no_grad()
    def numbers(self, weights: np.ndarray) -> tuple[np.ndarray, ...]:
        """As `flat`, for numpy."""
        device = self.layout.device
        flat = self.flat(torch.as_tensor(weights, dtype=torch.float64, device=device))
        return tuple(x.cpu().numpy() for x in flat)

    def flat(self, weights: Tensor) -> tuple[Tensor, ...]:
        """What a bucket of the layout takes: nodes, edges, starts, ends, each with a padding entry at its end."""
        null, link, *steps = self.scores(weights)
        pad = weights.new_zeros(1)
        return torch.cat([null, link, pad]), *(torch.cat([x, pad]) for x in steps)


class Objective:
    """Softmax-margin loss (see loss.py) plus L2, summed over pairs.

    `gold` holds the state sequences of each pair, as many for every pair, which train equal shares; `costs` what a
    state costs that is in none of them: `cost_null` where gold is NULL, `cost_link` where it is a link.
    `l2` is the inverse variance of the weights' Gaussian prior, one figure or one a weight.
    """

    def __init__(
        self,
        lattices: Lattices,
        gold: Sequence[Sequence[np.ndarray]],
        l2: float | np.ndarray,
        costs: Mapping[str, float],
    ) -> None:
        self.lattices, self.layout, self.device = lattices, lattices.layout, lattices.layout.device
        self.bands = bands(self.layout, self.layout.max_cells)
        self._room = self._zeros(3 * max(band.size for band in self.bands))
        self._l2 = torch.as_tensor(l2, dtype=torch.float64, device=self.device)
        self._token = torch.as_tensor(self.layout.token_of_cell(), device=self.device)
        ways = [
            [torch.as_tensor(path, device=self.device) for path in self.layout.paths(way)]
            for way in zip(*gold, strict=True)
        ]
        n_null, n_link, *n_steps = self.layout.sizes.values()

        def share(space: int, size: int) -> Tensor:
            counts = torch.stack([torch.bincount(way[space], minlength=size) for way in ways])
            return counts.double().mean(0)

        nodes = share(0, n_null + n_link)
        taken = [nodes[:n_null], nodes[n_null:], *(share(k, n) for k, n in enumerate(n_steps, start=1))]
        # What gold's features add up to: its score is this times the weights.
        self._gold = lattices.transpose(*taken)
        # Everybody pays the cost of a wrong state outside of the sum, and gold gets it back.
        cost = self._zeros(n_null) + costs["cost_link"]
        cost[ways[0][0] < n_null] = costs["cost_null"]
        self._cost, self._refund = cost.sum(), self._zeros(n_null + n_link)
        for path, *_ in ways:
            self._refund[path] = -cost

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.as_tensor(weights, dtype=torch.float64, device=self.device)
        log_z, gradient = self._partition(w)
        prior = self._l2 * w
        loss = log_z + self._cost + (w * (prior / 2 - self._gold)).sum()
        return float(loss), (gradient + prior - self._gold).cpu().numpy()

    def _partition(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of log Z over all pairs, gold getting its refund, and its gradient."""
        null, link, *steps = self.lattices.scores(weights)
        split = [len(null), len(link)]
        null, link = (torch.cat([null, link]) + self._refund).split(split)
        top = null.scatter_reduce(0, self._token, link, "amax")  # the best state of each token
        steps, shift, every = self._bounded(steps)
        nodes, edges = _padded([null - top, link - top[self._token]], every), _padded(steps, every)
        log_z, of_nodes, of_edges = top.sum() + shift, torch.zeros_like(nodes), torch.zeros_like(edges)
        method = sweep if every else logspace
        for band in self.bands:
            x = band.lattice(nodes, edges, every, self._room)
            f = method.forward(x)
            log_z += f.log_z.sum()  # rows without a chain have one path, of score 0
            band.add(method.backward(x, f, torch.ones_like(f.log_z)), of_nodes, of_edges)
        counts = *of_nodes[:-2].split(split), *of_edges[:-2].split([len(x) for x in steps])
        return log_z, self.lattices.transpose(*counts)

    def _bounded(self, steps: Sequence[Tensor]) -> tuple[list[Tensor], float, int]:
        """Edge, start and end scores moved to the middle of what probabilities hold, what that took from the log Z
        of all pairs together, and how often to rescale (see sweep.choose)."""
        space, pairs = self.layout.space, len(self.layout.n_source)
        states = int(space.size(self.layout.distinct[-1]))
        # The only figures that the host waits for, once an evaluation.
        bounds = torch.stack([torch.stack(x.aminmax()) for x in steps]).tolist()
        middle = [(low + high + math.log(states + 1)) / 2 for low, high in bounds]
        _, every = sweep.choose(space.reach * max(high - low for low, high in bounds), states, torch.float64)
        shift = sum(x * n for x, n in zip(middle, (self.layout.n_tokens - pairs, pairs, pairs), strict=True))
        return [x - by for x, by in zip(steps, middle, strict=True)], shift, every

    def _zeros(self, size: int) -> Tensor:
        return torch.zeros(size, dtype=torch.float64, device=self.device)


def _padded(scores: Sequence[Tensor], every: int) -> Tensor:
    """One vector of probabilities, or of logs for log space, with the two entries that a band expects."""
    flat = torch.cat([*scores, scores[0].new_tensor([-math.inf, 0.0])])
    return flat.mul_(sweep.LOG2E).exp2_() if every else flat


def lattices(layout: Layout, blocks: Mapping[str, Sequence[RawBlock]], n_weights: int) -> Lattices:
    """`blocks` by space: null, link, edge, start, end."""
    sizes = layout.sizes.items()
    return Lattices(layout, **{k: LinearScores(blocks[k], size, n_weights, layout.device) for k, size in sizes})
