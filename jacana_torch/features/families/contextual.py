"""The contextual family: cosines of a pretrained encoder's word vectors, and whether another word would be closer.

For some layers of the encoder: the cosine of the two words, its margins over competitors in the row and the
column, and steps of it for a linear model. The encoder is a resource, or the folder of a checkpoint.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ...encoders import checkpoint
from ...errors import ConfigError
from ...types import Sentence, SentencePair
from ...util.build import INTERNAL, Items
from ..api import Block, NodeBlocks
from ..grid import Grid
from .distsim import Steps

if TYPE_CHECKING:
    import torch

SENTENCES_AT_A_TIME = 32
SENTENCES_KEPT = 2048  # whose vectors are kept between calls: both directions need the same ones
CLEARLY = 1e-4  # closer by less is rounding, which depends on the batch
_LINK = ("cosine", "squared", "row.margin", "column.margin", "row.best", "column.best", "both.best")
_NULL = ("row_max", "row_max.squared")


@dataclass(frozen=True)
class Contextual:
    """`layers`: 0 is the embeddings, -1 the last layer. `steps`: a column for cosines from each step on."""

    encoder: checkpoint.Encoder = "minilm"
    layers: Annotated[tuple[int, ...], Items(0, 100)] = (0, 2, 4, -1)
    steps: Steps = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    name: str = "contextual"
    requires: Annotated[tuple[str, ...], INTERNAL] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "steps", tuple(self.steps))
        if not self.layers:
            raise ConfigError("features.contextual.layers=[]: name at least one, such as -1 for the last")

    @property
    def resources(self) -> tuple[str, ...]:
        return checkpoint.resource_of(self.encoder)

    def __call__(self, grid: Grid) -> NodeBlocks:
        cosines = self._cosines(grid)
        link = [self._link(matrix) for matrix in cosines]
        null = [_null(matrix) for matrix in cosines]
        columns = [*_LINK, *(f"cosine>={step}" for step in self.steps)]
        both = []
        for names, parts in ((columns, link), (_NULL, null)):
            full = tuple(f"{layer}.{name}" for layer in self.layers for name in names)
            both.append(Block(full, np.concatenate(parts) if parts else np.zeros((0, len(full)))))
        return NodeBlocks((both[0],), (both[1],))

    def _cosines(self, grid: Grid) -> list[np.ndarray]:
        """[M, N, layers] of each pair; computed once for both directions."""
        if grid.is_flipped:
            return [matrix.transpose(1, 0, 2) for matrix in self._cosines(grid.flipped())]
        return grid.memo(("contextual", self.encoder, self.layers), lambda: self._compared(grid.pairs))

    def _compared(self, pairs: Sequence[SentencePair]) -> list[np.ndarray]:
        reader = _reader(self.encoder, self.layers)
        sides = reader.vectors([side for pair in pairs for side in (pair.source, pair.target)])
        return [np.einsum("lmd,lnd->mnl", a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)]

    def _link(self, cosine: np.ndarray) -> np.ndarray:
        """[M * N, layers * columns]"""
        row, column = cosine - _best_other(cosine, 1), cosine - _best_other(cosine, 0)
        best = row > CLEARLY, column > CLEARLY
        columns = [cosine, np.square(cosine), row, column, *best, best[0] & best[1]]
        columns += [cosine >= step for step in self.steps]
        stacked = np.stack([c.astype(np.float32) for c in columns], 3)  # [M, N, layers, columns]
        return stacked.reshape(cosine.shape[0] * cosine.shape[1], -1)


def _null(cosine: np.ndarray) -> np.ndarray:
    """[M, layers * columns]"""
    most = cosine.max(1)
    return np.stack([most, np.square(most)], 2).reshape(len(cosine), -1)


def _best_other(cosine: np.ndarray, axis: int) -> np.ndarray:
    """The best of the other cells along an axis; 0 without other cells."""
    if cosine.shape[axis] < 2:
        return np.zeros_like(cosine)
    largest = np.partition(cosine, -2, axis)
    second, first = largest.take([-2], axis), largest.take([-1], axis)
    return np.where(cosine >= first, second, first)


class _Reader:
    """An encoder, and the vectors of the last sentences that it read."""

    def __init__(self, name: str, layers: Sequence[int]) -> None:
        from ...encoders.encoder_network import checked_layers

        self._tokenizer, self._network = checkpoint.tokenizer(name), checkpoint.network(name)
        self._layers = checked_layers(self._network, layers)
        self._kept: OrderedDict[tuple[str, ...], np.ndarray] = OrderedDict()

    def vectors(self, sentences: Sequence[Sentence]) -> list[np.ndarray]:
        """[layers, words, d] for each sentence: vectors of length 1."""
        found = {s.tokens: self._kept[s.tokens] for s in sentences if s.tokens in self._kept}
        unread = sorted({s.tokens for s in sentences} - set(found), key=len)
        for start in range(0, len(unread), SENTENCES_AT_A_TIME):
            found |= self._read(unread[start : start + SENTENCES_AT_A_TIME])
        self._kept |= found
        while len(self._kept) > SENTENCES_KEPT:
            self._kept.popitem(last=False)
        return [found[s.tokens] for s in sentences]

    def _read(self, sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], np.ndarray]:
        import torch

        from ...encoders.encoder_network import word_vectors
        from ...encoders.pieces import windows

        read = windows([SentencePair(Sentence(tokens), Sentence(())) for tokens in sentences], self._tokenizer)
        lengths = [len(tokens) for tokens in sentences]
        with torch.no_grad():
            layers = torch.stack(word_vectors(self._network, read, lengths, self._layers))
            layers = torch.nn.functional.normalize(layers, dim=-1)
        parts: tuple[torch.Tensor, ...] = torch.split(layers, lengths, dim=1)
        return {tokens: part.numpy().copy() for tokens, part in zip(sentences, parts, strict=True)}


@lru_cache(maxsize=2)
def _reader(name: str, layers: tuple[int, ...]) -> _Reader:
    return _Reader(name, layers)
