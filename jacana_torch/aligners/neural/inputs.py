"""What the network reads of a pair: the columns of the feature families for each cell, and word pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...crf.scores import numbered
from ...encoders.checkpoint import Tokenizer
from ...encoders.pieces import Window, windows
from ...features.api import Block
from ...features.featureset import FeatureSet
from ...types import SentencePair

AT_A_TIME = 128  # pairs whose features are computed together
FARTHEST = 6.0  # standard deviations; a column that is rarely on must not dominate the others
LEAST_SPREAD = 1e-2
_NOTHING = np.zeros((0, 0, 0))
JITTER = 0.3  # how much the size of a pair varies when training pairs are sorted by size


@dataclass(frozen=True)
class Inputs:
    """One pair: `values` [M, N, K] float16, and `marks` [M, N, H], numbers of one-hot columns (0: unknown).

    Or, instead of both, `sums` [M, N, W]: what a `Projection` makes of them.
    """

    size: tuple[int, int]
    values: np.ndarray
    marks: np.ndarray
    windows: Sequence[Window] = ()
    sums: np.ndarray | None = None


@dataclass
class Columns:
    """The columns that a model knows: those with values, their mean and spread, and the one-hot ones ("marks")."""

    values: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    spread: np.ndarray = field(default_factory=lambda: np.ones(0, np.float32))

    @staticmethod
    def of(pairs: Sequence[SentencePair], features: FeatureSet, rarest: int | None) -> Columns:
        """The columns of these pairs. One-hot columns count if they are on in at least `rarest` cells."""
        values: dict[str, None] = {}
        marks: Counter[str] = Counter()
        for _, blocks, _ in _blocks(pairs, features):
            for block in blocks:
                if block.table is not None:
                    values.update(dict.fromkeys(block.names))
                    continue
                index = np.arange(len(block.names)) if block.index is None else block.index
                counts = np.bincount(index[index >= 0], minlength=len(block.names))
                marks.update(dict(zip(block.names, counts.tolist(), strict=True)))
        return Columns(list(values), sorted(name for name, count in marks.items() if rarest and count >= rarest))

    def standard(self, values: np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """[..., columns] values less the mean, in units of the spread."""
        found: np.ndarray = (values - self.mean[columns]) / self.spread[columns]
        np.clip(found, -FARTHEST, FARTHEST, out=found)
        return found

    def measure(self, inputs: Sequence[Inputs]) -> None:
        """Set mean and spread to those of these pairs."""
        count, total, square = 0, np.zeros(len(self.values)), np.zeros(len(self.values))
        for one in inputs:
            cells = one.values.reshape(-1, len(self.values)).astype(np.float32)
            count += len(cells)
            total += cells.sum(0, dtype=np.float64)
            square += np.square(cells).sum(0, dtype=np.float64)
        mean = total / max(count, 1)
        variance = np.maximum(square / max(count, 1) - mean**2, 0.0)
        self.mean, self.spread = mean.astype(np.float32), (np.sqrt(variance) + LEAST_SPREAD).astype(np.float32)


@dataclass(frozen=True)
class Projection:
    """A linear map of all columns of a cell: `weight` [K, W], `marks` [1 + one-hot columns, W] and `bias` [W].

    A sum over columns can be taken table by table, so that a row that many cells share is multiplied once.
    """

    weight: np.ndarray
    marks: np.ndarray
    bias: np.ndarray

    @staticmethod
    def beside(several: Sequence[Projection]) -> Projection:
        """The projections of several networks as one, their sums side by side."""
        return Projection(*(np.concatenate(parts, -1) for parts in zip(*map(astuple, several), strict=True)))

    def of(self, blocks: Sequence[Block], columns: Columns, n_cells: int) -> np.ndarray:
        """[C, W] the sums."""
        of_value = {name: k for k, name in enumerate(columns.values)}
        of_mark = {name: k + 1 for k, name in enumerate(columns.marks)}
        absent = columns.standard(np.zeros(len(of_value), np.float32))
        out, unseen = np.zeros((n_cells, len(self.bias)), np.float32), np.ones(len(of_value), bool)
        for block in blocks:
            if block.table is None:
                if not of_mark:
                    continue
                rows, nothing = self.marks[np.maximum(numbered(block.names, of_mark), 0)], self.marks[:1]
            else:
                found = numbered(block.names, of_value)
                known = found[found >= 0]
                unseen[known] = False
                table = block.table[:, found >= 0].astype(np.float16).astype(np.float32)
                rows = columns.standard(table, known) @ self.weight[known]
                nothing = (absent[known] @ self.weight[known])[None]
            if block.index is not None:
                rows = np.concatenate([rows, nothing]).take(block.index, 0)  # index -1: none
            out += rows
        out += self.bias + absent[unseen] @ self.weight[unseen]
        return out


def inputs_of(
    pairs: Sequence[SentencePair],
    columns: Columns,
    features: FeatureSet,
    tokenizer: Tokenizer | None = None,
    reading: str = "together",
    projection: Projection | None = None,
) -> list[Inputs]:
    """Compute the inputs of each pair; all must have words on both sides."""
    out: list[Inputs] = [Inputs((0, 0), np.zeros(0), np.zeros(0))] * len(pairs)
    number_of_value = {name: k for k, name in enumerate(columns.values)}
    number_of_mark = {name: k + 1 for k, name in enumerate(columns.marks)}
    for places, blocks, ends in _blocks(pairs, features):
        if projection is not None:
            sums = projection.of(blocks, columns, int(ends[-1]))
            for place, own in _cells(pairs, places, ends):
                m, n = len(pairs[place].source), len(pairs[place].target)
                out[place] = Inputs((m, n), _NOTHING, _NOTHING, (), sums[own].reshape(m, n, -1))
            continue
        values = _values(blocks, number_of_value, int(ends[-1]))
        marks = _marks(blocks, number_of_mark, int(ends[-1]))
        for place, own in _cells(pairs, places, ends):
            m, n = len(pairs[place].source), len(pairs[place].target)
            out[place] = Inputs((m, n), values[own].reshape(m, n, -1), marks[own].reshape(m, n, -1))
    if tokenizer is None:
        return out
    read = windows(pairs, tokenizer, reading)
    return [replace(x, windows=own) for x, own in zip(out, read, strict=True)]


def _cells(pairs: Sequence[SentencePair], places: Sequence[int], ends: np.ndarray) -> Iterator[tuple[int, slice]]:
    """The place of each pair, and where its cells are."""
    for place, end in zip(places, ends.tolist(), strict=True):
        yield place, slice(end - len(pairs[place].source) * len(pairs[place].target), end)


def _blocks(
    pairs: Sequence[SentencePair], features: FeatureSet
) -> Iterator[tuple[list[int], tuple[Block, ...], np.ndarray]]:
    """Pairs of similar length at a time: their places, their blocks, and the end of each pair's cells."""
    order = sorted(range(len(pairs)), key=lambda k: len(pairs[k].target))
    for start in range(0, len(order), AT_A_TIME):
        places = order[start : start + AT_A_TIME]
        batch = features([pairs[k] for k in places])
        yield places, batch.link, np.cumsum(batch.n_source * batch.n_target)


