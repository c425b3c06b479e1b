"""The dependency trees of one side of a grid, flattened: heads, relations and edges of all its sentences.

In: a `Grid` with the layers `head` and `deprel`. Out: a `Forest` for each side. Tokens are numbered through all
sentences of a side, as in the grid, so an edge never leaves its sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import JacanaError
from .dependency_relations import canonical
from .grid import Grid


@dataclass(frozen=True)
class Forest:
    """`head` [T] flat head or -1, `relation` [T] number of the relation to it, `children` [T] how many.

    `parent`, `child`, `label` [E] are the edges: those of the trees, and behind them from `n_plain` on those that
    skip a preposition (`prep_of`), as in Stanford's collapsed dependencies.
    """

    head: np.ndarray
    relation: np.ndarray
    children: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    label: np.ndarray
    n_plain: int


def forests(grid: Grid) -> tuple[Forest, Forest, list[str]]:
    """Both sides' trees, and the names of the relations, which they number alike."""
    number: dict[str, int] = {}
    source = _forest(grid, "source", number)
    target = _forest(grid, "target", number)
    return source, target, list(number)


def _forest(grid: Grid, side: str, number: dict[str, int]) -> Forest:
    tokens: list[str] = getattr(grid, f"{side}_tokens")
    head = _heads(grid, side)
    layer = grid.source_layer if side == "source" else grid.target_layer
    names = [canonical(str(label)) for label in layer("deprel")]
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


def _heads(grid: Grid, side: str) -> np.ndarray:
    """[T] flat heads; one that lies outside its sentence would read another pair's cells, so it is an error."""
    layer = grid.source_layer if side == "source" else grid.target_layer
    local = np.array(layer("head"), dtype=np.int64)
    pair: np.ndarray = getattr(grid, f"{side}_pair")
    position = getattr(grid, f"{side}_position")
    outside = (local >= getattr(grid, f"n_{side}")[pair]) | (local < -1)
    if outside.any():
        token = int(np.flatnonzero(outside)[0])
        sentence = getattr(grid.pairs[pair[token]], side)
        raise JacanaError(
            f"token {position[token]} of {str(sentence)[:60]!r} has head {local[token]}, which is no token of its "
            f"{len(sentence)}: heads count from 0, and a root's is -1"
        )
    local = np.where(local == position, -1, local)  # some parsers write a root as its own head
    return np.where(local >= 0, local + getattr(grid, f"{side}_start")[pair], -1)


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
