"""The softmax margin (Gimpel & Smith, 2010): the loss of gold paths, and its gradient in closed form.

`Objective` is for scores that are linear in a weight vector. For those of a network, see differentiable.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import ConfigError
from ..features.api import Grouped
from ..features.featureset import FeatureBatch
from ..util import ranks
from .arrays import TorchArrays
from .kernel import Chains, Lattice
from .layout import Layout, packs
from .scores import ChainScores

Path = np.ndarray  # one column a source token
Loss = Callable[[np.ndarray], tuple[Any, Any]]  # weights -> (loss, gradient)


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


class Part(NamedTuple):
    """Pairs of one convention: their scores as functions of the weights, and the paths of gold as in `margin`.

    `counts` [P] is how often each pair counts, by default once. `style` is the number of the convention, whose
    deviation is added to the shared weights. It is None for pairs that have the shared weights alone.
    """

    scores: ChainScores
    gold: Sequence[Sequence[Path]]
    counts: np.ndarray | None = None
    style: int | None = None


class Objective:
    """The softmax margin of linear scores plus an L2 prior, summed over pairs: `objective(w) -> (loss, gradient)`.

    The costs are as in `margin`; `l2` is the inverse variance of the weights' Gaussian prior, one figure or one a
    weight, and `mean` its mean; `places` is how many states a pack holds. Processes that train together have pairs
    of their own, and get the same sums.

    With `styles` conventions, the vector holds the shared weights and then the deviation of each convention, as in
    Finkel and Manning (2009). `l2` and `mean` have an entry for each of them.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        l2: float | np.ndarray,
        costs: Mapping[str, float],
        places: int = 500_000,
        device: str = "cpu",
        mean: float | np.ndarray = 0.0,
        styles: int = 0,
    ) -> None:
        self._device, self._rows, self._parts = device, 1 + styles, []
        self._l2 = torch.as_tensor(np.asarray(l2, np.float64), device=device)
        self._mean = torch.as_tensor(np.asarray(mean, np.float64), device=device)
        for scores, gold, counts, style in parts:
            own = packs(scores.layout, places, numbers=places, aligned=16)
            taken, refund, paid = margin(
                scores.layout, gold, costs["cost_null"], costs["cost_link"], device, counts
            )
            often = None if counts is None else torch.as_tensor(counts, dtype=torch.float64, device=device)
            chains = Chains(scores.layout, own, TorchArrays(device))
            # The product of the last with the weights is the score of gold.
            self._parts.append((scores, chains, style, refund, paid, often, scores.transpose(*taken)))

    @torch.no_grad()
    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        dtype = getattr(torch, self._parts[0][0].precision)
        rows = torch.as_tensor(weights, dtype=dtype, device=self._device).double().reshape(self._rows, -1)
        found = rows.new_zeros(rows.numel() + 1)
        gradient = found[:-1].view_as(rows)
        for scores, chains, style, refund, paid, often, gold in self._parts:
            # The weights that scores are computed of: the score of gold must not have others.
            w = rows[0] if style is None else rows[0] + rows[1 + style]
            w = w.to(dtype).double()
            nodes, *steps = scores.flat(w)
            flat = nodes + refund.to(nodes), *steps
            expected = partial(chains.backward, edges=True) if often is None else partial(_weighted, chains, often)
            log_z, counts = chains.sweep(flat, expected, check=False)
            joints, pairs = zip(*counts, strict=True)
            own = scores.transpose(chains.node_counts(joints, nodes.dtype), *chains.step_counts(pairs)) - gold
            for row in {0, 0 if style is None else 1 + style}:
                gradient[row] += own
            all_paid = log_z + paid
            if often is not None:
                all_paid = all_paid * often
            found[-1] += all_paid.sum() - w @ gold
        if ranks.world > 1:
            ranks.add(found)
        away = rows.reshape(-1) - self._mean
        prior = self._l2 * away
        found[:-1] += prior
        found[-1] += away @ prior / 2
        out = found.cpu().numpy()  # what waits for the device, once
        return float(out[-1]), out[:-1]


def _weighted(chains: Chains, often: Tensor, x: Lattice) -> tuple[Tensor, Tensor | None]:
    """Return the expected counts of the states and transitions of a pack, whose pairs count so often."""
    return chains.backward(x, of_chains(x, often), edges=True)


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


def prior(
    names: Sequence[str], priors: Mapping[str, float], mean: Mapping[str, float], pull: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each column's prior [K], and a factor [K] on its strength.

    `priors` has factors by the beginnings of names; the longest beginning counts. Columns in `mean` have it as
    their mean, and `pull` as another factor.
    """
    means, factors = np.zeros(len(names)), np.ones(len(names))
    for start in sorted(priors, key=len):  # a longer match overrides a shorter one
        for k, name in enumerate(names):
            if name.startswith(start):
                factors[k] = priors[start]
    for k, name in enumerate(names):
        if name in mean:
            means[k], factors[k] = mean[name], factors[k] * pull
    return means, factors


def scattered(weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return all weights, given those of the columns that are kept: the others are 0."""
    out = np.zeros(len(kept))
    out[kept] = weights
    return out


def among(function: Loss, kept: np.ndarray) -> Loss:
    """Return a loss of all weights as a function of those that are kept."""

    def restricted(weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = function(scattered(weights, kept))
        return loss, gradient[kept]

    return restricted


def mattering(batches: Sequence[FeatureBatch], names: Sequence[str], x: np.ndarray, least: float) -> np.ndarray:
    """Return [K] whether a column changes the score of any cell by `least` or more; an error if none does.

    `x` has the shared weights, and then the deviation of each style.

    The most that a column contributes anywhere counts: a rare column that decides the few cells where it is on is
    kept.
    """
    largest = dict.fromkeys(names, 0.0)
    for block in chain.from_iterable(batch.blocks for batch in batches):
        if block.table is None:
            values = np.ones(len(block.names))
        elif isinstance(block.table, Grouped):  # written out it would be mostly zeros
            values = np.tile(np.abs(block.table.values).max(0, initial=0.0), block.table.count)
        else:
            values = np.abs(block.table).max(0, initial=0.0)
        for name, value in zip(block.names, values.tolist(), strict=True):
            largest[name] = max(largest[name], value)
    values = np.array([largest[name] for name in names])
    if ranks.world > 1:
        values = ranks.largest(values)
    shared, *deviations = x.reshape(-1, len(names))
    weights = [shared, *(shared + deviation for deviation in deviations)]
    kept: np.ndarray = np.abs(weights).max(0) * values >= least
    if not kept.any():
        raise ConfigError(f"prune={least}: none of {len(kept)} columns changes a score by that much")
    return kept
