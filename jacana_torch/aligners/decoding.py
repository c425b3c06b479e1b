"""From pairs to links where nothing is trained: pairs cut into grids, grids scored, scores decoded.

Pairs and a model's weights in, alignments with posteriors out. Features live only as long as they are scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

import numpy as np
import torch

from ..crf.inference import marginals, viterbi
from ..crf.layout import Layout
from ..crf.linear import RawBlock, add_scores
from ..errors import ConfigError
from ..features.base import Block
from ..features.featureset import FeatureSet
from ..features.grid import Grid
from ..types import Alignment, SentencePair

LARGEST_PAIR = 16_000_000  # cells of one pair; features of more would not fit in a laptop's memory
LONGEST_KEPT = 128  # target tokens; edge scores of longer ones are many and seldom needed twice


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Pairs with words on both sides, in order, as many a grid as `most_cells` allows; and which these are.

    One beyond LARGEST_PAIR is an error, not an hour.
    """
    places: list[int] = []
    cells = 0
    for place, pair in enumerate(pairs):
        m, n = len(pair.source), len(pair.target)
        if m * n > LARGEST_PAIR:
            raise ConfigError(
                f"a pair of {m} x {n} tokens is more than this aligns ({LARGEST_PAIR:,} cells): "
                "split it into sentences"
            )
        if places and cells + m * n > most_cells:
            yield places, Grid([pairs[k] for k in places])
            places, cells = [], 0
        if m and n:
            places.append(place)
            cells += m * n
    if places:
        yield places, Grid([pairs[k] for k in places])


class Scorer:
    """Scores of grids under one set of weights; edge scores of lengths seen before are kept."""

    def __init__(self, features: FeatureSet, names: Sequence[str], weights: np.ndarray) -> None:
        self._features, self._names, self._weights = features, names, weights.copy()
        self._number = {name: i for i, name in enumerate(names)}
        self._tables: dict[int, dict[str, np.ndarray]] = {}

    def has(self, names: Sequence[str], weights: np.ndarray) -> bool:
        """Whether these are still its weights; they change in place where a model is being trained."""
        return names is self._names and np.array_equal(weights, self._weights)

    def flat(self, grid: Grid, layout: Layout) -> list[np.ndarray]:
        """The flat score vectors that a layout takes."""
        nodes = np.zeros(layout.n_tokens + layout.n_cells + 1)
        null, link = nodes[: layout.n_tokens], nodes[layout.n_tokens : -1]
        for blocks in self._features.node_blocks(grid):
            for block in blocks.null:
                self._add(null, block)
            for block in blocks.link:
                self._add(link, block)
        tables = [self._edge_scores(n) for n in layout.distinct.tolist()]
        edges = [np.concatenate([*(t[space] for t in tables), np.zeros(1)]) for space in ("edge", "start", "end")]
        return [nodes, *edges]

    def _add(self, total: np.ndarray, block: Block) -> None:
        add_scores(total, known_columns(block, self._number), self._weights)

    def _edge_scores(self, n: int) -> dict[str, np.ndarray]:
        if n not in self._tables:
            scores = {"edge": np.zeros((n + 1) ** 2), "start": np.zeros(n + 1), "end": np.zeros(n + 1)}
            for space, blocks in self._features.edge_blocks(n).items():
                for block in blocks:
                    self._add(scores[space], block)
            if n > LONGEST_KEPT:
                return scores
            self._tables[n] = scores
        return self._tables[n]


def known_columns(block: Block, number: Mapping[str, int]) -> RawBlock:
    """Column names turned into weight numbers; columns that the model never met have no say."""
    columns = np.fromiter(map(number.get, block.names, repeat(-1)), dtype=np.int64, count=len(block.names))
    keep = columns >= 0
    if keep.all():
        return columns, block.table, block.index
    if block.table is not None:
        return columns[keep], block.table[:, keep], block.index
    renumber = np.where(keep, np.cumsum(keep) - 1, -1)  # one-hot: rows are columns, so they go together
    index = np.arange(len(keep)) if block.index is None else block.index
    return columns[keep], None, np.where(index < 0, -1, renumber[index])


@torch.no_grad()
def decoded(layout: Layout, flat: Sequence[torch.Tensor]) -> list[Alignment]:
    """Viterbi links of every pair of the layout, with posteriors; the score is log p(states) per source token."""
    out: list[Alignment] = [Alignment(0, 0)] * len(layout.n_source)
    for bucket in layout.buckets:
        potentials = bucket.potentials(*flat)
        states, best = viterbi(potentials)
        chances = marginals(potentials)
        posterior = chances.node.gather(2, states.clamp(min=0).unsqueeze(2)).squeeze(2)
        score = (best - chances.log_z) / bucket.lengths
        rows = zip(bucket.pairs.tolist(), states.tolist(), posterior.tolist(), score.tolist(), strict=True)
        for pair, path, posteriors, figure in rows:
            m, n = int(layout.n_source[pair]), int(layout.n_target[pair])
            out[pair] = _alignment(m, n, path, posteriors, figure)
    return out


def _alignment(n_source: int, n_target: int, states: list[int], posterior: list[float], score: float) -> Alignment:
    confidence = {(m, s - 1): min(posterior[m], 1.0) for m, s in enumerate(states[:n_source]) if s > 0}
    return Alignment(n_source, n_target, frozenset(confidence), confidence=confidence, score=score)
