"""From pairs to links where nothing is trained: pairs cut into grids, and scored lattices decoded.

Pairs in, grids out; a layout and its scores in, alignments with posteriors out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ..crf.inference import marginals, viterbi
from ..crf.layout import Bucket, Layout
from ..crf.potentials import Potentials
from ..errors import ConfigError
from ..features.grid import Grid
from ..types import Alignment, SentencePair, trusted

LARGEST_PAIR = 16_000_000  # cells of one pair; features of more would not fit in a laptop's memory


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Pairs with words on both sides, those with short targets first, as many a grid as `most_cells` allows; and
    which these are.

    One beyond LARGEST_PAIR is an error, not an hour.
    """
    sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
    for m, n in sizes:
        if m * n > LARGEST_PAIR:
            raise ConfigError(
                f"a pair of {m} x {n} tokens is more than this aligns ({LARGEST_PAIR:,} cells): "
                "split it into sentences"
            )
    places: list[int] = []
    cells = 0
    for place in sorted(range(len(pairs)), key=lambda k: sizes[k][1]):
        m, n = sizes[place]
        if places and cells + m * n > most_cells:
            yield places, Grid([pairs[k] for k in places])
            places, cells = [], 0
        if m and n:
            places.append(place)
            cells += m * n
    if places:
        yield places, Grid([pairs[k] for k in places])


@torch.no_grad()
def decoded(layout: Layout, flat: Sequence[torch.Tensor], confidence: bool = True) -> list[Alignment]:
    """Viterbi links of every pair of the layout. `confidence` adds posteriors, and log p(states) per source token
    as the score, for twice the time. In single precision: what it rounds away is far below what the weights mean."""
    flat = [scores.to(torch.float32) for scores in flat]
    out: list[Alignment] = [Alignment(0, 0)] * len(layout.n_source)
    for bucket in layout.buckets:
        potentials = bucket.potentials(*flat)
        states, best = viterbi(potentials)
        posterior, score = _posteriors(potentials, states, best) if confidence else (None, None)
        found = _alignments(layout, bucket, states.cpu().numpy(), posterior, score)
        for pair, alignment in zip(bucket.pairs.tolist(), found, strict=True):
            out[pair] = alignment
    return out


@torch.no_grad()
def link_posteriors(layout: Layout, flat: Sequence[torch.Tensor], single: bool = False) -> np.ndarray:
    """[C] the chance of every link cell, in the layout's order; worked out in single precision if asked."""
    null, cells = layout.n_tokens, layout.n_cells
    flat = [scores.float() for scores in flat] if single else flat
    out = torch.zeros(null + cells + 1, dtype=flat[0].dtype, device=flat[0].device)
    for bucket in layout.buckets:
        out[bucket.node] = marginals(bucket.potentials(*flat)).node
    return out[null : null + cells].clamp_(0.0, 1.0).cpu().numpy()


def _posteriors(p: Potentials, states: torch.Tensor, best: torch.Tensor) -> tuple[np.ndarray, list[float]]:
    """[B, M] the chance of each position's state; the score of each path per position."""
    chances = marginals(p)
    posterior = chances.node.gather(2, states.clamp(min=0).unsqueeze(2)).squeeze(2).clamp(max=1.0)
    return posterior.cpu().numpy(), ((best - chances.log_z) / p.lengths).tolist()


def _alignments(
    layout: Layout, bucket: Bucket, states: np.ndarray, posterior: np.ndarray | None, score: list[float] | None
) -> Iterator[Alignment]:
    """The pairs of a bucket; their links are found all at once, and each then takes its run of them."""
    linked = states > 0  # neither NULL nor past the end
    row, token = np.nonzero(linked)
    links = list(zip(token.tolist(), (states[row, token] - 1).tolist(), strict=True))
    chances = posterior[row, token].tolist() if posterior is not None else []
    sizes = zip(layout.n_source[bucket.pairs].tolist(), layout.n_target[bucket.pairs].tolist(), strict=True)
    begin = 0
    for k, ((m, n), end) in enumerate(zip(sizes, np.cumsum(linked.sum(1)).tolist(), strict=True)):
        own = links[begin:end]
        if score is None:
            yield trusted(m, n, frozenset(own))
        else:
            confidence = dict(zip(own, chances[begin:end], strict=True))
            yield trusted(m, n, frozenset(own), confidence=confidence, score=score[k])
        begin = end
