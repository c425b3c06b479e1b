"""The best paths: Viterbi, k-best, posterior decoding. Re-exported by inference.py.

In comes `Potentials` (or posteriors); out go state sequences, -1 past each chain's length. Ties go to the smallest
state of the last position, then of the one before it, and so on.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .potentials import Potentials


@torch.no_grad()
def viterbi(p: Potentials) -> tuple[Tensor, Tensor]:
    """The best path of each chain, [B, M] states, and its score [B].

    No back-pointers are kept: the best scores per state are, and the way back looks each predecessor up again
    along one path, which is S times less work than finding it for every state.
    """
    B, M, S = p.shape
    if M == 0 or B == 0:
        return p.table.new_full((B, M), -1), p.node.new_zeros(B)
    delta = _best_scores(p)  # [M, B, S+1]
    into = p.edge.new_full((len(p.edge), S + 1, S + 1), -torch.inf)  # previous state last
    into[:, :S, :S], into[:, S, :S], into[:, S, S] = p.edge.transpose(1, 2), p.end, 0.0
    into, base = into.flatten(0, 1), p.table * (S + 1)
    states, row, scores = p.table.new_empty(M, B), base + S, torch.empty_like(delta[0])
    for best, state in zip(delta.unbind(0)[::-1], states.unbind(0)[::-1], strict=True):
        torch.index_select(into, 0, row, out=scores)
        torch.argmax(scores.add_(best), 1, out=state)
        torch.add(base, state, out=row)
    chain = torch.arange(B, device=p.table.device)
    ends = delta[(p.lengths - 1).clamp_min(0), chain, :S] + p.end[p.table]
    return states.masked_fill_(states == S, -1).t(), torch.where(p.lengths > 0, ends.amax(1), 0.0)


def _best_scores(p: Potentials) -> Tensor:
    """[M, B, S+1] the best score of any path that ends in a state; state S is the boundary, where a chain is once
    past its length and nowhere else, so that the way back needs no masks."""
    B, M, S = p.shape
    step = pad(p.edge.transpose(0, 1), (0, 1), value=-torch.inf)  # [S, U, S+1], previous state first:
    if len(p.edge) > 1:  # reducing over the outermost dimension is fastest
        step = step.index_select(1, p.table)
    delta = p.node.new_full((M, B, S + 1), -torch.inf)
    delta[:, :, :S] = p.node.transpose(0, 1)
    delta[0, :, :S] += p.start[p.table]
    sums, best = delta.new_empty(S, B, S + 1), torch.empty_like(delta[0])
    steps = delta.unbind(0)
    before = delta[:, :, :S].transpose(1, 2).unsqueeze(3).unbind(0)  # each [S, B, 1]
    for t in range(1, M):
        torch.add(before[t - 1], step, out=sums)
        torch.amax(sums, 0, out=best)
        steps[t].add_(best)
    past = torch.arange(M, device=p.lengths.device)[:, None] >= p.lengths  # [M, B]
    delta[:, :, S].masked_fill_(past, 0.0)
    return delta


def path_score(p: Potentials, states: Tensor) -> Tensor:
    """[B] the score of each chain's path in `states` [B, M]; differentiable; ignores what is past the length."""
    B, M, S = p.shape
    if M == 0 or B == 0:
        return p.node.new_zeros(B)
    position = torch.arange(M, device=p.node.device)
    inside = position < p.lengths[:, None]  # [B, M]
    safe = torch.where(inside, states, 0)
    node = torch.where(inside, p.node.gather(2, safe.unsqueeze(2)).squeeze(2), 0.0).sum(1)
    steps = ((p.table[:, None] * S + safe[:, :-1]) * S + safe[:, 1:]).reshape(-1)  # [B*(M-1)]
    edge = p.edge.reshape(-1).index_select(0, steps).view(B, M - 1)
    edge = torch.where(inside[:, 1:], edge, 0.0).sum(1)
    some = p.lengths > 0
    last = safe.gather(1, (p.lengths - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
    outer = p.start.reshape(-1).index_select(0, p.table * S + safe[:, 0])
    outer = outer + p.end.reshape(-1).index_select(0, p.table * S + last)
    return node + edge + torch.where(some, outer, 0.0)


@torch.no_grad()
def kbest(p: Potentials, k: int) -> tuple[Tensor, Tensor]:
    """The k best paths of each chain, best first: states [B, k, M] and scores [B, k].

    Where a chain has fewer than k paths the rest score -inf and their states are -1.
    """
    if k < 1:
        raise ValueError(f"kbest needs k of at least 1, not {k}")
    B, M, S = p.shape
    if M == 0 or B == 0:
        scores = p.node.new_full((B, k), -torch.inf)
        scores[:, 0] = 0.0
        return p.table.new_full((B, k, M), -1), scores
    bound = min(k, S**M if M < 64 else k)
    delta = p.node.new_full((B, S, bound), -torch.inf)
    delta[:, :, 0] = p.start[p.table] + p.node[:, 0]
    edge = p.edge.transpose(1, 2)[p.table]  # [B, S, S] previous last
    compact = torch.int16 if S * bound < 2**15 else torch.int32
    back = torch.empty(M, B, S, bound, dtype=compact, device=p.node.device)
    best, where = _k_ends(p, delta, 0)
    for t in range(1, M):
        sums = delta[:, None, :, :] + edge[:, :, :, None]  # [B, S, S', k]
        delta, index = sums.flatten(2).topk(bound, dim=2)
        back[t] = index.to(compact)
        delta = delta + p.node[:, t, :, None]
        ends = _k_ends(p, delta, t)
        here = (p.lengths == t + 1)[:, None]
        best, where = torch.where(here, ends[0], best), torch.where(here, ends[1], where)
    return _k_paths(p, back, best, where, k)


def _k_ends(p: Potentials, delta: Tensor, t: int) -> tuple[Tensor, Tensor]:
    """The k best of the S*k paths at time t, with their end scores: scores and places in S*k, [B, k] each."""
    return (delta + p.end[p.table].unsqueeze(2)).flatten(1).topk(delta.shape[2], dim=1)


def _k_paths(p: Potentials, back: Tensor, best: Tensor, where: Tensor, k: int) -> tuple[Tensor, Tensor]:
    M, B, S, bound = back.shape
    states = where.new_full((M, B, k), -1)
    place = where
    for t in range(M - 1, -1, -1):
        inside = (t < p.lengths)[:, None]
        states[t, :, :bound] = torch.where(inside, place // bound, -1)
        if t:
            moved = back[t].flatten(1).gather(1, place).long()  # [B, k]
            place = torch.where((t < p.lengths)[:, None], moved, place)
    scores = best.new_full((B, k), -torch.inf)
    scores[:, :bound] = best
    empty = p.lengths == 0
    scores[empty, 0] = 0.0
    scores[empty, 1:] = -torch.inf
    states = torch.where(scores.isinf(), -1, states)
    return states.permute(1, 2, 0), scores


def posterior_decode(node: Tensor, lengths: Tensor) -> Tensor:
    """[B, M] the likeliest state of each position, from node marginals; -1 past the length."""
    inside = torch.arange(node.shape[1], device=node.device) < lengths[:, None]
    return torch.where(inside, node.argmax(2), -1) if node.shape[1] else lengths.new_empty(node.shape[:2])
