"""Low-rank adapters (Hu et al. 2022): a frozen encoder learns through two narrow matrices beside each linear map.

A network in, the same network with adapters out. What is learnt is a few hundredths of the weights, so that what
was fine-tuned stays small beside the encoder that a user has already.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

SCALE = 2.0  # the steps that suit the rest of a network suit the adapters, so scaled


class Adapted(nn.Module):
    """A frozen linear map and what is learnt beside it, which begins as nothing."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.narrow = nn.Parameter(torch.randn(rank, linear.in_features) / math.sqrt(linear.in_features))
        self.wide = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        # The scale is on few numbers, not on the sum.
        beside = nn.functional.linear(nn.functional.linear(x, self.narrow), SCALE * self.wide)
        return self.linear(x) + beside


def adapt(network: nn.Module, rank: int) -> nn.Module:
    """Adapters beside every linear map of the network's layers."""
    layers = getattr(network, "encoder", network)
    for module in list(layers.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and not isinstance(module, Adapted):
                setattr(module, name, Adapted(child, rank))
    return network
