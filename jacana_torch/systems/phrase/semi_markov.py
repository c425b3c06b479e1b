"""Exact inference for semi-Markov chains: segments of up to D positions that take spans of up to D states.

State 0 is NULL, which takes single positions. An edge goes from the last state of one span to the first state of
the next. Everything is in log space, and a step multiplies matrices of exponentials. Segments are shifted by their
maxima, so their scores may be of any size; edge scores must stay within 700 of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...util.batches import like_sizes
from .segments import Segments

NOTHING = -1e30  # the log of next to nothing: unlike -inf, it may be subtracted from itself


@dataclass(frozen=True)
class SemiLattice:
    """Scores of R chains of up to T positions and W states. Whatever does not exist scores NOTHING.

    `segment`  [D, D, T, R, W]: entry (l, k, t, r, s) begins at position t and state s, with l + 1 positions and
               k + 1 states.
    `edge` [R, W, W], `start` and `end` [R, W], `lengths` [R].
    """

    segment: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor

    def ending(self) -> Tensor:
        """[T, D, D, R, W] the segments by last position and last state: entry (t, D-1-l, D-1-k, r, e)."""
        D, _, T, R, W = self.segment.shape
        out = self.segment.new_full((T, D, D, R, W), NOTHING)
        for l, k in np.ndindex(min(D, T), min(D, W)):  # noqa: E741
            out[l:, D - 1 - l, D - 1 - k, :, k:] = self.segment[l, k, : T - l, :, : W - k]
        return out


@dataclass(frozen=True)
class SemiCounts:
    """`log_z` [R], and expected counts in the shapes of a lattice's scores."""

    log_z: Tensor
    segment: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor


def forward(x: SemiLattice, ending: Tensor, best: bool = False) -> tuple[Tensor, Tensor]:
    """Sums over partial paths, or with `best` their maxima, as `before` and `after`.

    `after` [T + 1, R, W]: all ways to cover t positions, the last span ending with a state (NOTHING at t = 0).
    `before` [T + D - 1, R, W + D - 1], with margins of D - 1: the same, with an edge to a span's first state.
    """
    D, _, T, R, W = x.segment.shape
    before = x.segment.new_full((T + D - 1, R, W + D - 1), NOTHING)
    after = x.segment.new_full((T + 1, R, W), NOTHING)
    before[D - 1, :, D - 1 :] = x.start
    edge = x.edge if best else x.edge.exp()
    for t in range(T):
        window = before[t : t + D].unfold(2, W, 1).transpose(1, 2)  # [D, D, R, W]
        scores = (window + ending[t]).flatten(0, 1)
        after[t + 1] = scores.amax(0) if best else _log_sum(scores)
        if t + 1 < T:
            step = (after[t + 1, :, :, None] + edge).amax(1) if best else _step(after[t + 1], edge)
            before[t + D, :, D - 1 :] = step
    return before, after


def _log_sum(scores: Tensor) -> Tensor:
    """logsumexp over the first dimension, which overwrites the scores."""
    top = scores.amax(0)
    return scores.sub_(top).exp_().sum(0).log_().add_(top)


def _step(scores: Tensor, table: Tensor) -> Tensor:
    """[R, W] one transition in log space, by a table [R, W, W] of exponentials."""
    top = scores.amax(1, keepdim=True)
    sums = torch.bmm((scores - top).exp_()[:, None], table)[:, 0]
    return sums.log_().clamp_min_(NOTHING).add_(top)


def counts(x: SemiLattice) -> SemiCounts:
    """Forward-backward."""
    D, _, T, R, W = x.segment.shape
    before, after = forward(x, x.ending())
    row = torch.arange(R, device=x.lengths.device)
    z = torch.logsumexp(after[x.lengths, row] + x.end, 1)
    ahead, following = _backward(x)
    begun = before[D - 1 :, :, D - 1 :] - z[:, None]  # [T, R, W]
    segment = ahead[1:].unfold(0, T, 1).unfold(2, W, 1)  # [D, R, D, T, W], some positions and some states later
    segment = segment.permute(0, 2, 3, 1, 4) + x.segment
    segment = segment.add_(begun).exp_()
    start = (x.start + following[0] - z[:, None]).exp()
    end = (after[x.lengths, row] + x.end - z[:, None]).exp()
    return SemiCounts(z, segment, _edges(x, after[1:T], following[1:], z), start, end)


