"""The softmax margin (Gimpel & Smith, 2010): the loss of gold paths, and its gradient in closed form.

`Objective` is for scores that are linear in a weight vector. For those of a network, see differentiable.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..util import ranks
from .arrays import TorchArrays
from .kernel import Chains, Lattice
from .layout import Layout, packs
from .scores import ChainScores

Path = np.ndarray  # one column a source token


def margin(
    layout: Layout,
    gold: Sequence[Sequence[Path]],
    cost_null: float,
    cost_link: float,
    device: Any,
    weight: np.ndarray | None = None,
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Return the costs of paths: every token whose state no reading of gold has costs something.

    `gold` holds the paths of each pair, as many for every pair, which train equal shares. The cost is `cost_null`
    where gold is NULL, and `cost_link` where it is a link. `weight` [P] is how much each pair counts.

    Returned are how often gold takes each score, so that its own score is the sum of these times the scores; what
    to add to the node scores; and [P] what every path pays. For every path pays for every token, and gold is
    refunded: so only few node scores change.
    """
    of_entries: list[np.ndarray | None] = [None] * 4
    if weight is not None:
        of_entries = [weight[pair] for pair in entry_pairs(layout)]
    entries = list(map(layout.path_entries, zip(*gold, strict=True)))
    sizes = [layout.n_nodes, *list(layout.sizes.values())[2:]]
    taken = []
    for readings, size, weights in zip(zip(*entries, strict=True), sizes, of_entries, strict=True):
        times = np.zeros(size)
        for reading in readings:
            times += np.bincount(reading, weights, size)
        taken.append(torch.as_tensor(times / len(readings), device=device))
    cost = np.where(entries[0][0] < layout.n_tokens, cost_null, cost_link)
    refund = np.zeros(layout.n_nodes)
    for nodes, *_ in entries:
        refund[nodes] = -cost
    paid = np.bincount(layout.geometry.source_pair, cost, len(layout.geometry.n_source))
    return taken, torch.as_tensor(refund, device=device), torch.as_tensor(paid, device=device)


class Objective:
    """The softmax margin of linear scores plus an L2 prior, summed over pairs: `objective(w) -> (loss, gradient)`.

    `gold` and the costs as in `margin`; `l2` is the inverse variance of the weights' Gaussian prior, one figure or
    one per weight, and `mean` its mean; `places` is how many states a pack holds; `counts` [P] is how often each
    pair counts, by default once. Processes that train together have pairs of their own, and get the same sums.
    """

    def __init__(
        self,
        scores: ChainScores,
        gold: Sequence[Sequence[Path]],
        l2: float | np.ndarray,
        costs: Mapping[str, float],
        places: int = 500_000,
        device: str = "cpu",
        mean: float | np.ndarray = 0.0,
        counts: np.ndarray | None = None,
    ) -> None:
        self.scores, self._device = scores, device
        self._chains = Chains(
            scores.layout, packs(scores.layout, places, numbers=places, aligned=16), TorchArrays(device)
        )
        taken, self._refund, self._paid = margin(
            scores.layout, gold, costs["cost_null"], costs["cost_link"], device, counts
        )
        self._counts = None if counts is None else torch.as_tensor(counts, dtype=torch.float64, device=device)
        self._l2 = torch.as_tensor(np.asarray(l2, np.float64), device=device)
        self._mean = torch.as_tensor(np.asarray(mean, np.float64), device=device)
        self._gold = scores.transpose(*taken)  # its product with the weights is the score of gold

    @torch.no_grad()
    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        # The weights that scores are computed of: the score of gold must not have others.
        dtype = getattr(torch, self.scores.precision)
        w, chains = torch.as_tensor(weights, dtype=dtype, device=self._device).double(), self._chains
        nodes, *steps = self.scores.flat(w)
        flat = nodes + self._refund.to(nodes), *steps
        log_z, counts = chains.sweep(flat, self._expected, check=False)
        joints, pairs = zip(*counts, strict=True)
        gradient = self.scores.transpose(chains.node_counts(joints, nodes.dtype), *chains.step_counts(pairs))
        paid = log_z + self._paid
        if self._counts is not None:
            paid = paid * self._counts
        found = torch.cat([gradient - self._gold, (paid.sum() - w @ self._gold).reshape(1)])
        if ranks.world > 1:
            ranks.add(found)
        away = w - self._mean
        prior = self._l2 * away
        found[:-1] += prior
        found[-1] += away @ prior / 2
        out = found.cpu().numpy()  # what waits for the device, once
        return float(out[-1]), out[:-1]

    def _expected(self, x: Lattice) -> tuple[Tensor, Tensor | None]:
        """Return the expected counts of the states and transitions of a pack."""
        weight = None if self._counts is None else of_chains(x, self._counts)
        return self._chains.backward(x, weight, edges=True)


def entry_pairs(layout: Layout) -> tuple[np.ndarray, ...]:
    """Return the pair of each of the path's nodes, edges, starts and ends."""
    g = layout.geometry
    some = np.flatnonzero(g.n_source)
    return g.source_pair, g.source_pair[g.source_position > 0], some, some


def of_chains(x: Lattice, weight: Tensor) -> Tensor:
    """Return the weight of each chain of a pack, in the type of its numbers, given those of the pairs."""
    chain, pair = (torch.as_tensor(k, device=weight.device) for k in x.pack.chains[:2])
    weights = weight.new_zeros(x.pack.pairs.size, dtype=x.alpha.dtype)
    weights[chain] = weight[pair].to(weights)
    return weights
