"""Exact inference for semi-Markov chains: segments of up to D positions, each taking a span of up to D states.

In come a batch's scores as a `SemiLattice`; out go log Z, expected counts, and best paths. Everything is in log
space: a step multiplies matrices of exponentials. Those of segments are shifted by their maxima, so segments may
score anything; edges stay within 700 of 0. State 0 is NULL. An edge goes from the last state of one span to the
first state of the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NOTHING = -1e30  # the log of next to nothing: unlike -inf, it may be subtracted from itself


@dataclass(frozen=True)
class SemiLattice:
    """Chains in R rows: G groups one after the other, each with one table.

    `ending`    [T, D, R, D, W] segments by last position and last state: entry [t, D-1-l, r, D-1-k, e] scores the
                segment of l + 1 positions that ends with position t on the span of k + 1 states that ends with e.
    `beginning` [T, D, R, D, W] the same scores by first position and state: entry [t, l, r, k, s].
    `edge`      [G, W, W];  `start`, `end`  [G, W];  `lengths`  [R], 0 where a row is empty.
    What does not exist scores NOTHING.
    """

    ending: Tensor
    beginning: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """T, D, R, W."""
        T, D, R, _, W = self.ending.shape
        return T, D, R, W

    def per_row(self, of_groups: Tensor) -> Tensor:
        """[G, ...] to [R, ...]."""
        return of_groups.repeat_interleave(len(self.lengths) // len(of_groups), 0)


@dataclass(frozen=True)
class SemiCounts:
    """Expected counts: `segment` as SemiLattice.beginning, `edge` [G, W, W], `start` and `end` [G, W]."""

    segment: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor


@dataclass(frozen=True)
class Sums:
    """`after` [T + 1, R, W]: all ways to have done t positions, the last span ending with a state (none at 0).
    `before` [T + D, R, W + D - 1], with margins of D - 1: the same with an edge to a state that begins a span.
    """

    after: Tensor
    before: Tensor


def forward(x: SemiLattice, best: bool = False) -> Sums:
    """Sums over paths; with `best` the best path's score in place of each sum."""
    T, D, R, W = x.shape
    before = x.ending.new_full((T + D, R, W + D - 1), NOTHING)
    after = x.ending.new_full((T + 1, R, W), NOTHING)
    before[D - 1, :, D - 1 :] = x.per_row(x.start)
    reduce, step = (_best, _best_step) if best else (_sum, _step)
    table = x.edge if best else x.edge.exp()
    for t in range(T):
        window = before[t : t + D].unfold(2, W, 1)  # [D, R, D, W]
        after[t + 1] = reduce(window + x.ending[t])
        if t + 1 < T:
            before[t + D, :, D - 1 :] = step(after[t + 1], table)
    return Sums(after, before)


def log_z(x: SemiLattice, sums: Sums) -> Tensor:
    """[R]; 0 for empty rows, so that they count nothing."""
    row = torch.arange(len(x.lengths), device=x.lengths.device)
    ends = torch.logsumexp(sums.after[x.lengths, row] + x.per_row(x.end), 1)
    return torch.where(x.lengths > 0, ends, 0.0)


def counts(x: SemiLattice, sums: Sums, z: Tensor) -> SemiCounts:
    """Chances of segments, and expected numbers of edges, starts and ends."""
    T, D, R, W = x.shape
    end = x.per_row(x.end)
    ahead, following = _ahead(x, end)
    segment = ahead.unfold(0, T, 1)[1:].unfold(2, W, 1)  # [D, R, D, T, W]: some positions and some states later
    segment = segment.permute(3, 0, 1, 2, 4) + x.beginning  # [T, D, R, D, W]
    first = sums.before[D - 1 : D - 1 + T, :, D - 1 :] - z[:, None]
    segment = segment.add_(first[:, None, :, None, :]).exp_()
    G = len(x.edge)
    begun = (x.per_row(x.start) + following[0] - z[:, None]).exp()
    row = torch.arange(R, device=z.device)
    ended = (sums.after[x.lengths, row] + end - z[:, None]).exp()
    start, finish = (y.view(G, -1, W).sum(1) for y in (begun, ended))
    return SemiCounts(segment, _edges(x, sums.after[1:T], following[1:], z), start, finish)


