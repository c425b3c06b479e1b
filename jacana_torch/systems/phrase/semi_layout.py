"""Where segments and their spans stand: flat scores of many pairs to the lattices of semi.py, and counts back.

Lengths of pairs go in. The flat segments are the NULLs (one a source token), then for each size (l, k), source
tokens first, one entry a link cell: the segment of l + 1 tokens and the span of k + 1 that begin there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...crf.bucketed import Bucket
from ...crf.groups import Groups, group_rows
from ...crf.layout import Layout
from .semi_markov import NOTHING, SemiCounts, SemiLattice


@dataclass(frozen=True)
class SemiBucket:
    """Pairs of similar size, in the rows of `groups`. `ending` and `beginning` say which entry of the flat
    segments is in each place of the lattice, `known` which places of `beginning` hold one at all."""

    bucket: Bucket
    groups: Groups
    lengths: Tensor
    ending: Tensor
    beginning: Tensor
    known: Tensor

    def lattice(self, segments: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> SemiLattice:
        """From flat vectors, each with an entry NOTHING at its end."""
        tables = ((edges, self.bucket.edge), (starts, self.bucket.start), (ends, self.bucket.start))
        edge, start, end = (self.groups.per_group(flat[place]) for flat, place in tables)
        ending, beginning = (_taken(segments, place) for place in (self.ending, self.beginning))
        return SemiLattice(ending, beginning, edge, start, end, self.lengths)

    def add(self, counts: SemiCounts, segments: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> None:
        """Counts into flat vectors; of the segments no other bucket has any, of the steps it may."""
        entry = self.beginning.view(-1).index_select(0, self.known)
        segments.index_copy_(0, entry, counts.segment.reshape(-1).index_select(0, self.known))
        kinds = ((counts.edge, edges, self.bucket.edge), (counts.start, starts, self.bucket.start),
                 (counts.end, ends, self.bucket.start))  # fmt: skip
        for found, flat, place in kinds:
            flat.index_add_(0, place.reshape(-1), self.groups.per_table(found, len(place)).reshape(-1))

    def pair_of_row(self) -> np.ndarray:
        """[R] which pair is in each row, -1 where none is."""
        pairs = torch.as_tensor(self.bucket.pairs, device=self.lengths.device)
        return self.groups.scatter(pairs, -1).cpu().numpy()


def _taken(flat: Tensor, place: Tensor) -> Tensor:
    return flat.index_select(0, place.view(-1)).view(place.shape)


class SemiLayout:
    """Buckets over pairs of the given lengths, for segments and spans of up to `longest` tokens."""

    def __init__(
        self, n_source: np.ndarray, n_target: np.ndarray, longest: int, max_cells: int, device: str
    ) -> None:
        self.longest, self.device = longest, device
        self.tokens = Layout(n_source, n_target, max(max_cells // longest**2, 1), device)
        self.n_sized = self.tokens.n_cells * longest**2
        self.n_segments = self.tokens.n_tokens + self.n_sized
        self.buckets = [self._bucket(bucket) for bucket in self.tokens.buckets]
        width = np.repeat(n_target, n_source * n_target)
        cell = np.arange(self.tokens.n_cells) - np.repeat(self.tokens.cell_start, n_source * n_target)
        self.width, self.m, self.n = width, cell // width, cell % width
        self.rows_left = np.repeat(n_source, n_source * n_target) - self.m
        here, nowhere = np.arange(self.tokens.n_cells), self.tokens.n_cells
        # [C] the cell i rows below or above each; the entry past the last where there is none.
        self.down = [np.where(self.rows_left > i, here + i * self.width, nowhere) for i in range(longest)]
        up = [np.where(self.m >= i, here - i * self.width, nowhere) for i in range(longest)]
        self._down, self._up = [self._tensor(x) for x in self.down], [self._tensor(x) for x in up]

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, device=self.device)

    def _bucket(self, bucket: Bucket) -> SemiBucket:
        groups = group_rows(bucket.table, len(bucket.edge))
        pairs = groups.scatter(torch.as_tensor(bucket.pairs, device=self.device), -1).cpu().numpy()
        lengths = np.where(pairs < 0, 0, self.tokens.n_source[pairs])
        beginning = self._places(pairs, lengths, bucket, ends=False)
        known = np.flatnonzero(beginning.reshape(-1) < self.n_segments)
        ending = self._places(pairs, lengths, bucket, ends=True)
        return SemiBucket(bucket, groups, *map(self._tensor, (lengths, ending, beginning, known)))

    def _places(self, pairs: np.ndarray, lengths: np.ndarray, bucket: Bucket, ends: bool) -> np.ndarray:
        """[T, D, R, D, W] entries of the flat segments; see semi.SemiLattice."""
        D, n_target = self.longest, np.where(pairs < 0, 0, self.tokens.n_target[pairs])[:, None, None]
        shape = (bucket.node.shape[1], D, len(pairs), D, bucket.edge.shape[1])
        t, size, _, span, s = np.ogrid[tuple(slice(length) for length in shape)]
        size, span = (D - 1 - size, D - 1 - span) if ends else (size, span)  # less one
        m, n = (t - size, s - 1 - span) if ends else (t, s - 1)  # the first token and target token
        lengths, row = lengths[:, None, None], np.maximum(pairs, 0)[:, None, None]
        cell = self.tokens.cell_start[row] + m * n_target + n
        linked = self.tokens.n_tokens + (size * D + span) * self.tokens.n_cells + cell
        inside = (m >= 0) & (m + size < lengths) & (n >= 0) & (n + span < n_target)
        null = (s == 0) & (size == 0) & (span == 0) & (t < lengths)
        return np.where(null, self.tokens.token_start[row] + t, np.where(inside, linked, self.n_segments))

    # Cells and the segments that they are part of

    def fits(self) -> np.ndarray:
        """[D, D, C] whether a segment and span of each size can begin at each cell."""
        size = np.arange(self.longest)
        return (self.rows_left > size[:, None, None]) & (self.width - self.n > size[:, None])

    def pooled(self, link: Tensor, share: Tensor) -> Tensor:
        """[D, D, C] what the cells of each segment and span sum up to, each counting by `share` [D] of the span's
        size; entries that do not fit hold anything."""
        D, C = self.longest, self.tokens.n_cells
        padded = torch.cat([link, link.new_zeros(D + 1)])
        columns = torch.stack([padded[k : k + C] for k in range(D)])
        return self.stacked(columns.cumsum(0) * share[:, None])

    def stacked(self, spans: Tensor) -> Tensor:
        """[D, C] what is said of one token and a span of each size; [D, D, C] its sums over segments."""
        padded = torch.cat([spans, spans.new_zeros(len(spans), 1)], 1)
        return torch.stack([padded.index_select(1, down) for down in self._down]).cumsum(0)

    def unpooled(self, segments: Tensor, share: Tensor) -> Tensor:
        """[C] the transpose of `pooled`; entries that do not fit must be 0."""
        D, C = self.longest, self.tokens.n_cells
        later = segments.flip(0).cumsum(0).flip(0)  # [i, k, C]: of all sizes that have a row i
        later = torch.cat([later, later.new_zeros(D, D, 1)], 2)
        rows = torch.stack([later[i].index_select(1, up) for i, up in enumerate(self._up)]).sum(0)  # [k, C]
        rows = (rows * share[:, None]).flip(0).cumsum(0).flip(0)  # [j, C]: of all sizes that have a column j
        out = torch.zeros(C, dtype=segments.dtype, device=segments.device)
        for j in range(min(D, C)):
            out[j:] += rows[j, : C - j]
        return out

    def entries(self, segments: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where paths go: entries of the flat segments, edges, starts and ends. A path is segments [n, 4] in
        order: first token, tokens, first state (0: NULL), states."""
        D, of = self.longest, self.tokens
        pair = np.repeat(np.arange(len(segments)), [len(path) for path in segments])
        m, size, state, span = np.concatenate(segments).T
        cell = of.cell_start[pair] + m * of.n_target[pair] + state - 1
        linked = of.n_tokens + ((size - 1) * D + span - 1) * of.n_cells + cell
        flat = np.where(state == 0, of.token_start[pair] + m, linked)
        which, last = np.searchsorted(of.distinct, of.n_target[pair]), state + span - 1
        inner = np.flatnonzero(m > 0)
        edges = of.edge_start[which[inner]] + last[inner - 1] * (of.n_target[pair[inner]] + 1) + state[inner]
        ending = np.flatnonzero(m + size == of.n_source[pair])
        first = np.flatnonzero(m == 0)
        starts = of.first_start[which]
        return flat, edges, starts[first] + state[first], starts[ending] + last[ending]


def padded_flat(*flat: Tensor) -> tuple[Tensor, ...]:
    """Flat vectors with what does not exist at their ends."""
    return tuple(torch.cat([x, x.new_full((1,), NOTHING)]) for x in flat)
