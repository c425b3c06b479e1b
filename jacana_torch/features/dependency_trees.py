"""The dependency trees of both sides of a grid, flattened, and where the trees of two sentences agree.

Tokens are numbered through all sentences of a side, as in the grid, so an edge never leaves its sentence.
Agreement is a sparse list of similar neighbours. It is found from the cells of similar words outwards, so its
cost is that of these cells and their neighbours, not of all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import JacanaError
from ..types import Sentence
from .dependency_relations import canonical
from .grid import Grid


@dataclass(frozen=True)
class Forest:
    """The trees of one side.

    `head` [T] the token number of the head or -1, `relation` [T] the number of the relation to it, `children` [T]
    the number of children. `parent`, `child`, `label` [E] are the edges: those of the trees, and from `n_plain` on
    those that skip a preposition (`prep_of`), as in Stanford's collapsed dependencies.
    """

    head: np.ndarray
    relation: np.ndarray
    children: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    label: np.ndarray
    n_plain: int


def forests(grid: Grid) -> tuple[Forest, Forest, list[str]]:
    """The trees of both sides, and the names of the relations by their numbers."""
    number: dict[str, int] = {}
    source = _forest([pair.source for pair in grid.pairs], grid.source_pair, grid.source_start, number)
    target = _forest([pair.target for pair in grid.pairs], grid.target_pair, grid.target_start, number)
    return source, target, list(number)


def _forest(
    sentences: Sequence[Sentence], sentence: np.ndarray, start: np.ndarray, number: dict[str, int]
) -> Forest:
    """The trees of some sentences: `sentence` [T] of each token, `start` the first token of each sentence."""
    head = _heads(sentences, sentence, start)
    tokens = [token for s in sentences for token in s.tokens]
    names = [canonical(str(label)) for s in sentences for label in s.layer("deprel")]
    relation = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
    child = np.flatnonzero(head >= 0)
    parent = head[child]
    extra = _without_prepositions(tokens, names, head)
    labels = np.array([number.setdefault(name, len(number)) for _, _, name in extra], dtype=np.int64)
    return Forest(
        head,
        relation,
        np.bincount(parent, minlength=len(head)),
        np.concatenate([parent, np.array([e[0] for e in extra], dtype=np.int64)]),
        np.concatenate([child, np.array([e[1] for e in extra], dtype=np.int64)]),
        np.concatenate([relation[child], labels]),
        len(child),
    )


def _heads(sentences: Sequence[Sentence], sentence: np.ndarray, start: np.ndarray) -> np.ndarray:
    """[T] the token number of each head. A head outside of its sentence would be in another pair: an error."""
    local = np.array([head for s in sentences for head in s.layer("head")], dtype=np.int64)
    position = np.arange(len(sentence)) - start[sentence]
    size = np.array(list(map(len, sentences)), dtype=np.int64)
    outside = np.flatnonzero((local >= size[sentence]) | (local < -1))
    if len(outside):
        token = int(outside[0])
        text = str(sentences[sentence[token]])
        raise JacanaError(
            f"token {position[token]} of {text[:60]!r} has head {local[token]}, which is no token of its "
            f"{size[sentence[token]]}: heads count from 0, and a root's is -1"
        )
    local = np.where(local == position, -1, local)  # some parsers write a root as its own head
    return np.where(local >= 0, local + start[sentence], -1)


def _without_prepositions(tokens: list[str], names: list[str], head: np.ndarray) -> list[tuple[int, int, str]]:
    """Edges from a word to its preposition's object: Stanford's prep + pobj, or UD's obl/nmod with a case."""
    passive = {int(h) for h, name in zip(head, names, strict=True) if name in ("nsubjpass", "auxpass")}
    edges = []
    for token, name in enumerate(names):
        above = int(head[token])
        if above < 0:
            continue
        if name in ("pobj", "pcomp") and names[above] in ("prep", "agent") and head[above] >= 0:
            edges.append(_prepositional(int(head[above]), token, tokens[above], names[above], passive))
        elif name == "case" and names[above] in ("obl", "nmod", "agent") and head[above] >= 0:
            edges.append(_prepositional(int(head[above]), above, tokens[token], names[above], passive))
    return edges


def _prepositional(parent: int, child: int, word: str, name: str, passive: set[int]) -> tuple[int, int, str]:
    agent = name == "agent" or (word.lower() == "by" and parent in passive)
    return parent, child, "agent" if agent else f"prep_{word.lower()}"


# Where two trees agree


@dataclass(frozen=True)
class Neighbours:
    """The edges of each token k, in both directions: start[k] .. start[k] + degree[k] - 1.

    `token` the other end, `up` whether it is the head, `label` the relation.
    """

    start: np.ndarray
    degree: np.ndarray
    token: np.ndarray
    up: np.ndarray
    label: np.ndarray

    @staticmethod
    def of(forest: Forest, plain: bool = False) -> Neighbours:
        edges = slice(0, forest.n_plain if plain else None)
        parent, child, label = forest.parent[edges], forest.child[edges], forest.label[edges]
        here, there = np.concatenate([parent, child]), np.concatenate([child, parent])
        order = np.argsort(here, kind="stable")
        degree = np.bincount(here, minlength=len(forest.head))
        up = np.repeat([True, False], len(parent))  # seen from the child, `here` is the head
        return Neighbours(
            np.cumsum(degree) - degree, degree, there[order], up[order], np.concatenate([label, label])[order]
        )


class Evidence(NamedTuple):
    """Rows: the words of `cell` (s, t) have the similar neighbours `source` of s and `target` of t, in cell `via`.

    `source_up` and `target_up`: whether the neighbour is the head; the labels: the relations.
    """

    cell: np.ndarray
    source: np.ndarray
    target: np.ndarray
    via: np.ndarray
    source_up: np.ndarray
    target_up: np.ndarray
    source_label: np.ndarray
    target_label: np.ndarray

    def where(self, rows: np.ndarray) -> Evidence:
        return Evidence(*(values[rows] for values in self))

    def matched(self, n_cells: int) -> np.ndarray:
        """[C] how many neighbours can be matched at most one to one, seen from the side that has fewer."""
        source, target = _distinct(self.cell, self.source, n_cells), _distinct(self.cell, self.target, n_cells)
        return np.asarray(np.minimum(source, target))


def _distinct(cell: np.ndarray, token: np.ndarray, n_cells: int) -> np.ndarray:
    if not len(cell):
        return np.zeros(n_cells, dtype=np.int64)
    size = int(token.max()) + 1
    return np.bincount(np.unique(cell * size + token) // size, minlength=n_cells)


def gather(grid: Grid, alike: np.ndarray, source: Neighbours, target: Neighbours) -> Evidence:
    """Every pair of neighbours of the cells `alike` [L], whose words are similar."""
    k, l = grid.source_token[alike], grid.target_token[alike]  # noqa: E741 (the paper's letters)
    width = target.degree[l]
    counts = source.degree[k] * width
    row = np.repeat(np.arange(len(alike)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    a = source.start[k][row] + within // width[row]
    b = target.start[l][row] + within % width[row]
    pair = grid.pair[alike][row]
    s, t = source.token[a], target.token[b]
    cell = grid.cell_at(pair, s - grid.source_start[pair], t - grid.target_start[pair])
    return Evidence(
        cell, k[row], l[row], alike[row], source.up[a], target.up[b], source.label[a], target.label[b]
    )  # fmt: skip
