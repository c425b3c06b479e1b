"""The vectors of words: an encoder run over windows of pieces, each word the mean of its pieces, layer by layer.

In: a network, and windows of some pairs. Out: a flat tensor over all words of all pairs, for each layer asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ConfigError
from .pieces import Window


def checked_layers(network: nn.Module, layers: Sequence[int]) -> tuple[int, ...]:
    """Layer numbers, 0 for the embeddings; negative ones count from the last. All of them where none are named."""
    most = int(network.config.num_hidden_layers)  # type: ignore[union-attr, arg-type]
    chosen = list(layers) or list(range(most + 1))
    found = [layer + most + 1 if layer < 0 else layer for layer in chosen]
    if not all(0 <= layer <= most for layer in found) or len(set(found)) < len(found):
        raise ConfigError(f"layers={chosen}: each once, of 0 (the embeddings) to {most}")
    return tuple(found)


def word_vectors(
    network: nn.Module, pairs: Sequence[Sequence[Window]], n_words: Sequence[int], layers: Sequence[int]
) -> list[Tensor]:
    """[words of all pairs, d] for each layer; `n_words` are those of each pair. A word without pieces is zero."""
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
    single = torch.promote_types(states[0].dtype, torch.float32)  # a half is too coarse for means
    return [_means(states[layer].to(single).flatten(0, 1), place, share) for layer in layers]


def _batch(rows: Sequence[tuple[Window, int]], total: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Padded windows as the network takes them, and the word of each piece, `total` where there is none."""
    longest = max(len(window.ids) for window, _ in rows)
    ids = np.zeros((len(rows), longest), np.int64)  # what stands in the padding is never looked at
    seen, segments = np.zeros_like(ids), np.zeros_like(ids)
    word = np.full_like(ids, total)
    for k, (window, start) in enumerate(rows):
        n = len(window.ids)
        ids[k, :n], seen[k, :n] = window.ids, 1
        word[k, :n] = np.where(window.word < 0, total, window.word + start)
        if window.segments is not None:
            segments[k, :n] = window.segments
    batch = {"input_ids": ids, "attention_mask": seen}
    if rows[0][0].segments is not None:
        batch["token_type_ids"] = segments
    return batch, word


def _means(pieces: Tensor, place: Tensor, share: Tensor) -> Tensor:
    """[words, d] the mean of each word's pieces; what belongs to no word is in the row that is left out."""
    total = pieces.new_zeros(len(share), pieces.shape[1]).index_add(0, place, pieces)
    return (total * share.to(total))[:-1]
