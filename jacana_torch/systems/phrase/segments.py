"""Segments of source tokens and the spans of target tokens that they take, over the flattened cells of many pairs.

The flat segments of some pairs are the NULLs, one per source token, followed by [D, D, C]: entry (l, k, c) is the
segment of l + 1 tokens with the span of k + 1 target tokens that both begin at cell c. A path is an array [n, 4]
of segments in order: first token, number of tokens, first state, number of states. State 0 is NULL, and state n is
target token n - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...crf.states import POLICIES
from ...types import Alignment
from ...util.geometry import Geometry, positions, run_of, starts

Span = tuple[int, int]  # the first target token, and past the last


class Segments:
    """Segments and spans of up to `longest` tokens, over the cells of `tokens`.

    `width` [C] is the target length of each cell, `rows_left` the number of rows from its own on, and `down[i]`
    the cell i rows below it, C if outside. The flat edges [n_edges] and starts and ends [n_starts] are those of
    the chain of single tokens: a table for each `distinct` target length, from `edge_start` and `outer_start` on.
    """

    def __init__(self, tokens: Geometry, longest: int, device: str = "cpu") -> None:
        self.tokens, self.longest, self.device = tokens, longest, device
        C, size = tokens.n_cells, np.arange(longest)
        self.n_sized = C * longest**2
        self.n_segments = tokens.n_tokens + self.n_sized
        self.width = tokens.n_target[tokens.pair]
        self.rows_left = tokens.n_source[tokens.pair] - tokens.m
        here = np.arange(C)
        self.down = [np.where(self.rows_left > i, here + i * self.width, C) for i in range(longest)]
        up = [np.where(tokens.m >= i, here - i * self.width, C) for i in range(longest)]
        self._down, self._up = ([torch.as_tensor(x, device=device) for x in way] for way in (self.down, up))
        # [D, D, C] whether a segment and span of each size can begin at each cell.
        self.fits = (self.rows_left > size[:, None, None]) & (self.width - tokens.n > size[:, None])
        self.distinct: np.ndarray = np.unique(tokens.n_target)
        states = self.distinct + 1
        self.edge_start, self.outer_start = starts(states**2), starts(states)
        self.n_edges, self.n_starts = int((states**2).sum()), int(states.sum())

    def pooled(self, link: Tensor, share: Tensor) -> Tensor:
        """[D, D, C] the sum of the cells [C] of each segment and span, weighted by `share` [D] of the span's size.

        Entries that do not fit hold arbitrary values.
        """
        D, C = self.longest, self.tokens.n_cells
        padded = torch.cat([link, link.new_zeros(D + 1)])
        columns = torch.stack([padded[k : k + C] for k in range(D)])
        return self.over_rows(columns.cumsum(0) * share[:, None])

    def over_rows(self, spans: Tensor) -> Tensor:
        """[D, D, C] sums over the rows of each segment, of values [D, C] of one token and a span of each size."""
        padded = torch.cat([spans, spans.new_zeros(len(spans), 1)], 1)
        return torch.stack([padded.index_select(1, down) for down in self._down]).cumsum(0)

    def unpooled(self, segments: Tensor, share: Tensor) -> Tensor:
        """[C] the transpose of `pooled`; entries that do not fit must be 0."""
        D, C = self.longest, self.tokens.n_cells
        larger = segments.flip(0).cumsum(0).flip(0)  # [i, k, C]: of all sizes that have a row i
        larger = torch.cat([larger, larger.new_zeros(D, D, 1)], 2)
        rows = torch.stack([larger[i].index_select(1, up) for i, up in enumerate(self._up)]).sum(0)  # [k, C]
        rows = (rows * share[:, None]).flip(0).cumsum(0).flip(0)  # [j, C]: of all sizes that have a column j
        out = segments.new_zeros(C)
        for j in range(min(D, C)):
            out[j:] += rows[j, : C - j]
        return out

    def entries(self, paths: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where paths, one a pair, take their scores: entries of the flat segments, edges, starts and ends."""
        D, of = self.longest, self.tokens
        pair = run_of(np.array([len(path) for path in paths]))
        m, size, state, span = np.concatenate(paths).T
        cell = of.cell_start[pair] + m * of.n_target[pair] + state - 1
        linked = of.n_tokens + ((size - 1) * D + span - 1) * of.n_cells + cell
        segments = np.where(state == 0, of.source_start[pair] + m, linked)
        which, last = np.searchsorted(self.distinct, of.n_target[pair]), state + span - 1
        inner, first = np.flatnonzero(m > 0), np.flatnonzero(m == 0)
        edges = self.edge_start[which[inner]] + last[inner - 1] * (of.n_target[pair[inner]] + 1) + state[inner]
        ending = np.flatnonzero(m + size == of.n_source[pair])
        outer = self.outer_start[which]
        return segments, edges, outer[first] + state[first], outer[ending] + last[ending]


class GoldSegments(NamedTuple):
    """`path` [n, 4]; `spans` [M, 2] of each token, (0, 0) for NULL; `dropped` gold links are in no segment."""

    path: np.ndarray
    spans: np.ndarray
    dropped: int


def gold_segments(alignment: Alignment, longest: int, policy: str = "monotone") -> GoldSegments:
    """The path that an alignment trains.

    Each token keeps its longest run of targets, of at most `longest`; `policy` chooses among equally long runs.
    Adjacent tokens with the same span form one segment, up to `longest` tokens.
    """
    targets: dict[int, list[int]] = {}
    for i, j in alignment.links:
        targets.setdefault(i, []).append(j)
    runs = {i: _longest_runs(js, longest) for i, js in targets.items()}
    starts = [(i, [first for first, _ in of]) for i, of in runs.items()]
    chosen = POLICIES[policy](starts, alignment.n_source, alignment.n_target)
    spans = np.zeros((alignment.n_source, 2), dtype=np.int64)
    for (i, of), first in zip(runs.items(), chosen, strict=True):
        spans[i] = next(run for run in of if run[0] == first)
    path: list[list[int]] = []
    for i, (first, past) in enumerate(spans.tolist()):
        span = [first + 1, past - first] if past else [0, 1]
        if past and path and path[-1][2:] == span and path[-1][1] < longest:
            path[-1][1] += 1
        else:
            path.append([i, 1, *span])
    dropped = len(alignment.sure) - int((spans[:, 1] - spans[:, 0]).sum())
    return GoldSegments(np.array(path, dtype=np.int64).reshape(-1, 4), spans, dropped)


def _longest_runs(js: list[int], longest: int) -> list[Span]:
    """Return the longest runs of consecutive numbers, and cut those that are longer than `longest`."""
    runs: list[list[int]] = []
    for j in js:
        if runs and runs[-1][-1] == j - 1 and len(runs[-1]) < longest:
            runs[-1].append(j)
        else:
            runs.append([j])
    most = max(map(len, runs))
    return [(run[0], run[-1] + 1) for run in runs if len(run) == most]


def links_of(path: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The links of segments [n, 4]: for each link its segment, its source token and its target token."""
    _, size, state, span = path.T
    count = np.where(state > 0, size * span, 0)
    of, number = run_of(count), positions(count)
    return of, path[of, 0] + number // span[of], state[of] - 1 + number % span[of]
