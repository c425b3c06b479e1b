"""Scored semi-Markov lattices decoded: a layout and flat scores in, alignments with posteriors out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ...types import Alignment, trusted
from . import semi_markov as semi
from .gold_segments import links_of
from .semi_layout import SemiBucket, SemiLayout, padded_flat
from .semi_objective import expected


@torch.no_grad()
def decoded(layout: SemiLayout, flat: Sequence[torch.Tensor], confidence: bool = True) -> list[Alignment]:
    """The best path's links. `confidence` adds the chance of each link, whatever segments it may be part of, and
    log p(path) per source token as the score."""
    links, best = _best(layout, flat)
    of = layout.tokens
    chances, scores = _posteriors(layout, flat, best) if confidence else (None, None)
    out = []
    for pair, (m, n) in enumerate(zip(of.n_source.tolist(), of.n_target.tolist(), strict=True)):
        own = list(map(tuple, links[pair].tolist()))
        if chances is None or scores is None:
            out.append(trusted(m, n, frozenset(own)))
            continue
        cells = of.cell_start[pair] + links[pair] @ [n, 1]
        found = dict(zip(own, chances[cells].tolist(), strict=True))
        out.append(trusted(m, n, frozenset(own), confidence=found, score=float(scores[pair])))
    return out


def _best(layout: SemiLayout, flat: Sequence[torch.Tensor]) -> tuple[list[np.ndarray], np.ndarray]:
    """The links [k, 2] of each pair, and its best path's score."""
    padded, n_pairs = padded_flat(*flat), len(layout.tokens.n_source)
    links: list[np.ndarray] = [np.zeros((0, 2), dtype=np.int64)] * n_pairs
    best = np.zeros(n_pairs)
    for bucket in layout.buckets:
        segments, score = semi.best_segments(bucket.lattice(*padded))
        best[bucket.bucket.pairs] = bucket.groups.gather(score[:, None])[:, 0].cpu().numpy()
        for pair, found in _links_by_pair(bucket, segments.cpu().numpy()):
            links[pair] = found
    return links, best


def _links_by_pair(bucket: SemiBucket, segments: np.ndarray) -> list[tuple[int, np.ndarray]]:
    segments = segments[np.argsort(segments[:, 0], kind="stable")]
    of, token, target = links_of(segments[:, 1:])
    pair = bucket.pair_of_row()[segments[of, 0]]
    runs = np.flatnonzero(np.diff(pair, prepend=-1))
    return list(zip(pair[runs].tolist(), np.split(np.column_stack([token, target]), runs[1:]), strict=False))


def _posteriors(
    layout: SemiLayout, flat: Sequence[torch.Tensor], best: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[C] the chance of each link; [P] the score of each pair's best path per token."""
    total, counts = expected(layout, *flat)
    D = layout.longest
    sized = counts[0][layout.tokens.n_tokens :].view(D, D, -1)
    chances = layout.unpooled(sized, torch.ones(D, dtype=sized.dtype, device=sized.device))
    score = (best - total.cpu().numpy()) / layout.tokens.n_source
    return chances.clamp(0.0, 1.0).cpu().numpy(), score