def _values(blocks: Sequence[Block], number: Mapping[str, int], n_cells: int) -> np.ndarray:
    """[C, K] float16: the columns that have values."""
    out = np.zeros((n_cells, len(number)), np.float16)
    for block in blocks:
        if block.table is None:
            continue
        columns = numbered(block.names, number)
        known = columns >= 0
        table = block.table[:, known].astype(np.float16)
        if block.index is not None:
            padded = np.vstack([table, np.zeros((1, table.shape[1]), np.float16)])  # index -1: none
            table = padded.take(block.index, 0)
        columns = columns[known]
        beside = columns.size and (np.diff(columns) == 1).all()  # to copy to a slice is several times faster
        out[:, slice(columns[0], columns[-1] + 1) if beside else columns] = table
    return out


def _marks(blocks: Sequence[Block], number: Mapping[str, int], n_cells: int) -> np.ndarray:
    """[C, H] the number of the column that is on in each one-hot block."""
    found = []
    for block in blocks if number else ():
        if block.table is None:
            columns = np.append(np.maximum(numbered(block.names, number), 0), 0).astype(np.int32)
            found.append(columns[np.arange(len(block.names)) if block.index is None else block.index])
    return np.stack(found, 1) if found else np.zeros((n_cells, 0), np.int32)


