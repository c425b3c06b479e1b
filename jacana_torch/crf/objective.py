"""The softmax margin (Gimpel & Smith, 2010): the loss of gold paths, its gradient, and a differentiable log Z.

`Objective` is the loss of scores that are linear in a weight vector, with its gradient in closed form. For scores
of any other origin, such as a network's, `softmax_margin` is differentiable by autograd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arrays import TorchArrays
from .kernel import Chains, Lattice
from .layout import Layout, packs
from .scores import ChainScores

Path = np.ndarray  # one column a source token


class Margin:
    """The costs of paths: every token whose state no reading of gold has costs something.

    `gold` holds the paths of each pair, as many for every pair, which train equal shares. The cost is `cost_null`
    where gold is NULL, and `cost_link` where it is a link. `weight` [P] is how much each pair counts.
    """

    def __init__(
        self,
        layout: Layout,
        gold: Sequence[Sequence[Path]],
        cost_null: float,
        cost_link: float,
        device: Any,
        weight: np.ndarray | None = None,
    ) -> None:
        of_entries: list[np.ndarray | None] = [None] * 4
        if weight is not None:
            of_entries = [weight[pair] for pair in entry_pairs(layout)]
        entries = list(map(layout.path_entries, zip(*gold, strict=True)))
        sizes = [layout.n_nodes, *list(layout.sizes.values())[2:]]
        # How often gold takes each score: its own score is the sum of these times the scores.
        self.taken = []
        for readings, size, weights in zip(zip(*entries, strict=True), sizes, of_entries, strict=True):
            taken = np.zeros(size)
            for reading in readings:
                taken += np.bincount(reading, weights, size)
            self.taken.append(torch.as_tensor(taken / len(readings), device=device))
        cost = np.where(entries[0][0] < layout.n_tokens, cost_null, cost_link)
        # Every path pays for every token, and gold is refunded: only few node scores change.
        refund = np.zeros(layout.n_nodes)
        for nodes, *_ in entries:
            refund[nodes] = -cost
        self.refund = torch.as_tensor(refund, device=device)
        self.costs = np.bincount(layout.geometry.source_pair, cost, len(layout.geometry.n_source))


class Objective:
    """The softmax margin of linear scores plus an L2 prior, summed over pairs: `objective(w) -> (loss, gradient)`.

    `gold` and the costs as in `Margin`; `l2` is the inverse variance of the weights' Gaussian prior, one figure or
    one per weight, and `mean` its mean; `places` is how many states a pack holds; `counts` [P] is how often each
    pair counts, by default once.
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
        self._margin = Margin(scores.layout, gold, costs["cost_null"], costs["cost_link"], device, counts)
        self._counts = None if counts is None else torch.as_tensor(counts, dtype=torch.float64, device=device)
        self._l2 = torch.as_tensor(l2, dtype=torch.float64, device=device)
        self._mean = torch.as_tensor(mean, dtype=torch.float64, device=device)
        self._gold = scores.transpose(*self._margin.taken)  # its product with the weights is the score of gold

    @torch.no_grad()
    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        w, chains = torch.as_tensor(weights, dtype=torch.float64, device=self._device), self._chains
        nodes, *steps = self.scores.flat(w)
        flat = nodes + self._margin.refund, *steps
        log_z, counts = chains.sweep(flat, self._expected, check=False)
        joints, pairs = zip(*counts, strict=True)
        gradient = self.scores.transpose(chains.node_counts(joints, "float64"), *chains.step_counts(pairs))
        away = w - self._mean
        prior = self._l2 * away
        paid = log_z + torch.as_tensor(self._margin.costs, device=self._device)
        if self._counts is not None:
            paid = paid * self._counts
        loss = paid.sum() + (away * prior / 2 - w * self._gold).sum()
        return float(loss), (gradient + prior - self._gold).cpu().numpy()

    def _expected(self, x: Lattice) -> tuple[Tensor, Tensor | None]:
        """Return the expected counts of the states and transitions of a pack."""
        weight = None if self._counts is None else of_chains(x, self._counts)
        return self._chains.backward(x, weight, edges=True)


def softmax_margin(
    layout: Layout, flat: Sequence[Tensor], gold: Sequence[Path], cost_null: float = 1.0, cost_link: float = 1.0
) -> Tensor:
    """Return [P] log of the sum over paths of exp(score + cost), minus the score of the gold path; differentiable.

    With costs of 0 it is the negative log-likelihood.
    """
    margin = Margin(layout, [[path] for path in gold], cost_null, cost_link, flat[0].device)
    nodes, *steps = flat
    costly = log_partition(layout, [nodes + margin.refund.to(nodes), *steps])
    return costly + torch.as_tensor(margin.costs).to(nodes) - path_scores(layout, flat, gold)


def path_scores(layout: Layout, flat: Sequence[Tensor], paths: Sequence[Path]) -> Tensor:
    """Return [P] the score of a path of each pair; differentiable."""
    device = flat[0].device
    total = flat[0].new_zeros(len(layout.geometry.n_source))
    for scores, entries, pair in zip(flat, layout.path_entries(paths), entry_pairs(layout), strict=True):
        entry, pairs = (torch.as_tensor(x, device=device) for x in (entries, pair))
        total = total.index_add(0, pairs, scores.index_select(0, entry))
    return total


def entry_pairs(layout: Layout) -> tuple[np.ndarray, ...]:
    """Return the pair of each of the path's nodes, edges, starts and ends."""
    g = layout.geometry
    some = np.flatnonzero(g.n_source)
    return g.source_pair, g.source_pair[g.source_position > 0], some, some


def of_chains(x: Lattice, weight: Tensor) -> Tensor:
    """Return the weight of each chain of a pack, in the type of its numbers, given those of the pairs."""
    chain, pair = (torch.as_tensor(k, device=weight.device) for k in x.pack.chains)
    weights = weight.new_zeros(x.pack.pairs.size, dtype=x.alpha.dtype)
    weights[chain] = weight[pair].to(weights)
    return weights


def log_partition(layout: Layout, flat: Sequence[Tensor]) -> Tensor:
    """Return [P] the log of the sum of exp(score) over all paths; differentiable in all scores."""
    chains = Chains(layout, packs(layout), TorchArrays(flat[0].device))
    return _LogPartition.apply(chains, *flat)  # type: ignore[no-any-return, no-untyped-call]


class _LogPartition(torch.autograd.Function):
    """log Z, whose gradient is the expected counts: one sweep each way, and no [B, M, S, S] tensor."""

    @staticmethod
    def forward(ctx: Any, chains: Chains, *flat: Tensor) -> Tensor:
        log_z: Tensor
        log_z, ctx.lattices = chains.sweep([x.detach() for x in flat], lambda x: x)
        ctx.chains, ctx.dtype = chains, flat[0].dtype
        return log_z

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        chains, counts = ctx.chains, []
        for x in ctx.lattices:
            # The sweep back takes the emission's place, and autograd may ask for it again.
            own = replace(x, emission=x.emission.clone())
            counts.append(chains.backward(own, of_chains(x, weight), edges=True))
        joints, pairs = zip(*counts, strict=True) if counts else ((), ())
        found = chains.node_counts(joints, "float64"), *chains.step_counts(pairs)
        return None, *(x.to(ctx.dtype) for x in found)
