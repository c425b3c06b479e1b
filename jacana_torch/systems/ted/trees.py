"""Many dependency trees at once as the edit distance reads them: nodes in postorder, and the ranges of its tables.

In: heads of all tokens of all sentences, numbered through. Out: an `Ordered`. A sentence may have any number of
roots. Children are visited from the right: English branches to the right, and what the last child holds then needs
no table of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ordered:
    """Sentences' nodes in postorder, those of a sentence together.

    `first`, `size`  [S] number of each sentence's first node, and how many it has.
    `token`  [T] which token a node is;  `low`  [T] first node of its subtree, counted within the sentence.
    `range`  [T] the range on whose outermost path a node lies, the one that gives its subtree a table.
    Ranges, ordered by sentence, the whole sentence first: `owner`, `begin` (the first node, within the sentence),
    `width` (how many nodes), `level` (how deeply other ranges are nested in it): all [R];  `ranges`  [S] how many.
    """

    first: np.ndarray
    size: np.ndarray
    token: np.ndarray
    low: np.ndarray
    range: np.ndarray
    owner: np.ndarray
    begin: np.ndarray
    width: np.ndarray
    level: np.ndarray
    ranges: np.ndarray

    @property
    def entries(self) -> np.ndarray:
        """[S] the rows (or columns) of all the tables that a sentence takes part in."""
        return np.bincount(self.owner, self.width + 1, minlength=len(self.size)).astype(np.int64)


def ordered(head: np.ndarray, size: np.ndarray) -> Ordered:
    """Trees of sentences of `size` [S] tokens with flat heads [T] (-1: a root), none of which goes in circles."""
    sentence = np.repeat(np.arange(len(size)), size)
    layers = _layers(head)
    weight = np.ones(len(head), dtype=np.int64)
    for nodes in layers[:0:-1]:
        np.add.at(weight, head[nodes], weight[nodes])
    before = _before_among_siblings(head, sentence, weight)
    low, nested = before.copy(), before > 0
    height, top = np.zeros(len(head), dtype=np.int64), np.zeros(len(size), dtype=np.int64)
    for nodes in layers[1:]:
        low[nodes] += low[head[nodes]]
    for nodes in layers[:0:-1]:
        np.maximum.at(height, head[nodes], height[nodes] + nested[nodes])
    roots = np.flatnonzero(head < 0)
    np.maximum.at(top, sentence[roots], height[roots] + nested[roots])
    return _placed(head, size, sentence, layers, low, weight, nested, height, top)


def _layers(head: np.ndarray) -> list[np.ndarray]:
    """Tokens by their distance from a root."""
    rest = np.flatnonzero(head >= 0)
    deep = np.zeros(len(head), dtype=bool)
    layers = [np.flatnonzero(head < 0)]
    deep[layers[0]] = True
    while len(rest) and len(layers[-1]):
        below = deep[head[rest]]
        layers.append(rest[below])
        rest = rest[~below]
        deep[layers[-1]] = True
    return layers


def in_circles(head: np.ndarray) -> np.ndarray:
    """The tokens that no root is above."""
    return np.setdiff1d(np.arange(len(head)), np.concatenate(_layers(head)))


def _before_among_siblings(head: np.ndarray, sentence: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """[T] how many nodes the siblings hold that are visited before a token: those to its right."""
    parent = np.where(head < 0, len(head) + sentence, head)
    order = np.lexsort((-np.arange(len(head)), parent))
    total = np.cumsum(weight[order]) - weight[order]
    new = np.append(True, np.diff(parent[order]) != 0)[: len(order)]
    out = np.empty_like(weight)
    out[order] = total - total[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return out


def _placed(
    head: np.ndarray,
    size: np.ndarray,
    sentence: np.ndarray,
    layers: list[np.ndarray],
    low: np.ndarray,
    weight: np.ndarray,
    nested: np.ndarray,
    height: np.ndarray,
    top: np.ndarray,
) -> Ordered:
    """Everything by place in postorder instead of by token."""
    first = np.cumsum(size) - size
    place = first[sentence] + low + weight - 1
    keys = np.flatnonzero(nested)  # tokens with a range of their own; before a sentence's, the sentence's own
    number = np.full(len(head), -1, dtype=np.int64)
    number[keys] = np.arange(len(keys)) + sentence[keys] + 1
    whole = np.arange(len(size)) + np.searchsorted(sentence[keys], np.arange(len(size)))
    of = np.where(nested, number, whole[sentence])
    for nodes in layers[1:]:
        inner = nodes[~nested[nodes]]
        of[inner] = of[head[inner]]
    ranges = np.bincount(sentence[keys], minlength=len(size)) + 1
    fields = np.zeros((3, len(keys) + len(size)), dtype=np.int64)
    fields[:, number[keys]] = low[keys], weight[keys], height[keys]
    fields[:, whole] = np.zeros_like(size), size, top
    arranged = np.empty((3, len(head)), dtype=np.int64)
    arranged[:, place] = np.arange(len(head)), low, of
    owner = np.repeat(np.arange(len(size)), ranges)
    token, lowest, of = arranged
    begin, width, level = fields
    return Ordered(first, size, token, lowest, of, owner, begin, width, level, ranges)
