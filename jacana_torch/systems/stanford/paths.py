"""Dependency trees of single sentences, and how two tokens are joined in one.

In: sentences with heads. Out: `Tree`, and for every two tokens (or nothing) one of `PATHS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import JacanaError
from ...types import Sentence

# How the choices of a head and of its child in the target are joined in the source.
PATHS = (
    "child", "child_same_relation", "parent", "grandchild", "grandparent", "sibling", "descendant", "ancestor",
    "near", "else", "head_alone", "child_alone", "neither",
)  # fmt: skip
SAME_RELATION = PATHS.index("child_same_relation")
NOTHING = PATHS.index("neither")
_NEAR = 3  # tokens apart


@dataclass(frozen=True)
class Tree:
    """`head` [N], -1 for a root. `child` [E]: the tokens that have one, and `levels`, numbers of them, the deepest
    tokens first."""

    head: np.ndarray
    child: np.ndarray
    levels: list[np.ndarray]


def tree(sentence: Sentence) -> Tree:
    head = np.array(sentence.layer("head"), dtype=np.int64)
    n = len(head)
    if ((head < -1) | (head >= n)).any():
        raise JacanaError(
            f"{str(sentence)[:60]!r} of {n} tokens has the heads {head.tolist()}: they count from 0, and a root's "
            "is -1"
        )
    head = np.where(head == np.arange(n), -1, head)  # some parsers write a root as its own head
    depth, at = np.zeros(n, dtype=np.int64), head
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, head[at], -1)
        if depth.max(initial=0) > n:
            raise JacanaError(f"the heads of {str(sentence)[:60]!r} go round in circles: a parse is a tree")
    child = np.flatnonzero(head >= 0)
    levels = [np.flatnonzero(depth[child] == d) for d in range(int(depth.max(initial=0)), 0, -1)]
    return Tree(head, child, levels)


def paths(source: Tree) -> np.ndarray:
    """[M + 1, M + 1] how a head's choice and its child's are joined; the last choice is nothing."""
    m = len(source.head)
    out = np.full((m + 1, m + 1), PATHS.index("else"), dtype=np.int8)
    tokens = np.arange(m)
    near = np.abs(tokens[:, None] - tokens) <= _NEAR
    out[:m, :m][near] = PATHS.index("near")
    above = _above(source)
    out[:m, :m][above] = PATHS.index("descendant")
    out[:m, :m][above.T] = PATHS.index("ancestor")
    same = (source.head[:, None] == source.head) & (source.head >= 0)
    out[:m, :m][same] = PATHS.index("sibling")
    grand = np.where(source.head >= 0, source.head[source.head], -1)
    for up, down, name in ((grand, "grandchild", "grandparent"), (source.head, "child", "parent")):
        has = np.flatnonzero(up >= 0)
        out[up[has], has] = PATHS.index(down)
        out[has, up[has]] = PATHS.index(name)
    out[:m, m], out[m, :m], out[m, m] = PATHS.index("head_alone"), PATHS.index("child_alone"), NOTHING
    return out


def _above(source: Tree) -> np.ndarray:
    """[M, M] whether the first is somewhere above the second."""
    m = len(source.head)
    out = np.zeros((m, m), dtype=bool)
    at = source.head
    while (at >= 0).any():
        below = np.flatnonzero(at >= 0)
        out[at[below], below] = True
        at = np.where(at >= 0, source.head[at], -1)
    return out
