"""What is left to edit of many pairs: trees of the tokens that no link has taken yet, and what it costs to put a
token of one for a token of the other.

In: pairs with heads, and how alike their words are. Out: `Problem`, which shrinks as links are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import JacanaError
from ...types import Sentence, SentencePair
from .edit_costs import EQUAL, OTHER, Words
from .trees import Ordered, in_circles, ordered

UNIT = 1 << 28  # what a cost of 1 is in whole numbers: beside it there is room for preferences among equals


@dataclass
class Side:
    """Tokens that are left: `head` [T] among them, or -1; `token` [T] their numbers among all; `size` [P]."""

    head: np.ndarray
    token: np.ndarray
    size: np.ndarray

    @property
    def first(self) -> np.ndarray:
        return np.cumsum(self.size) - self.size

    def without(self, taken: np.ndarray, pairs: np.ndarray) -> Side:
        """Without the tokens `taken` [T]: what hung on them hangs on what they hung on. Of some pairs [P]."""
        head = self.head
        while len(above := np.flatnonzero((head >= 0) & taken[head])):
            head = head.copy()
            head[above] = head[head[above]]
        left = ~taken & np.repeat(pairs, self.size)
        number = np.append(np.cumsum(left) - 1, -1)  # a head of -1 stays one
        sentence = np.repeat(np.arange(len(self.size)), self.size)
        size = np.bincount(sentence[left], minlength=len(self.size))[pairs]
        return Side(number[head][left], self.token[left], size)


class Problem:
    """`sides`: source and target. `number` [P]: which of the pairs at the beginning are left.

    `place` [T] of each token of a side, from 0 to 1; `pair` [T] its pair at the beginning; of both sides.
    """

    def __init__(self, pairs: Sequence[SentencePair], words: Words) -> None:
        self.words = words
        self.number = np.arange(len(pairs))
        sentences = [pair.source for pair in pairs], [pair.target for pair in pairs]
        self.sides = [_side(side) for side in sentences]
        self.sizes = [side.size for side in self.sides]
        self.pair = [np.repeat(self.number, size) for size in self.sizes]
        self.place = [
            (np.arange(len(pair)) - side.first[pair] + 0.5) / side.size[pair]
            for side, pair in zip(self.sides, self.pair, strict=True)
        ]
        self._ordered: list[Ordered] | None = None

    @property
    def trees(self) -> list[Ordered]:
        if self._ordered is None:
            self._ordered = [ordered(side.head, side.size) for side in self.sides]
        return self._ordered

    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens, source and target, of every cell: by pair, target node, source node, in postorder."""
        source, target = self.trees
        row = np.repeat(np.arange(len(self.number)), target.size)  # the pair of each target node
        width = source.size[row]
        node = np.repeat(np.arange(len(row)), width)
        other = np.arange(len(node)) - np.repeat(np.cumsum(width) - width - source.first[row], width)
        return self.sides[0].token[source.token[other]], self.sides[1].token[target.token[node]]

    def costs(self, rename: float) -> np.ndarray:
        """[cells] of putting one node for another; among edits of one cost, those with more equal words come
        first, then those of words at like places."""
        source, target = self.cells()
        alike = self.words.alike(source, target)
        smaller = np.minimum(*self.sizes)[self.pair[0][source]]
        equal = UNIT // (256 * smaller)
        far = np.abs(self.place[0][source] - self.place[1][target]) * (equal // (4 * smaller))
        cost = np.where(alike == OTHER, round(rename * UNIT), np.where(alike == EQUAL, -equal, -(equal // 2)))
        return cost + np.rint(far).astype(np.int64)

    def take(self, links: np.ndarray) -> None:
        """Links [2, K] of tokens are made: on with what is left of pairs that have any, and might have more."""
        taken = [np.zeros(len(pair), dtype=bool) for pair in self.pair]
        some = np.zeros(len(self.sizes[0]), dtype=bool)
        some[self.pair[0][links[0]]] = True
        for side, tokens in zip(taken, links, strict=True):
            side[tokens] = True
        self._keep(taken, some[self.number])
        self._keep([np.zeros_like(side) for side in taken], self._promising())

    def _keep(self, taken: Sequence[np.ndarray], pairs: np.ndarray) -> None:
        self.sides = [s.without(t[s.token], pairs) for s, t in zip(self.sides, taken, strict=True)]
        self.number = self.number[pairs]
        self._ordered = None

    def _promising(self) -> np.ndarray:
        """[P] whether any word of the one sentence is like one of the other."""
        source, target = self.sides
        count = source.size * target.size
        pair = np.repeat(np.arange(len(count)), count)
        m, n = np.divmod(np.arange(len(pair)) - (np.cumsum(count) - count)[pair], target.size[pair])
        tokens = source.token[source.first[pair] + m], target.token[target.first[pair] + n]
        alike = self.words.alike(*tokens) != OTHER
        return np.bincount(pair, alike, minlength=len(count)) > 0


def _side(sentences: Sequence[Sentence]) -> Side:
    size = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    first = np.cumsum(size) - size
    local = np.array([head for sentence in sentences for head in sentence.layer("head")], dtype=np.int64)
    sentence = np.repeat(np.arange(len(size)), size)
    position = np.arange(len(local)) - first[sentence]
    outside = np.flatnonzero((local < -1) | (local >= size[sentence]))
    if len(outside):
        where = sentences[int(sentence[outside[0]])]
        raise JacanaError(
            f"token {position[outside[0]]} of {str(where)[:60]!r} has head {local[outside[0]]}, which is no token "
            f"of its {len(where)}: heads count from 0, and a root's is -1"
        )
    root = (local < 0) | (local == position)  # some parsers write a root as its own head
    side = Side(np.where(root, -1, local + first[sentence]), np.arange(len(local)), size)
    circle = in_circles(side.head)
    if len(circle):
        where = sentences[int(sentence[circle[0]])]
        raise JacanaError(f"the heads of {str(where)[:60]!r} go round in circles: a parse is a tree")
    return side