def _backward(x: SemiLattice) -> tuple[Tensor, Tensor]:
    """`ahead` [T + D, R, W + D - 1], all that may follow t positions when the last span ends with a state, and
    `following` [T, R, W], when the next one begins with a state."""
    D, _, T, R, W = x.segment.shape
    ahead = x.segment.new_full((T + D, R, W + D - 1), NOTHING)
    following = x.segment.new_empty((T, R, W))
    turned, go_on = x.edge.transpose(1, 2).exp(), ahead[T, :, :W]
    for t in range(T - 1, -1, -1):
        ahead[t + 1, :, :W] = torch.where((x.lengths == t + 1)[:, None], x.end, go_on)
        window = ahead[t + 1 : t + 1 + D].unfold(2, W, 1).transpose(1, 2)  # [D, D, R, W]
        following[t] = _log_sum((window + x.segment[:, :, t]).flatten(0, 1))
        if t:
            go_on = _step(following[t], turned)
    return ahead, following


def _edges(x: SemiLattice, after: Tensor, following: Tensor, z: Tensor) -> Tensor:
    """[R, W, W] expected edges, from the sums before and after each boundary [T - 1, R, W]."""
    left, right = after.amax(2, keepdim=True), following.amax(2, keepdim=True)
    of_left = (after - left).exp_()
    of_right = (following - right).exp_().mul_((left + right - z[:, None]).exp_())
    return torch.bmm(of_left.permute(1, 2, 0), of_right.transpose(0, 1)).mul_(x.edge.exp())


def best_segments(x: SemiLattice) -> tuple[Tensor, Tensor]:
    """The best path of each row: segments [n, 5] as (row, first position, positions, first state, states), in no
    order, and the scores [R]. Ties go to longer segments, then longer spans, then smaller states."""
    D = len(x.segment)
    ending = x.ending()
    before, after = forward(x, ending, best=True)
    row = torch.arange(len(x.lengths), device=x.lengths.device)
    score, state = (after[x.lengths, row] + x.end).max(1)
    done, found, back = x.lengths.clone(), [], torch.arange(D, device=x.lengths.device)
    while (alive := torch.nonzero(done > 0).squeeze(1)).numel():
        t, e = done[alive], state[alive]
        steps = (t[:, None] - 1 + back)[:, :, None], alive[:, None, None], (e[:, None] + back)[:, None, :]
        choice = (before[steps] + ending[t - 1, :, :, alive, e]).flatten(1).argmax(1)
        size, span = D - choice // D, D - choice % D
        first = e - span + 1
        found.append(torch.stack([alive, t - size, size, first, span], 1))
        done[alive] = t - size
        state[alive] = (after[t - size, alive] + x.edge[alive, :, first]).argmax(1)
    return torch.cat(found), score


@dataclass(frozen=True)
class Batch:
    """Where R pairs of similar size take their scores: entries of the flat vectors, their lengths for padding.

    With at most T positions and W states: `cell` [T, R, W - 1] points to scores of cells, `token` [T, R] to those
    of NULLs, `edge` [R, W, W] to those of edges, and `outer` [R, W] to those of starts and ends.
    """

    pairs: np.ndarray
    cell: Tensor
    token: Tensor
    edge: Tensor
    outer: Tensor
    lengths: Tensor


