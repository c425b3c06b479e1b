"""Sentence pairs as numbers: vocabularies, the pairs of words that meet, and batches of similar sizes.

Lists of words in; out go batches whose every cell names a place in a table of word pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from ...annotate.normalise import matching_form
from ...annotate.tokenize import tokenize
from ...crf.buckets import buckets
from ...features.wordlists import stem, variant
from ...types import Sentence
from .lattice import Chains

WordPair = tuple[Sequence[str], Sequence[str]]  # the words of two sentences


def _lower(token: str) -> str:
    return matching_form(token).lower()


@lru_cache(maxsize=1 << 13)
def _stemmed(token: str) -> str:
    return stem(variant(_lower(token))) or token


FORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"exact": matching_form, "lower": _lower, "stem": _stemmed}
)


def words_of(sentence: Sentence, form: str, raw: bool = False) -> list[str]:
    """A sentence's words as the models see them; `raw` ones are tokenised first where they are only split."""
    tokens = tokenize(sentence.text) if raw and sentence.text is not None else sentence.tokens
    return list(map(FORMS[form], tokens))


@dataclass(frozen=True)
class Batch:
    """`cell` [M, B, N] is the place of each word pair among the distinct ones, `word` [M, B] that of each source
    word in its vocabulary; the place after the last is for padding. See `Chains` for the rest."""

    pairs: np.ndarray
    cell: Tensor
    word: Tensor
    sizes: Tensor
    targets: Tensor
    weight: Tensor

    def chains(self, values: Tensor, null: Tensor) -> Chains:
        """Under these probabilities of word pairs and of source words alone, each with a 0 at its end."""
        link = values.index_select(0, self.cell.flatten()).view(self.cell.shape)
        alone = null.index_select(0, self.word.flatten()).view(self.word.shape)
        return Chains(link, alone, self.sizes, self.targets, self.weight)


class Text:
    """Pairs, all with words on both sides, and the vocabularies of their sides.

    `keys` [U] are the distinct pairs of words, sorted: target * len(source) + source.
    """

    def __init__(self, pairs: Sequence[WordPair], weights: Sequence[float] | None = None) -> None:
        self.n_source = np.array([len(s) for s, _ in pairs], dtype=np.int64)
        self.n_target = np.array([len(t) for _, t in pairs], dtype=np.int64)
        self.weights = np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.source, self._words = _numbered(word for s, _ in pairs for word in s)
        self.target, targets = _numbered(word for _, t in pairs for word in t)
        width = np.repeat(self.n_target, self.n_source)  # [Ts] cells of each source token
        begin = np.repeat(np.cumsum(self.n_target) - self.n_target, self.n_source)
        within = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        cell_keys = targets[np.repeat(begin, width) + within] * len(self.source) + np.repeat(self._words, width)
        self.keys, places = np.unique(cell_keys, return_inverse=True)
        self._cells = places.reshape(-1).astype(np.int32)

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """[U] the numbers of the source and of the target word of each distinct pair."""
        return self.keys % len(self.source), self.keys // len(self.source)

    def buckets(self, most_cells: int) -> list[np.ndarray]:
        """Which pairs go together. Best paths need a square of target positions a pair, so a long target counts as
        a long source too."""
        return buckets(np.maximum(self.n_source, self.n_target), self.n_target, most_cells)

    def batch(self, pairs: np.ndarray, device: str) -> Batch:
        m, n = self.n_source[pairs], self.n_target[pairs]
        token = (np.cumsum(self.n_source) - self.n_source)[pairs]
        areas = self.n_source * self.n_target
        cell = (np.cumsum(areas) - areas)[pairs]
        row, column = np.arange(m.max())[:, None, None], np.arange(n.max())  # [M, 1, 1], [N]
        inside = (row < m[:, None]) & (column < n[:, None])  # [M, B, N]
        cells = np.full(inside.shape, len(self.keys), dtype=np.int32)
        cells[inside] = self._cells[(cell[:, None] + row * n[:, None] + column)[inside]]
        words = np.full((len(row), len(pairs)), len(self.source), dtype=np.int32)
        real = row[:, :, 0] < m
        words[real] = self._words[(token + row[:, :, 0])[real]]
        arrays = (cells, words, m, n, self.weights[pairs])
        return Batch(pairs, *(torch.as_tensor(array, device=device) for array in arrays))


def _numbered(words: Iterable[str]) -> tuple[list[str], np.ndarray]:
    number: dict[str, int] = {}
    numbers = np.array([number.setdefault(word, len(number)) for word in words], dtype=np.int64)
    return list(number), numbers
