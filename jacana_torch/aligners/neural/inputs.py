"""What the network reads of sentence pairs: the columns of the feature families, cell by cell, and word pieces.

In: pairs, a FeatureSet, a tokenizer where there is an encoder. Out: `Inputs` of each pair, and `Batch`es of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...crf.scoring import numbered
from ...encoders.checkpoint import Tokenizer
from ...encoders.pieces import Window, windows
from ...features.api import Block
from ...features.featureset import FeatureSet
from ...types import SentencePair

if TYPE_CHECKING:
    from .network import Seen

AT_A_TIME = 128  # pairs whose features are worked out together
FARTHEST = 6.0  # standard deviations; a column that is hardly ever on must not drown the others
LEAST_SPREAD = 1e-2


@dataclass(frozen=True)
class Inputs:
    """One pair: `values` [M, N, K] float16, `marks` [M, N, H] numbers of one-hot columns (0: an unknown one)."""

    size: tuple[int, int]
    values: np.ndarray
    marks: np.ndarray
    windows: Sequence[Window] = ()


@dataclass
class Columns:
    """The columns that a model knows: those with values, their mean and spread, and the one-hot ones."""

    values: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    spread: np.ndarray = field(default_factory=lambda: np.ones(0, np.float32))

    @staticmethod
    def of(pairs: Sequence[SentencePair], features: FeatureSet, rarest: int | None) -> Columns:
        """What the families give of these pairs; of one-hot columns those that are on in `rarest` cells."""
        values: dict[str, None] = {}
        marks: Counter[str] = Counter()
        for _, blocks, _ in _described(pairs, features):
            for block in blocks:
                if block.table is None:
                    marks.update(_occurrences(block))
                else:
                    values.update(dict.fromkeys(block.names))
        return Columns(list(values), sorted(name for name, count in marks.items() if rarest and count >= rarest))

    def measure(self, inputs: Sequence[Inputs]) -> None:
        """Take mean and spread from these pairs."""
        count, total, square = 0, np.zeros(len(self.values)), np.zeros(len(self.values))
        for one in inputs:
            cells = one.values.reshape(-1, len(self.values)).astype(np.float32)
            count += len(cells)
            total += cells.sum(0, dtype=np.float64)
            square += np.square(cells).sum(0, dtype=np.float64)
        mean = total / max(count, 1)
        variance = np.maximum(square / max(count, 1) - mean**2, 0.0)
        self.mean, self.spread = mean.astype(np.float32), (np.sqrt(variance) + LEAST_SPREAD).astype(np.float32)


def inputs_of(
    pairs: Sequence[SentencePair],
    columns: Columns,
    features: FeatureSet,
    tokenizer: Tokenizer | None = None,
    reading: str = "together",
) -> list[Inputs]:
    """What the network reads of each pair, all with words on both sides."""
    out: list[Inputs] = [Inputs((0, 0), np.zeros(0), np.zeros(0))] * len(pairs)
    value_of = {name: k for k, name in enumerate(columns.values)}
    mark_of = {name: k + 1 for k, name in enumerate(columns.marks)}
    for places, blocks, ends in _described(pairs, features):
        values = _values(blocks, value_of, int(ends[-1]))
        marks = _marks(blocks, mark_of, int(ends[-1]))
        for place, end in zip(places, ends.tolist(), strict=True):
            m, n = len(pairs[place].source), len(pairs[place].target)
            own = slice(end - m * n, end)
            out[place] = Inputs((m, n), values[own].reshape(m, n, -1), marks[own].reshape(m, n, -1))
    if tokenizer is None:
        return out
    read = windows(pairs, tokenizer, reading)
    return [Inputs(x.size, x.values, x.marks, own) for x, own in zip(out, read, strict=True)]


def _described(
    pairs: Sequence[SentencePair], features: FeatureSet
) -> Iterator[tuple[list[int], tuple[Block, ...], np.ndarray]]:
    """Some pairs of like lengths at a time: which they are, their blocks, and where the cells of each end."""
    order = sorted(range(len(pairs)), key=lambda k: len(pairs[k].target))
    for start in range(0, len(order), AT_A_TIME):
        places = order[start : start + AT_A_TIME]
        batch = features([pairs[k] for k in places])
        yield places, batch.link, np.cumsum(batch.n_source * batch.n_target)


def _occurrences(block: Block) -> dict[str, int]:
    """In how many cells each column of a one-hot block is on."""
    index = np.arange(len(block.names)) if block.index is None else block.index
    counts = np.bincount(index[index >= 0], minlength=len(block.names))
    return dict(zip(block.names, counts.tolist(), strict=True))


def _values(blocks: Sequence[Block], number: Mapping[str, int], n_cells: int) -> np.ndarray:
    """[C, K] float16."""
    out = np.zeros((n_cells, len(number)), np.float16)
    for block in blocks:
        if block.table is None:
            continue
        columns = numbered(block.names, number)
        known = columns >= 0
        table = block.table[:, known].astype(np.float16)
        if block.index is None:
            out[:, columns[known]] = table
        else:
            padded = np.vstack([table, np.zeros((1, table.shape[1]), np.float16)])  # index -1 is nothing
            out[:, columns[known]] = padded[block.index]
    return out


def _marks(blocks: Sequence[Block], number: Mapping[str, int], n_cells: int) -> np.ndarray:
    """[C, H] a number for each one-hot block."""
    found = []
    for block in blocks:
        if block.table is None:
            columns = np.append(np.maximum(numbered(block.names, number), 0), 0).astype(np.int32)
            found.append(columns[np.arange(len(block.names)) if block.index is None else block.index])
    return np.stack(found, 1) if found else np.zeros((n_cells, 0), np.int32)


@dataclass(frozen=True)
class Batch:
    """Padded pairs on a device: `values` [B, M, N, K], `marks` [B, M, N, H], `inside` [B, M, N, 1]."""

    sizes: list[tuple[int, int]]
    values: Tensor
    marks: Tensor
    inside: Tensor
    windows: list[Sequence[Window]]
    seen: Sequence[Seen] = ()  # where the encoder has been asked already

    @staticmethod
    def of(inputs: Sequence[Inputs], columns: Columns, device: str) -> Batch:
        sizes = [one.size for one in inputs]
        shape = (len(inputs), max(m for m, _ in sizes), max(n for _, n in sizes))
        # torch's memory is aligned, and numpy's now and then: sums would differ in their last bits.
        tensors = torch.zeros(*shape, len(columns.values)), torch.zeros(*shape, 1)
        values, inside = (tensor.numpy() for tensor in tensors)
        marks = np.zeros((*shape, inputs[0].marks.shape[2]), np.int64)
        for k, one in enumerate(inputs):
            m, n = one.size
            standard = (one.values.astype(np.float32) - columns.mean) / columns.spread
            values[k, :m, :n] = np.clip(standard, -FARTHEST, FARTHEST)
            marks[k, :m, :n], inside[k, :m, :n] = one.marks, 1.0
        x, marked, within = (tensor.to(device) for tensor in (tensors[0], torch.from_numpy(marks), tensors[1]))
        return Batch(sizes, x, marked, within, [one.windows for one in inputs])
