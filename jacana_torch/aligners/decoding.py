"""From pairs to links where nothing is trained: pairs cut into grids, and scored lattices decoded.

Pairs in, grids out; a layout and its scores in, alignments with posteriors out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ..crf.inference import marginals, viterbi
from ..crf.layout import Layout
from ..errors import ConfigError
from ..features.grid import Grid
from ..types import Alignment, SentencePair

LARGEST_PAIR = 16_000_000  # cells of one pair; features of more would not fit in a laptop's memory


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Pairs with words on both sides, in order, as many a grid as `most_cells` allows; and which these are.

    One beyond LARGEST_PAIR is an error, not an hour.
    """
    places: list[int] = []
    cells = 0
    for place, pair in enumerate(pairs):
        m, n = len(pair.source), len(pair.target)
        if m * n > LARGEST_PAIR:
            raise ConfigError(
                f"a pair of {m} x {n} tokens is more than this aligns ({LARGEST_PAIR:,} cells): "
                "split it into sentences"
            )
        if places and cells + m * n > most_cells:
            yield places, Grid([pairs[k] for k in places])
            places, cells = [], 0
        if m and n:
            places.append(place)
            cells += m * n
    if places:
        yield places, Grid([pairs[k] for k in places])


@torch.no_grad()
def decoded(layout: Layout, flat: Sequence[torch.Tensor]) -> list[Alignment]:
    """Viterbi links of every pair of the layout, with posteriors; the score is log p(states) per source token."""
    out: list[Alignment] = [Alignment(0, 0)] * len(layout.n_source)
    for bucket in layout.buckets:
        potentials = bucket.potentials(*flat)
        states, best = viterbi(potentials)
        chances = marginals(potentials)
        posterior = chances.node.gather(2, states.clamp(min=0).unsqueeze(2)).squeeze(2)
        score = (best - chances.log_z) / bucket.lengths
        rows = zip(bucket.pairs.tolist(), states.tolist(), posterior.tolist(), score.tolist(), strict=True)
        for pair, path, posteriors, figure in rows:
            m, n = int(layout.n_source[pair]), int(layout.n_target[pair])
            out[pair] = _alignment(m, n, path, posteriors, figure)
    return out


def _alignment(n_source: int, n_target: int, states: list[int], posterior: list[float], score: float) -> Alignment:
    confidence = {(m, s - 1): min(posterior[m], 1.0) for m, s in enumerate(states[:n_source]) if s > 0}
    return Alignment(n_source, n_target, frozenset(confidence), confidence=confidence, score=score)
