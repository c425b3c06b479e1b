"""wsAlign: words that stand in the same sequence in both sentences, and words written with hyphens and without.

In: a `Board`. Its links out. Hyphens are the original code's; the paper does not speak of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .board import Board, best_first, link_in_order
from .content import neighbourhood

SHORTEST = 2


def link_sequences(board: Board) -> None:
    """The longest common sequences first; one without content words is none."""
    i, j, length = runs(board.identical)
    weighty = np.concatenate([[0], np.cumsum(board.source.content)])
    kept = (length >= SHORTEST) & (weighty[i + length] > weighty[i])
    i, j, length = i[kept], j[kept], length[kept]
    order = best_first(board, i, j, length)
    i, j, length = i[order], j[order], length[order]
    within = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    link_in_order(board, np.repeat(i, length) + within, np.repeat(j, length) + within)


def runs(same: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the longest runs along diagonals of true cells begin (row, column), and how long they are."""
    i, j = np.nonzero(same)
    order = np.lexsort((i, j - i))
    i, j = i[order], j[order]
    if not len(i):
        return i, j, i
    first = np.flatnonzero(np.concatenate([[True], (np.diff(i) != 1) | (np.diff(j) != 1)]))
    return i[first], j[first], np.diff(np.concatenate([first, [len(i)]]))


def link_hyphenated(board: Board) -> None:
    """A word with hyphens and words that it is made of, where at least two of these follow one another."""
    for cells, length, _ in _in_parts(board):
        if length >= SHORTEST:
            board.links[tuple(np.transpose(cells))] = True


def link_compounds(board: Board) -> None:
    """A word with hyphens and the content word that is its last part, where there are like words around both."""
    cells = [cells[0] for cells, length, is_last in _in_parts(board) if length == 1 and is_last]
    i, j = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    near = neighbourhood(board)[i, j]
    kept = (near > 0) & board.source.content[i] & board.target.content[j]
    i, j, near = i[kept], j[kept], near[kept]
    order = best_first(board, i, j, near)
    link_in_order(board, i[order], j[order])


def _in_parts(board: Board) -> Iterator[tuple[list[tuple[int, int]], int, bool]]:
    """(cells, how many, whether the last part is among them) of a free word with hyphens, and of free words in a
    row that are parts of it in a row."""
    one, other = board.free
    for here, there, own, free, turn in (
        (board.source, board.target, one, other, 1),
        (board.target, board.source, other, one, -1),
    ):
        forms = np.array(there.forms, dtype=object)
        for k, form in enumerate(here.forms):
            parts = [part for part in form.split("-") if part] if own[k] and "-" in form else []
            if len(parts) < SHORTEST:
                continue
            same = (np.array(parts, dtype=object)[:, None] == forms) & free
            for first, at, length in zip(*(part.tolist() for part in runs(same)), strict=True):
                cells = [(k, place) if turn > 0 else (place, k) for place in range(at, at + length)]
                yield cells, length, first + length == len(parts)
