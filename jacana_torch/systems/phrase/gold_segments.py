"""Gold links as segments with spans, and segments as links.

An alignment in, the segments [n, 4] that train out: first token, tokens, first state (0: NULL), states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...crf.states import POLICIES
from ...types import Alignment

Span = tuple[int, int]  # the first target token, and past the last


class GoldSegments(NamedTuple):
    """`segments` [n, 4]; `spans` [M, 2] of each token, (0, 0) where it has none; `dropped` gold links not held."""

    segments: np.ndarray
    spans: np.ndarray
    dropped: int


def gold_segments(alignment: Alignment, longest: int, policy: str = "monotone") -> GoldSegments:
    """Each token keeps its longest run of targets (the `policy` says which of several), of at most `longest`;
    neighbours with the same span are one segment, unless it would be longer than that."""
    targets: dict[int, list[int]] = {}
    for i, j in alignment.links:
        targets.setdefault(i, []).append(j)
    runs = {i: _longest_runs(js, longest) for i, js in targets.items()}
    starts = [(i, [first for first, _ in of]) for i, of in runs.items()]
    chosen = POLICIES[policy](starts, alignment.n_source, alignment.n_target)
    spans = np.zeros((alignment.n_source, 2), dtype=np.int64)
    for (i, of), first in zip(runs.items(), chosen, strict=True):
        spans[i] = next(run for run in of if run[0] == first)
    dropped = len(alignment.sure) - int((spans[:, 1] - spans[:, 0]).sum())
    return GoldSegments(_cut(spans, longest), spans, dropped)


def _longest_runs(js: list[int], longest: int) -> list[Span]:
    """The longest runs of numbers that follow one another; a run that is too long counts with its first ones."""
    runs: list[list[int]] = []
    for j in js:
        if runs and runs[-1][-1] == j - 1 and len(runs[-1]) < longest:
            runs[-1].append(j)
        else:
            runs.append([j])
    most = max(map(len, runs))
    return [(run[0], run[-1] + 1) for run in runs if len(run) == most]


def _cut(spans: np.ndarray, longest: int) -> np.ndarray:
    rows: list[list[int]] = []
    for i, (first, past) in enumerate(spans.tolist()):
        span = [first + 1, past - first] if past else [0, 1]
        if past and rows and rows[-1][2:] == span and rows[-1][1] < longest:
            rows[-1][1] += 1
        else:
            rows.append([i, 1, *span])
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def links_of(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every link of segments [n, 4]: which segment it is of, its token and its target token."""
    _, size, state, span = segments.T
    count = np.where(state > 0, size * span, 0)
    of = np.repeat(np.arange(len(segments)), count)
    number = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    return of, segments[of, 0] + number // span[of], state[of] - 1 + number % span[of]