def _ahead(x: SemiLattice, end: Tensor) -> tuple[Tensor, Tensor]:
    """[T + D, R, W + D - 1] all that may follow t positions when the last span ends with a state, and [T, R, W]
    when the next one begins with one."""
    T, D, R, W = x.shape
    ahead = x.ending.new_full((T + D, R, W + D - 1), NOTHING)
    following = x.ending.new_empty((T, R, W))
    turned, go_on = x.edge.transpose(1, 2).exp(), ahead[T, :, :W]
    for t in range(T - 1, -1, -1):
        ahead[t + 1, :, :W] = torch.where((x.lengths == t + 1)[:, None], end, go_on)
        window = ahead[t + 1 : t + 1 + D].unfold(2, W, 1)  # [D, R, D, W]
        following[t] = _sum(window + x.beginning[t])
        if t:
            go_on = _step(following[t], turned)
    return ahead, following


def _edges(x: SemiLattice, after: Tensor, following: Tensor, z: Tensor) -> Tensor:
    """[G, W, W] from what stands before and after each boundary [T - 1, R, W]."""
    G, W = x.edge.shape[:2]
    left, right = after.amax(2, keepdim=True), following.amax(2, keepdim=True)
    of_left = (after - left).exp()
    of_right = (following - right).exp().mul_((left + right - z[:, None]).exp())
    shape = (len(after), G, len(z) // G, W)
    of_left, of_right = (y.view(shape).transpose(0, 1).flatten(1, 2) for y in (of_left, of_right))
    return torch.bmm(of_left.transpose(1, 2), of_right).mul_(x.edge.exp())


def _best(scores: Tensor) -> Tensor:
    """[R, W] over the sizes of [D, R, D, W]."""
    return scores.amax(0).amax(1)


def _sum(scores: Tensor) -> Tensor:
    """The same of sums in log space; it takes the scores' room."""
    top = _best(scores)
    # Summed over one dimension after the other, which is faster than over both.
    return scores.sub_(top[:, None]).exp_().sum(0).sum(1).log_().add_(top)


def _step(scores: Tensor, table: Tensor) -> Tensor:
    """[R, W] through exponentials [G, W, W]."""
    top = scores.amax(1, keepdim=True)
    sums = torch.bmm((scores - top).exp().view(len(table), -1, table.shape[1]), table)
    return sums.view_as(scores).log().clamp_min(NOTHING).add_(top)


def _best_step(scores: Tensor, table: Tensor) -> Tensor:
    of_groups = scores.view(len(table), -1, 1, table.shape[1])
    # A row at a time, for [rows, W, W] may be far larger than the lattice.
    rows = [(row + table.transpose(1, 2)).amax(2) for row in of_groups.unbind(1)]
    return torch.stack(rows, 1).view_as(scores)


@torch.no_grad()
def best_segments(x: SemiLattice) -> tuple[Tensor, Tensor]:
    """The best path of each row: its segments [n, 5] as (row, first position, positions, first state, states), and
    its score [R], which of an empty row means nothing. Ties go to longer segments, then longer spans, then smaller
    states."""
    T, D, R, W = x.shape
    sums = forward(x, best=True)
    row = torch.arange(R, device=x.lengths.device)
    group = row // max(R // len(x.edge), 1)
    ends = sums.after[x.lengths, row] + x.per_row(x.end)
    score, state = ends.max(1)
    done, found = x.lengths.clone(), []
    while (alive := torch.nonzero(done > 0).squeeze(1)).numel():
        t, e = done[alive], state[alive]
        back = torch.arange(D, device=t.device)
        window = sums.before[
            (t[:, None] - 1 + back)[:, :, None], alive[:, None, None], (e[:, None] + back)[:, None, :]
        ]
        choice = (window + x.ending[t - 1, :, alive, :, e]).flatten(1).argmax(1)
        size, span = D - choice // D, D - choice % D
        first = e - span + 1
        found.append(torch.stack([alive, t - size, size, first, span], 1))
        done[alive] = t - size
        came = sums.after[t - size, alive] + x.edge[group[alive], :, first]
        state[alive] = came.argmax(1)
    return torch.cat(found), score