class SemiMarkov:
    """Inference over the flat scores of many pairs, in batches of at most `max_cells` lattice entries."""

    def __init__(self, segments: Segments, max_cells: int) -> None:
        self.segments, of, D = segments, segments.tokens, segments.longest
        rows = np.maximum(of.n_source, of.n_target // D**2)  # a row also has a table of edges
        self.batches = [self._batch(pairs) for pairs in like_sizes(rows, of.n_target, max(max_cells // D**2, 1))]
        self._fits = torch.as_tensor(segments.fits, device=segments.device)

    def _batch(self, pairs: np.ndarray) -> Batch:
        segments, of = self.segments, self.segments.tokens
        m, n = of.n_source[pairs], of.n_target[pairs]
        t, s = np.arange(m.max()), np.arange(n.max() + 1)
        inside = (t[:, None] < m)[:, :, None] & (s[:-1] < n[:, None])  # [T, R, W - 1]
        cell = of.cell_start[pairs][:, None] + t[:, None, None] * n[:, None] + s[:-1]
        which = np.searchsorted(segments.distinct, n)[:, None]
        real = s <= n[:, None]  # [R, W]
        edge = segments.edge_start[which][:, :, None] + s[:, None] * (n[:, None, None] + 1) + s
        places = (
            np.where(inside, cell, of.n_cells),
            np.where(t[:, None] < m, of.source_start[pairs] + t[:, None], of.n_tokens),
            np.where(real[:, :, None] & real[:, None], edge, segments.n_edges),
            np.where(real, segments.outer_start[which] + s, segments.n_starts),
        )
        return Batch(pairs, *(torch.as_tensor(x, device=segments.device) for x in (*places, m)))

    def padded(self, segments: Tensor, *steps: Tensor) -> tuple[Tensor, ...]:
        """Flat scores with a last entry NOTHING each: NULLs, sized segments [D, D, C + 1], edges, starts, ends."""
        D, of = self.segments.longest, self.segments.tokens
        null, sized = segments[: of.n_tokens], segments[of.n_tokens :].view(D, D, -1)
        flat = null, sized.where(self._fits, NOTHING), *steps
        return tuple(torch.nn.functional.pad(x, (0, 1), value=NOTHING) for x in flat)

    def lattice(self, batch: Batch, padded: tuple[Tensor, ...]) -> SemiLattice:
        null, sized, edges, starts, ends = padded
        T, R, _ = batch.cell.shape
        segment = sized.new_full((*sized.shape[:2], T, R, batch.outer.shape[1]), NOTHING)
        segment[..., 1:] = sized[:, :, batch.cell]
        segment[0, 0, :, :, 0] = null[batch.token]
        return SemiLattice(segment, edges[batch.edge], starts[batch.outer], ends[batch.outer], batch.lengths)

    def expected(self, *flat: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z of each pair [P], and expected counts as flat as the scores: segments, edges, starts, ends."""
        padded = self.padded(*flat)
        null, sized, *steps = out = [torch.zeros_like(x) for x in padded]
        log_z = flat[0].new_zeros(len(self.segments.tokens.n_source))
        for batch in self.batches:
            found = counts(self.lattice(batch, padded))
            log_z[torch.as_tensor(batch.pairs)] = found.log_z
            null[batch.token] = found.segment[0, 0, :, :, 0]
            sized[:, :, batch.cell] = found.segment[..., 1:]
            places = batch.edge, batch.outer, batch.outer
            for total, place, count in zip(steps, places, (found.edge, found.start, found.end), strict=True):
                total.index_add_(0, place.flatten(), count.flatten())
        null, sized, *steps = (x[..., :-1] for x in out)
        return log_z, (torch.cat([null, sized.flatten()]), *steps)

    def best_paths(self, *flat: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pair of each segment [n] in order, the segments [n, 4] of all best paths, and their scores [P]."""
        padded = self.padded(*flat)
        score = np.zeros(len(self.segments.tokens.n_source))
        pairs, paths = [np.zeros(0, np.int64)], [np.zeros((0, 4), np.int64)]
        for batch in self.batches:
            found, best = best_segments(self.lattice(batch, padded))
            rows = found.cpu().numpy()
            score[batch.pairs] = best.cpu().numpy()
            pairs.append(batch.pairs[rows[:, 0]])
            paths.append(rows[:, 1:])
        pair, path = np.concatenate(pairs), np.concatenate(paths)
        order = np.lexsort((path[:, 0], pair))
        return pair[order], path[order], score
