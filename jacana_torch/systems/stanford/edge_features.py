"""What the Stanford aligner knows of two words and of two links: lexical and syntactic features of many pairs.

In: pairs with tags, lemmas and a parse. Out: a `Problem` for each, features for every cell and, for two links on
the ends of an edge of the target's tree, how their source tokens are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...features.dependency_relations import canonical, relation_class
from ...features.grid import Grid
from ...features.wordlists import WORD_CLASSES, word_class
from ...types import SentencePair
from .paths import PATHS, SAME_RELATION, Tree, paths, tree
from .word_scores import Lexicon, Word

CLASSES = ("function", "punct", "content")  # of target tokens, for what is learnt of each class for itself
CLASS_OF = np.array([CLASSES.index(name) if name in CLASSES else 2 for name in WORD_CLASSES])
_BY_CLASS = (
    "link", "left_alike", "right_alike", "both_alike", "next_left_alike", "next_right_alike", "head_alike",
    "child_alike", "same_relation", "same_relation_class", "far", "rival_nearer", "no_rival", "identical",
)  # fmt: skip
_DECIMALS = 9  # sums in another order must not break ties
JOINT = tuple(f"{c}.{p}" for c in CLASSES for p in PATHS)


@dataclass(frozen=True)
class Problem:
    """`cells` [N, M, K] features of links; what is learnt of them, of some for each class of target tokens, `kind`
    [N], is laid out by `Extractor`. `tree`: the target's. `path` [M + 1, M + 1]: how the choices of a head and of
    its child are joined. `same` [N, M]: whether two tokens have one relation to their heads."""

    cells: np.ndarray
    tree: Tree
    path: np.ndarray
    same: np.ndarray
    kind: np.ndarray

    def joints(self) -> np.ndarray:
        """[E, M + 1, M + 1] which of JOINT joins the choices of an edge's ends."""
        direct = self.path == 0
        of = np.repeat(self.path[None], len(self.tree.child), axis=0)  # of one byte each
        same = np.zeros((len(self.tree.child), len(self.path)), dtype=bool)
        same[:, :-1] = self.same[self.tree.child]
        of[direct[None] & same[:, None, :]] = SAME_RELATION
        of += (len(PATHS) * self.kind[self.tree.child]).astype(np.int8)[:, None, None]
        return of


class Extractor:
    """Weights of links are those of `names`: of two words, then of where they stand for each of CLASSES."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self.names = (*lexicon.names, *(f"{c}.{name}" for c in CLASSES for name in _BY_CLASS))

    def __call__(self, pairs: Sequence[SentencePair]) -> list[Problem]:
        grid = Grid(pairs)
        words = grid.words("token", "lemma", "pos")
        table, alike = self._lexicon([Word.of(*value) for value in words.values], words.left, words.right)
        kind = CLASS_OF[[WORD_CLASSES.index(word_class(token)) for token in grid.target_tokens]]
        trees = [[tree(side) for side in (pair.source, pair.target)] for pair in pairs]
        same = _relations(grid)
        context = _context(grid, alike[words.cell], trees, same)
        identical = table[words.cell, :1]
        cells = np.concatenate([table[words.cell], context, identical], axis=1).astype(np.float32)
        return [
            self._problem(grid, k, cells, same[0], kind, source, target)
            for k, (source, target) in enumerate(trees)
        ]

    def scores(self, problem: Problem, weights: np.ndarray) -> np.ndarray:
        """[N, M] of links, under weights of `names`."""
        of_words = len(self._lexicon.names)
        of_class = weights[of_words:].reshape(len(CLASSES), -1)[problem.kind]
        own = np.concatenate([np.broadcast_to(weights[:of_words], (len(of_class), of_words)), of_class], axis=1)
        return np.round((problem.cells @ own[:, :, None])[:, :, 0], _DECIMALS)

    def total(self, problem: Problem, choice: np.ndarray) -> np.ndarray:
        """The features of a map's links, summed as `names`."""
        of_words = len(self._lexicon.names)
        linked = np.flatnonzero(choice < problem.cells.shape[1])
        own = problem.cells[linked, choice[linked]].astype(np.float64)
        of_class = np.zeros((len(CLASSES), len(_BY_CLASS)))
        np.add.at(of_class, problem.kind[linked], own[:, of_words:])
        return np.concatenate([own[:, :of_words].sum(axis=0), of_class.ravel()])

    def _problem(
        self, grid: Grid, k: int, cells: np.ndarray, same: np.ndarray, kind: np.ndarray, source: Tree, target: Tree
    ) -> Problem:
        m, n, start = int(grid.n_source[k]), int(grid.n_target[k]), int(grid.cell_start[k])
        part = slice(start, start + m * n)
        own = cells[part].reshape(m, n, cells.shape[1]).transpose(1, 0, 2)
        first = int(grid.target_start[k])
        return Problem(own, target, paths(source), same[part].reshape(m, n).T, kind[first : first + n])


