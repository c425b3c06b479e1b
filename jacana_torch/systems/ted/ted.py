"""Alignment by tree edit distance: what the cheapest edit of one dependency tree into the other leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ConfigError
from ...types import Alignment, SentencePair, trusted
from ...util.batches import portions
from .distance import mapping
from .edit_costs import OTHER, words_of
from .problem import UNIT, Problem

AT_ONCE = 1 << 22  # entries of tables, of the pairs that are aligned together
LARGEST_PAIR = 1 << 24
CELLS_AT_ONCE = 1 << 19
DEAREST = 1000.0


@dataclass
class Ted:
    """Tree edit distance (Zhang & Shasha 1989) between dependency trees, a baseline of Yao et al. (2013).

    `delete`, `insert`, `rename`  the costs, uniform in the paper. A node put for the same one costs nothing. With
              rename=2, as much as a deletion and an insertion, no mapping is bent to rename more: that is better.
    `wordnet` words of one synset, and derivations of each other, are the same too.
    `rounds`  at most so many. Trees keep their order, so what moved is deleted here and inserted there: links come
              of a first edit, and of editing again what no link has taken yet, as long as there are new ones.

    The paper leaves open which of equally cheap edits counts: the one with more equal words, then of words that
    stand at like places. Links are the pairs of nodes that are the same; renamed ones are none. `score` is minus
    the first edit's cost per token. One to one, nothing to train.
    """

    delete: float = 1.0
    insert: float = 1.0
    rename: float = 1.0
    wordnet: bool = True
    rounds: int = 5

    def __post_init__(self) -> None:
        for name in ("delete", "insert", "rename"):
            if not 0 < getattr(self, name) <= DEAREST:
                raise ConfigError(f"{name}={getattr(self, name)}: a cost is above 0, and at most {DEAREST:g}")
        if self.rounds < 1:
            raise ConfigError(f"rounds={self.rounds}: there must be one at least")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("head", "lemma", *["pos"] * self.wordnet)

    @property
    def resources(self) -> tuple[str, ...]:
        return ("wordnet",) * self.wordnet

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        return [alignment for some in portions(pairs, _size, CELLS_AT_ONCE) for alignment in self._align(some)]

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
        """Alignments of pairs that have words on both sides; half of them after the other where they are many."""
        if not pairs:
            return []
        problem = Problem(pairs, words_of(pairs, self.wordnet))
        source, target = problem.trees
        entries = source.entries * target.entries
        if entries.max() > LARGEST_PAIR:
            raise ConfigError(_too_large(pairs[int(entries.argmax())], int(entries.max())))
        if entries.sum() > AT_ONCE and len(pairs) > 1:
            half = len(pairs) // 2
            return self._edited(pairs[:half]) + self._edited(pairs[half:])
        links, cost = self._rounds(problem)
        return _alignments(problem, links, -cost / sum(problem.sizes))

    def _rounds(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Links [2, K] as tokens numbered through, and the cost [P] of the first edit of each pair."""
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
        """[2, K] tokens that the cheapest edit puts for each other."""
        delete, insert = round(self.delete * UNIT), round(self.insert * UNIT)
        source, target = problem.trees
        nodes = mapping(source, target, problem.costs(self.rename), delete, insert)
        return np.stack(
            [
                side.token[trees.token[of]]
                for side, trees, of in zip(problem.sides, problem.trees, nodes, strict=True)
            ]
        )

    def _cost(self, problem: Problem, mapped: np.ndarray, same: np.ndarray) -> np.ndarray:
        kept, put = (
            np.bincount(problem.pair[0][tokens[0]], minlength=len(problem.number)) for tokens in (same, mapped)
        )
        deleted, inserted = (size - put for size in problem.sizes)
        return self.delete * deleted + self.insert * inserted + self.rename * (put - kept)


def _alignments(problem: Problem, links: np.ndarray, score: np.ndarray) -> list[Alignment]:
    """By pair, from tokens that are numbered through."""
    pair = problem.pair[0][links[0]]
    local = links - np.stack([(np.cumsum(size) - size)[pair] for size in problem.sizes])
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
        f"a pair of {len(pair.source)} x {len(pair.target)} tokens needs tables of {entries:,} entries or more, "
        f"and {LARGEST_PAIR:,} is what this fills: split it into sentences"
    )


def _size(pair: SentencePair) -> int:
    size = len(pair.source) * len(pair.target)
    if size > LARGEST_PAIR:
        raise ConfigError(_too_large(pair, size))
    return size
