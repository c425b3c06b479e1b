"""The training loss of a semi-Markov chain and its gradient, as one function of the weight vector.

Token lattices (objective.Lattices), phrase features and gold segments in; `objective(weights) -> (loss, gradient)`
out. A segment with a span scores what its cells do, pooled, and what phrase features say of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...crf.linear import LinearScores, RawBlock
from ...crf.objective import Lattices
from . import semi_markov as semi
from .semi_layout import SemiLayout, padded_flat


@dataclass(frozen=True)
class SemiLattices:
    """All that the scores of some pairs depend on: the tokens' features and those of phrases [D * D * C]."""

    layout: SemiLayout
    tokens: Lattices
    phrases: LinearScores
    share: Tensor

    @classmethod
    def of(
        cls,
        layout: SemiLayout,
        tokens: Lattices,
        phrases: Sequence[RawBlock],
        n_weights: int,
        share: Sequence[float],
    ) -> SemiLattices:
        """`phrases` are blocks over the sized segments, `share` what a cell counts in spans of each size."""
        linear = LinearScores(phrases, layout.n_sized, n_weights, layout.device)
        return cls(layout, tokens, linear, torch.tensor(share, dtype=torch.float64, device=layout.device))

    def scores(self, weights: Tensor) -> tuple[Tensor, ...]:
        """Flat segments, edges, starts, ends."""
        null, link, *steps = self.tokens.scores(weights)
        segments = segment_scores(self.layout, null, link, self.phrases.scores(weights), self.share)
        return segments, *steps

    def transpose(self, segments: Tensor, *steps: Tensor) -> Tensor:
        null, sized = segments.split([self.layout.tokens.n_tokens, self.layout.n_sized])
        D = self.layout.longest
        link = self.layout.unpooled(sized.view(D, D, -1), self.share)
        return self.tokens.transpose(null, link, *steps) + self.phrases.transpose(sized)


def segment_scores(layout: SemiLayout, null: Tensor, link: Tensor, phrases: Tensor, share: Tensor) -> Tensor:
    """The flat segments' scores."""
    return torch.cat([null, layout.pooled(link, share).view(-1).add_(phrases)])


class SemiObjective:
    """Softmax-margin loss plus L2, summed over pairs.

    `gold` holds the segments of each pair (SemiLayout.entries), `cost` what each of the flat segments costs in the
    sum over paths (gold's own nothing); `l2` is one figure or one a weight.
    """

    def __init__(
        self, lattices: SemiLattices, gold: Sequence[np.ndarray], cost: np.ndarray, l2: float | np.ndarray
    ) -> None:
        self.lattices, self.layout, device = lattices, lattices.layout, lattices.layout.device
        of = self.layout.tokens
        self._sizes = [self.layout.n_segments, of.n_edges, of.n_starts, of.n_starts]
        entries = (torch.as_tensor(x, device=device) for x in self.layout.entries(list(gold)))
        taken = [torch.bincount(x, minlength=n).double() for x, n in zip(entries, self._sizes, strict=True)]
        self._gold = lattices.transpose(*taken)
        self._cost = torch.as_tensor(cost, dtype=torch.float64, device=device)
        self._l2 = torch.as_tensor(l2, dtype=torch.float64, device=device)

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.as_tensor(weights, dtype=torch.float64, device=self.layout.device)
        with torch.no_grad():
            segments, *steps = self.lattices.scores(w)
            total, counts = expected(self.layout, segments + self._cost, *steps)
            prior = self._l2 * w
            loss = total.sum() + (w * (prior / 2 - self._gold)).sum()
            return float(loss), (self.lattices.transpose(*counts) + prior - self._gold).cpu().numpy()


def expected(layout: SemiLayout, *flat: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """log Z of each pair, and expected counts as flat as the scores (segments, edges, starts, ends)."""
    padded = padded_flat(*flat)
    counts = tuple(torch.zeros_like(x) for x in padded)
    total = torch.zeros(len(layout.tokens.n_source), dtype=torch.float64, device=layout.device)
    for bucket in layout.buckets:
        lattice = bucket.lattice(*padded)
        sums = semi.forward(lattice)
        z = semi.log_z(lattice, sums)
        bucket.add(semi.counts(lattice, sums, z), *counts)
        total[torch.as_tensor(bucket.bucket.pairs)] = bucket.groups.gather(z[:, None])[:, 0]
    return total, tuple(x[:-1] for x in counts)