def _relations(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[C] whether two tokens have the same relation to their heads, and one of the same class."""
    number: dict[str, int] = {}
    sides = [
        [canonical(str(label)) for label in layer("deprel")] for layer in (grid.source_layer, grid.target_layer)
    ]
    out = []
    for name_of in (str, relation_class):
        ids = [
            np.array([number.setdefault(name_of(x), len(number)) for x in side], dtype=np.int64) for side in sides
        ]
        out.append(ids[0][grid.source_token] == ids[1][grid.target_token])
    return out[0], out[1]


def _context(
    grid: Grid, alike: np.ndarray, trees: Sequence[Sequence[Tree]], same: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """[C, V] what stands beside two words, above and below them, and whether others are as alike and nearer."""
    padded = np.append(alike, 0.0)  # what is outside is at -1
    left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
    heads = [np.concatenate([side[k].head for side in trees] or [np.zeros(0, np.int64)]) for k in (0, 1)]
    above = grid.cell_at(grid.pair, heads[0][grid.source_token], heads[1][grid.target_token])
    inside = (heads[0][grid.source_token] >= 0) & (heads[1][grid.target_token] >= 0)
    below = np.zeros(len(alike) + 1)
    np.maximum.at(below, np.where(inside, above, -1), alike)
    roots = (heads[0][grid.source_token] < 0) & (heads[1][grid.target_token] < 0)
    far = np.abs((grid.m + 0.5) / grid.n_source[grid.pair] - (grid.n + 0.5) / grid.n_target[grid.pair])
    nearer, alone = _rivals(grid, alike)
    return np.column_stack([
        np.ones(len(alike)), left, right, left * right,
        padded[grid.shift(-2, -2)], padded[grid.shift(2, 2)],
        np.where(inside, padded[above], 0.5 * roots), below[:-1],
        same[0], same[1], far, nearer, alone,
    ])  # fmt: skip


def _rivals(grid: Grid, alike: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[C] whether another source token is as alike to the target token as this one, or more, and nearer; and
    whether there is none as alike or more."""
    m, n = grid.n_source[grid.pair], grid.n_target[grid.pair]
    away = np.abs((2 * grid.m + 1) * n - (2 * grid.n + 1) * m)  # whole numbers: equal is equal
    order = np.lexsort((-alike, grid.target_token))  # each target token's cells, the most alike first
    token, value = grid.target_token[order], alike[order]
    apart = token * (int(away.max(initial=0)) + 1)  # what is near to one token stays out of the next one's
    nearest = np.minimum.accumulate(away[order] - apart) + apart
    new = np.append(True, (np.diff(token) != 0) | (np.diff(value) != 0))[: len(order)]
    group = np.cumsum(new) - 1
    last = np.append(np.flatnonzero(new)[1:] - 1, len(order) - 1)[group] if len(order) else group
    nearer, alone = np.empty(len(order), dtype=bool), np.empty(len(order), dtype=bool)
    nearer[order] = nearest[last] < away[order]
    alone[order] = last == np.searchsorted(token, token)
    return nearer, alone
