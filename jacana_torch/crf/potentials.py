"""The scores of a batch of chains, padded: all that inference ever sees.

In come node scores per chain and one transition table per distinct target length; out goes `Potentials`, whose
padding is -inf, so that no state or position that a chain does not have can ever contribute. The mask is made
here, in `Potentials.build`, and nowhere else. State 0 is NULL, state n is target token n - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

INF = float("inf")


@dataclass(frozen=True)
class Potentials:
    """Scores of B chains over at most M positions and S states, with U distinct transition tables.

    `node`     [B, M, S] -inf at positions >= lengths[b] and at states >= sizes[b]
    `edge`     [U, S, S] from the previous state (row) to the state (column)
    `start`    [U, S] of the first position's state;  `end` [U, S] of the last one's
    `table`    [B] long, which of the U tables each chain uses
    `lengths`  [B] long, positions of each chain (0 is a chain without states: log Z is 0)
    `sizes`    [B] long, states of each chain (at least 1)

    Use `Potentials.build`: it puts the padding in.
    """

    node: Tensor
    edge: Tensor
    start: Tensor
    end: Tensor
    table: Tensor
    lengths: Tensor
    sizes: Tensor

    @classmethod
    def build(
        cls, node: Tensor, edge: Tensor, start: Tensor, end: Tensor, table: Tensor, lengths: Tensor, sizes: Tensor
    ) -> Potentials:
        """Check the shapes and put -inf wherever a chain or a table has no state."""
        _check_shapes(node, edge, start, end, table, lengths, sizes)
        B, M, S = node.shape
        table_sizes = sizes.new_zeros(edge.shape[0]).scatter_reduce(0, table, sizes, "amax")
        state = torch.arange(S, device=node.device)
        no_state = state >= sizes[:, None]  # [B, S]
        no_position = torch.arange(M, device=node.device) >= lengths[:, None]  # [B, M]
        no_row = state >= table_sizes[:, None]  # [U, S]
        return cls(
            node.masked_fill(no_position[:, :, None] | no_state[:, None, :], -INF),
            edge.masked_fill(no_row[:, :, None] | no_row[:, None, :], -INF),
            start.masked_fill(no_row, -INF),
            end.masked_fill(no_row, -INF),
            table,
            lengths,
            sizes,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """B, M, S."""
        return tuple(self.node.shape)  # type: ignore[return-value]

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Potentials:
        scores = {n: getattr(self, n).to(device=device, dtype=dtype) for n in ("node", "edge", "start", "end")}
        return replace(
            self, **scores, **{n: getattr(self, n).to(device=device) for n in ("table", "lengths", "sizes")}
        )

    def with_node(self, node: Tensor) -> Potentials:
        """The same chains under other node scores, whose padding must already be -inf."""
        return replace(self, node=node)

    def __len__(self) -> int:
        return self.node.shape[0]


def _check_shapes(
    node: Tensor, edge: Tensor, start: Tensor, end: Tensor, table: Tensor, lengths: Tensor, sizes: Tensor
) -> None:
    if node.dim() != 3 or edge.dim() != 3:
        raise ValueError(f"node must be [B, M, S] and edge [U, S, S], not {[*node.shape]} and {[*edge.shape]}")
    (B, M, S), U = node.shape, edge.shape[0]
    expected = {"edge": (edge, (U, S, S)), "start": (start, (U, S)), "end": (end, (U, S))}
    expected |= {"table": (table, (B,)), "lengths": (lengths, (B,)), "sizes": (sizes, (B,))}
    for name, (tensor, shape) in expected.items():
        if tuple(tensor.shape) != shape:
            given = f"for node {[B, M, S]} and {U} tables, not {[*tensor.shape]}"
            raise ValueError(f"{name} must be {[*shape]} {given}")
    bounds = (("table", table, 0, U - 1), ("lengths", lengths, 0, M), ("sizes", sizes, 1, S))
    for name, tensor, low, high in bounds:
        if tensor.dtype != torch.long:
            raise ValueError(f"{name} must be of dtype int64, not {tensor.dtype}")
        if B and not (low <= int(tensor.min()) and int(tensor.max()) <= high):
            raise ValueError(f"{name} must be between {low} and {high}, not {tensor.tolist()}")
