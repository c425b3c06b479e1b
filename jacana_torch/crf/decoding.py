"""From pairs to links where nothing is trained: pairs cut into grids, and scored lattices decoded.

Pairs in, grids out; a layout and its scores in, alignments with posteriors out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..features.grid import Grid
from ..types import Alignment, SentencePair, trusted
from . import plain
from .flat import Flat
from .layout import Layout

LARGEST_PAIR = 16_000_000  # cells of one pair; features of more would not fit in a laptop's memory
LONGEST_SIDE = 10_000  # tokens; steps between any two of them have scores


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Pairs with words on both sides, those with short targets first, as many a grid as `most_cells` allows; and
    which these are.

    One beyond LARGEST_PAIR, or LONGEST_SIDE, is an error, not an hour.
    """
    sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
    for m, n in sizes:
        if m * n > LARGEST_PAIR or (m and n and max(m, n) > LONGEST_SIDE):
            raise ConfigError(
                f"a pair of {m} x {n} tokens is more than this aligns ({LARGEST_PAIR:,} cells, {LONGEST_SIDE:,} "
                "tokens a side): split it into sentences"
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


def decoded(layout: Layout, flat: Flat, confidence: bool = True) -> list[Alignment]:
    """Viterbi links of every pair. `confidence` adds posteriors, and log p(states) per source token as the score,
    for twice the time. In single precision: what it rounds away is far below what the weights mean."""
    engine, flat = _engine(layout, flat, single=True)
    states, best = engine.best_paths(layout, flat)
    if not confidence:
        return list(_alignments(layout, states, None, None))
    chances, log_z = engine.chances(layout, flat)
    score = (best - log_z) / layout.n_source
    return list(_alignments(layout, states, chances[layout.nodes(states)], score.tolist()))


def link_posteriors(layout: Layout, flat: Flat, single: bool = False) -> np.ndarray:
    """[C] the chance of every link cell, in the layout's order; worked out in single precision if asked."""
    engine, flat = _engine(layout, flat, single)
    chances, _ = engine.chances(layout, flat)
    return chances[layout.n_tokens :]


def _engine(layout: Layout, flat: Flat, single: bool) -> tuple[ModuleType, Any]:
    """What decodes where the layout says, and the scores as it takes them."""
    if layout.device == "cpu":
        return plain, [np.asarray(scores, np.float32 if single else np.float64) for scores in flat]
    import torch

    from . import bucketed

    dtype = torch.float32 if single else torch.float64
    return bucketed, [torch.as_tensor(scores, dtype=dtype, device=layout.device) for scores in flat]


def _alignments(
    layout: Layout, states: np.ndarray, chances: np.ndarray | None, score: list[float] | None
) -> Iterator[Alignment]:
    """The pairs of a layout; their links are found all at once, and each then takes its run of them."""
    token = np.flatnonzero(states)
    pair = np.searchsorted(layout.token_start, token, side="right") - 1
    links = list(zip((token - layout.token_start[pair]).tolist(), (states[token] - 1).tolist(), strict=True))
    known = [] if chances is None else chances[token].tolist()
    sizes = zip(layout.n_source.tolist(), layout.n_target.tolist(), strict=True)
    ends = np.searchsorted(pair, np.arange(len(layout.n_source)), side="right").tolist()
    begin = 0
    for k, ((m, n), end) in enumerate(zip(sizes, ends, strict=True)):
        own = links[begin:end]
        if score is None:
            yield trusted(m, n, frozenset(own))
        else:
            confidence = dict(zip(own, known[begin:end], strict=True))
            yield trusted(m, n, frozenset(own), confidence=confidence, score=score[k])
        begin = end
