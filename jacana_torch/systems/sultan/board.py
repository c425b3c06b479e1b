"""What the stages of the pipeline share: two sentences, how alike their words are, and the links so far.

Also how any stage chooses among rivals: the best first, and a word once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .word_tables import Words


@dataclass
class Board:
    """`level` [M, N] from similarity.py; `similarity`, what a paraphrase counts beside 1 for the same word;
    `weight`, what the likeness of two words counts beside that of their contexts; `links` [M, N], those so far."""

    source: Words
    target: Words
    level: np.ndarray
    similarity: float
    weight: float
    links: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.links = np.zeros(self.level.shape, dtype=bool)

    @cached_property
    def value(self) -> np.ndarray:
        """[M, N] the likeness of the words as a number."""
        return np.array([0.0, self.similarity, 1.0])[self.level]

    @cached_property
    def identical(self) -> np.ndarray:
        """[M, N] bool, words of the same form."""
        number = {form: k for k, form in enumerate(self.source.forms)}
        one = np.array([number[form] for form in self.source.forms], dtype=np.int64)
        other = np.array([number.get(form, -1) for form in self.target.forms], dtype=np.int64)
        return one[:, None] == other

    def score(self, i: np.ndarray, j: np.ndarray, context: np.ndarray) -> np.ndarray:
        """What cells with that much context are worth."""
        return self.weight * self.value[i, j] + (1 - self.weight) * context

    @property
    def free(self) -> tuple[np.ndarray, np.ndarray]:
        """[M] and [N] bool, the words without a link."""
        return np.logical_not(self.links.any(axis=1)), np.logical_not(self.links.any(axis=0))

    def free_cells(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells of like words, both without a link, and of these kinds ([M] and [N] bool)."""
        one, other = self.free
        rows, columns = np.flatnonzero(one & source), np.flatnonzero(other & target)
        at = np.nonzero(self.level[np.ix_(rows, columns)])
        return rows[at[0]], columns[at[1]]


def best_first(board: Board, i: np.ndarray, j: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """The order of cells: by the keys, the greatest first, then the nearest to the diagonal.

    The rest of the order only makes it the same from either side: cells that it still holds equal are no rivals.
    """
    m, n = board.level.shape
    off = np.abs((2 * i + 1) * n - (2 * j + 1) * m)
    return np.lexsort((np.abs(i - j), i + j, off, *(-key for key in reversed(keys))))


def link_in_order(board: Board, i: np.ndarray, j: np.ndarray) -> None:
    """Link cells one after the other where neither word has a link yet."""
    one, other = (free.tolist() for free in board.free)
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        if one[a] and other[b]:
            one[a] = other[b] = False
            board.links[a, b] = True
