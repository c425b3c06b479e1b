"""From flat scores to padded potentials: where each place of a batch takes its score from.

A layout goes in; out go buckets, or, with flat scores on any device, columns by token and chances by node, as
plain.py has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .buckets import buckets
from .inference import marginals, viterbi
from .layout import Layout
from .potentials import INF, Potentials


@dataclass(frozen=True)
class Bucket:
    """Pairs of similar size. Every place is a number in the flat vectors; padding points at their last entry."""

    pairs: np.ndarray  # [B] which pairs
    node: Tensor  # [B, M, S] into cat(null, link, pad)
    edge: Tensor  # [U, S, S] into cat(edges of all lengths, pad)
    start: Tensor  # [U, S] into cat(starts of all lengths, pad)
    end: Tensor  # [U, S] likewise
    table: Tensor  # [B]
    lengths: Tensor  # [B]
    sizes: Tensor  # [B]

    def potentials(self, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> Potentials:
        """From the flat vectors, each with a padding entry at its end."""
        return Potentials.build(
            node=nodes[self.node],
            edge=_possible(edges, self.edge),
            start=_possible(starts, self.start),
            end=ends[self.end],
            table=self.table,
            lengths=self.lengths,
            sizes=self.sizes,
        )


def _possible(flat: Tensor, place: Tensor) -> Tensor:
    """Scores, and -inf where the padding entry is asked for."""
    return flat[place].masked_fill(place == len(flat) - 1, -INF)


def bucketed(layout: Layout) -> list[Bucket]:
    cut = buckets(layout.n_source, layout.space.size(layout.n_target) - 1, layout.max_cells)
    return [_bucket(layout, pairs) for pairs in cut]


@torch.no_grad()
def best_paths(layout: Layout, flat: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """The column of every source token on its pair's best path, and the score of each path."""
    states = np.zeros(layout.n_tokens, np.int64)
    scores = flat[0].new_zeros(len(layout.n_source))
    for bucket in layout.buckets:
        found, best = viterbi(bucket.potentials(*flat))
        row, position = (found >= 0).nonzero(as_tuple=True)
        tokens = layout.token_start[bucket.pairs][row.cpu().numpy()] + position.cpu().numpy()
        states[tokens] = found[row, position].cpu().numpy()
        scores[torch.as_tensor(bucket.pairs, device=scores.device)] = best
    return layout.columns(states), scores.cpu().numpy()


@torch.no_grad()
def chances(layout: Layout, flat: Sequence[Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """The chance of every NULL and link, and log Z of each pair."""
    nodes = flat[0].new_zeros(layout.n_tokens + layout.n_cells + 1)
    log_z = flat[0].new_zeros(len(layout.n_source))
    for bucket in layout.buckets:
        found = marginals(bucket.potentials(*flat))
        nodes.index_put_((bucket.node,), found.node, accumulate=True)  # states may share an entry
        log_z[torch.as_tensor(bucket.pairs, device=log_z.device)] = found.log_z
    return nodes[:-1].clamp_(0.0, 1.0).cpu().numpy(), log_z.cpu().numpy()


def _bucket(layout: Layout, pairs: np.ndarray) -> Bucket:
    m_max = int(layout.n_source[pairs].max(initial=0))
    space = layout.space
    s_max = int(space.size(layout.n_target[pairs].max(initial=0)))
    m, s = np.arange(m_max)[None, :, None], np.arange(s_max)
    n_source, n_target = layout.n_source[pairs][:, None, None], layout.n_target[pairs][:, None, None]
    column = space.column(n_target, s)
    null = layout.token_start[pairs][:, None, None] + m + 0 * s
    link = layout.n_tokens + layout.cell_start[pairs][:, None, None] + m * n_target + column - 1
    inside = (m < n_source) & (column >= 0)
    node = np.where(inside, np.where(column == 0, null, link), layout.n_tokens + layout.n_cells)
    lengths, table = np.unique(layout.n_target[pairs], return_inverse=True)
    which = np.searchsorted(layout.distinct, lengths)
    inner = space.edge(lengths[:, None, None], s[:, None], s)
    edge = np.where(inner >= 0, layout.edge_start[which][:, None, None] + inner, layout.n_edges)
    outer = np.where(s <= lengths[:, None], s, -1), space.column(lengths[:, None], s)
    start, end = (np.where(x >= 0, layout.first_start[which][:, None] + x, layout.n_starts) for x in outer)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.long, device=layout.device)

    return Bucket(
        pairs,
        tensor(node),
        tensor(edge),
        tensor(start),
        tensor(end),
        tensor(table),
        tensor(layout.n_source[pairs]),
        tensor(space.size(layout.n_target[pairs])),
    )