class Encoded(NamedTuple):
    """An encoder's output for a pair: `cosines` [M, N, layers], and the `last` layer [M + N, d] of its words."""

    cosines: Tensor
    last: Tensor


@dataclass(frozen=True)
class Batch:
    """Padded pairs on a device: `values` [B, M, N, K], `marks` [B, M, N, H] and the mask `inside` [B, M, N, 1]."""

    sizes: list[tuple[int, int]]
    values: Tensor
    marks: Tensor
    inside: Tensor
    windows: list[Sequence[Window]]
    encoded: Sequence[Encoded] = ()  # if the encoder is frozen and has run already
    summed: bool = False  # `values` are the sums [B, M, N, width] of a projection, of this network

    def of_network(self, number: int, width: int, encoded: Sequence[Encoded]) -> Batch:
        """The batch for one of several networks, whose sums lie side by side."""
        own = self.values[..., number * width : (number + 1) * width] if self.summed else self.values
        return replace(self, values=own, encoded=encoded)

    @staticmethod
    def of(inputs: Sequence[Inputs], columns: Columns, device: str) -> Batch:
        sizes = [one.size for one in inputs]
        shape = (len(inputs), max(m for m, _ in sizes), max(n for _, n in sizes))
        # torch aligns its memory, and numpy does not always: sums would differ in their last bits.
        room = partial(torch.zeros, pin_memory=device.startswith("cuda"))  # copied while the device computes
        first = inputs[0]
        marked = room((*shape, first.marks.shape[-1]), dtype=torch.int64)
        depth = len(columns.values) if first.sums is None else first.sums.shape[2]
        tensors = room((*shape, depth)), marked, room((*shape, 1))
        values, marks, inside = (tensor.numpy() for tensor in tensors)
        for k, one in enumerate(inputs):
            m, n = one.size
            inside[k, :m, :n] = 1.0
            if one.sums is not None:
                values[k, :m, :n] = one.sums
                continue
            values[k, :m, :n] = columns.standard(one.values.astype(np.float32))
            marks[k, :m, :n] = one.marks
        x, marked, within = (tensor.to(device, non_blocking=True) for tensor in tensors)
        return Batch(sizes, x, marked, within, [one.windows for one in inputs], (), first.sums is not None)


def batches(
    sizes: Sequence[tuple[int, int]], most_pairs: int, most_cells: int, random: Random | None = None
) -> list[list[int]]:
    """Group the indices of pairs of similar size into batches.

    A batch has at most `most_pairs` pairs and, padded, `most_cells` cells, but at least one pair. `random` varies
    the batches from call to call, and their order.
    """
    key = [m * n * (1 + JITTER * random.random() if random is not None else 1.0) for m, n in sizes]
    out: list[list[int]] = []
    tallest = widest = 0
    for k in sorted(range(len(sizes)), key=lambda k: key[k]):
        m, n = sizes[k]
        tall, wide = max(tallest, m), max(widest, n)
        if not out or len(out[-1]) == most_pairs or (len(out[-1]) + 1) * tall * wide > most_cells:
            out.append([])
            tall, wide = m, n
        out[-1].append(k)
        tallest, widest = tall, wide
    if random is not None:
        random.shuffle(out)
    return out
