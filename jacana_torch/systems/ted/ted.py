"""Alignment by tree edit distance: links the nodes that the cheapest edit of one tree into the other keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...errors import PairError
from ...types import Alignment, SentencePair, trusted
from ...util.batches import by_size
from ...util.build import Within, check_bounds
from ...util.geometry import starts
from .edit_problem import OTHER, UNIT, Problem
from .tree_distance import mapping

AT_ONCE = 1 << 22  # entries of the tables of pairs that are aligned together
LARGEST_PAIR = 1 << 24
CELLS_AT_ONCE = 1 << 19
DEAREST = 1000.0

_Cost = Annotated[float, Within(above=0, most=DEAREST)]


@dataclass
class Ted:
    """Tree edit distance (Zhang & Shasha 1989) between dependency trees, a baseline of Yao et al. (2013).

    `delete`, `insert`, `rename`  the costs, uniform in the paper. Mapping a node to the same node is free. With
              rename=2, the cost of a deletion and an insertion, no mapping is distorted to rename more nodes,
              which is better.
    `wordnet` words of one synset, and words derived from each other, are also the same node.
    `rounds`  maximum number of edits. A mapping keeps the order of trees, so words that moved are deleted in one
              place and inserted in another. Further rounds edit what is left, as long as they find new links.

    Of edits with the same cost, which the paper does not distinguish, the one with more equal words is taken, then
    the one of words at similar places. Mapped nodes that are the same become links; renamed nodes do not. `score`
    is the negative cost of the first edit per token. Links are one to one, and there is nothing to train.
    """

    delete: _Cost = 1.0
    insert: _Cost = 1.0
    rename: _Cost = 1.0
    wordnet: bool = True
    rounds: Annotated[int, Within(1, 1000)] = 5

    def __post_init__(self) -> None:
        check_bounds(Ted, vars(self))

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "lemma", *["pos"] * self.wordnet)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("wordnet",) * self.wordnet

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        return [alignment for some in by_size(pairs, _size, CELLS_AT_ONCE) for alignment in self._align(some)]

    def _align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        full = [pair for pair in pairs if len(pair.source) and len(pair.target)]
        found = iter(self._edited(full))
        out = []
        for pair in pairs:
            m, n = len(pair.source), len(pair.target)
            if m and n:
                out.append(next(found))
            else:
                out.append(Alignment(m, n, score=-(m * self.delete + n * self.insert) / max(m + n, 1)))
        return out

    def _edited(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """Align pairs without empty sentences; halves one after the other if their tables are too large."""
        if not pairs:
            return []
        problem = Problem(pairs, self.wordnet)
        source, target = problem.trees
        entries = source.entries * target.entries
        if entries.max() > LARGEST_PAIR:
            raise PairError(_too_large(pairs[int(entries.argmax())], int(entries.max())))
        if entries.sum() > AT_ONCE and len(pairs) > 1:
            half = len(pairs) // 2
            return self._edited(pairs[:half]) + self._edited(pairs[half:])
        links, cost = self._rounds(problem)
        return _alignments(problem, links, -cost / sum(problem.sizes))

    def _rounds(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Return links [2, K] as token numbers, and the cost [P] of the first edit of each pair."""
        found: list[np.ndarray] = []
        while len(problem.number) and len(found) < self.rounds:
            mapped = self._mapped(problem)
            links = mapped[:, problem.words.alike(*mapped) != OTHER]
            if not found:
                cost = self._cost(problem, mapped, links)
            found.append(links)
            problem.take(links)
        return np.concatenate(found, axis=1), cost

    def _mapped(self, problem: Problem) -> np.ndarray:
        """[2, K] the tokens that the cheapest edit maps to each other."""
        delete, insert = round(self.delete * UNIT), round(self.insert * UNIT)
        source, target = problem.trees
        nodes = mapping(source, target, problem.costs(self.rename), delete, insert)
        sides = zip(problem.sides, problem.trees, nodes, strict=True)
        return np.stack([side.token[tree.token[of]] for side, tree, of in sides])

    def _cost(self, problem: Problem, mapped: np.ndarray, same: np.ndarray) -> np.ndarray:
        """[P] the cost of edits, by the nodes that are mapped, and those of them that are the same."""
        kept, put = (
            np.bincount(problem.pair[0][tokens[0]], minlength=len(problem.number)) for tokens in (same, mapped)
        )
        deleted, inserted = (size - put for size in problem.sizes)
        cost: np.ndarray = self.delete * deleted + self.insert * inserted + self.rename * (put - kept)
        return cost


def _alignments(problem: Problem, links: np.ndarray, score: np.ndarray) -> list[Alignment]:
    """Build the alignments from links as token numbers."""
    pair = problem.pair[0][links[0]]
    local = links - np.stack([starts(size)[pair] for size in problem.sizes])
    order = np.argsort(pair, kind="stable")
    both = list(zip(*local[:, order].tolist(), strict=True))
    ends = np.searchsorted(pair[order], np.arange(len(score) + 1)).tolist()
    sizes = zip(*(size.tolist() for size in problem.sizes), strict=True)
    return [
        trusted(m, n, frozenset(both[a:b]), score=value)
        for (m, n), a, b, value in zip(sizes, ends, ends[1:], score.tolist(), strict=False)
    ]


def _too_large(pair: SentencePair, entries: int) -> str:
    return (
        f"a pair of {len(pair.source)} x {len(pair.target)} tokens needs tables of at least {entries:,} entries, "
        f"more than the limit of {LARGEST_PAIR:,}: split it into sentences"
    )


def _size(pair: SentencePair) -> int:
    size = len(pair.source) * len(pair.target)
    if size > LARGEST_PAIR:
        raise PairError(_too_large(pair, size))
    return size
