"""Run an encoder over windows of word pieces: vectors of words by layer, and low-rank adapters for fine-tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ConfigError
from .pieces import Window

SCALE = 2.0  # of the adapters' output, so that they learn well at the step size of the rest of the network


def checked_layers(network: nn.Module, layers: Sequence[int]) -> tuple[int, ...]:
    """Layer numbers: 0 is the embeddings, negative ones count from the last. Without any, all layers."""
    most = int(network.config.num_hidden_layers)  # type: ignore[union-attr, arg-type]
    chosen = list(layers) or list(range(most + 1))
    found = [layer + most + 1 if layer < 0 else layer for layer in chosen]
    if not all(0 <= layer <= most for layer in found) or len(set(found)) < len(found):
        raise ConfigError(f"layers={chosen}: give distinct layers from 0 (the embeddings) to {most}")
    return tuple(found)


def cut(network: nn.Module, deepest: int) -> nn.Module:
    """Leave out the layers above the deepest one that is read, in place, where layers are stacked as in BERT."""
    stack = dict(network.named_modules()).get("encoder.layer")
    if isinstance(stack, nn.ModuleList) and len(stack) == int(network.config.num_hidden_layers):  # type: ignore[union-attr, arg-type]
        del stack[max(deepest, 1) :]
    return network


def word_vectors(
    network: nn.Module, pairs: Sequence[Sequence[Window]], n_words: Sequence[int], layers: Sequence[int]
) -> list[Tensor]:
    """For each layer [words of all pairs, d], the means of each word's pieces. A word without pieces is zero.

    `n_words` has the number of words of each pair, source and target together.
    """
    device = next(network.parameters()).device
    starts = np.cumsum([0, *n_words])
    rows = [(window, start) for own, start in zip(pairs, starts, strict=False) for window in own]
    total = int(starts[-1])
    batch, word = _batch(rows, total)
    inputs = {name: torch.as_tensor(value, device=device) for name, value in batch.items()}
    states = network(**inputs, output_hidden_states=True).hidden_states
    place = torch.as_tensor(word.reshape(-1), device=device)
    count = torch.zeros(total + 1, device=device).index_add_(0, place, torch.ones(len(place), device=device))
    share = (1 / count.clamp(min=1))[:, None]
    single = torch.promote_types(states[0].dtype, torch.float32)  # half precision is too coarse for means
    means = []
    for layer in layers:
        pieces = states[layer].to(single).flatten(0, 1)
        sums = pieces.new_zeros(total + 1, pieces.shape[1]).index_add(0, place, pieces)
        means.append((sums * share.to(sums))[:-1])  # the last row has the pieces of no word
    return means


def _batch(rows: Sequence[tuple[Window, int]], total: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The network's padded inputs, and [rows, T] the word of each piece, `total` for pieces of no word."""
    longest = max(len(window.ids) for window, _ in rows)
    ids = np.zeros((len(rows), longest), np.int64)
    attention, segments = np.zeros_like(ids), np.zeros_like(ids)
    word = np.full_like(ids, total)
    for k, (window, start) in enumerate(rows):
        n = len(window.ids)
        ids[k, :n], attention[k, :n] = window.ids, 1
        word[k, :n] = np.where(window.word < 0, total, window.word + start)
        if window.segments is not None:
            segments[k, :n] = window.segments
    batch = {"input_ids": ids, "attention_mask": attention}
    if rows[0][0].segments is not None:
        batch["token_type_ids"] = segments
    return batch, word


class Adapted(nn.Module):
    """A frozen linear map with a low-rank adapter (Hu et al. 2022), which starts at zero."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.narrow = nn.Parameter(torch.randn(rank, linear.in_features) / math.sqrt(linear.in_features))
        self.wide = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        # Scaling the matrix takes fewer multiplications than scaling the sum.
        adapter = nn.functional.linear(nn.functional.linear(x, self.narrow), SCALE * self.wide)
        mapped: Tensor = self.linear(x)
        return mapped + adapter


def adapt(network: nn.Module, rank: int) -> nn.Module:
    """Add an adapter to every linear map of the network's layers.

    Adapters hold a few hundredths of the weights, so a fine-tuned encoder takes little space next to the original.
    """
    layers = dict(network.named_children()).get("encoder", network)
    for module in list(layers.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and not isinstance(module, Adapted):
                module.add_module(name, Adapted(child, rank))
    return network


def fold(network: nn.Module) -> nn.Module:
    """Replace adapters, in place, by linear maps that do the same in fewer multiplications and are not trained."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Adapted):
                with torch.no_grad():
                    child.linear.weight += SCALE * child.wide @ child.narrow
                module.add_module(name, child.linear)
    return network.requires_grad_(False)
