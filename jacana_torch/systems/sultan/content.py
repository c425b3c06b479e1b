"""cwDepAlign and cwTextAlign: content words, by the dependencies that they share and by the words around them.

In: a `Board`. Its links out. One thing is stricter than in the paper: paraphrases without any like word around
them are not linked (of these, fewer than a third are right on MSR's dev set); the same words are.
"""

from __future__ import annotations

import numpy as np

from .board import Board, best_first, link_in_order
from .dependencies import equivalent
from .similarity import SAME

WINDOW = 3  # words on either side
MOST = 1 << 22  # edges that meet, at a time


def link_by_dependencies(board: Board) -> None:
    """Algorithm 3: cells with evidence, the best first, each with the pairs of words that are its evidence.

    Stop words that are evidence wait for the stages that know more about them.
    """
    width = board.level.shape[1]
    at, by = evidence(board)
    one, other = board.free
    source, target = board.source.content & one, board.target.content & other
    kept = source[at // width] & target[at % width]
    at, by = at[kept], by[kept]
    cells, first, where = np.unique(at, return_index=True, return_inverse=True)
    context = np.bincount(where, board.value.ravel()[by], len(cells))
    i, j = np.divmod(cells, width)
    order = best_first(board, i, j, board.score(i, j, context), neighbourhood(board)[i, j])
    # Each cell followed by its evidence: it is linked only where the cell itself was, so not by `link_in_order`.
    linkable = ~board.source.stop[by // width]
    ends = np.append(first, len(at)).tolist()
    free = [side.tolist() for side in board.free]
    for k in order.tolist():
        if _link(board, free, int(i[k]), int(j[k])):
            some = slice(ends[k], ends[k + 1])
            for cell in by[some][linkable[some]].tolist():
                _link(board, free, *divmod(cell, width))


def _link(board: Board, free: list[list[bool]], i: int, j: int) -> bool:
    if not (free[0][i] and free[1][j]):
        return False
    free[0][i] = free[1][j] = False
    board.links[i, j] = True
    return True


def evidence(board: Board) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 for all cells at once: (cell, the cell of two neighbours that are its context), by cell."""
    source, target, width = board.source.edges, board.target.edges, board.level.shape[1]
    like = (board.level > 0) & (board.source.category[:, None] == board.target.category)
    like &= (board.source.category > 0)[:, None]
    found = [np.zeros((2, 0), dtype=np.int64)]
    step = max(1, MOST // max(len(target), 1))
    for start in range(0, len(source), step):
        some = slice(start, start + step)
        meet = like[source.here[some, None], target.here] & like[source.there[some, None], target.there]
        a, b = np.nonzero(meet & equivalent(source, target, some))
        a += start
        found.append(
            np.stack([source.here[a] * width + target.here[b], source.there[a] * width + target.there[b]])
        )
    cell, by = np.unique(np.concatenate(found, axis=1), axis=1)
    return cell, by


def neighbourhood(board: Board) -> np.ndarray:
    """Algorithm 2 for all cells at once: [M, N] the likeness of the content words around the two words."""
    value = np.zeros((len(board.source) + 1, len(board.target) + 1))  # the last row and column: no word
    value[:-1, :-1] = board.value
    rows = np.zeros((len(board.source), value.shape[1]))
    for column in around(board.source.content, WINDOW).T:
        rows += value[column]
    found = np.zeros(board.level.shape)
    for column in around(board.target.content, WINDOW).T:
        found += rows[:, column]
    return found


def around(wanted: np.ndarray, window: int) -> np.ndarray:
    """[T, 2 * window] the words of the wanted kind that are at most so far from each; T where there is none."""
    size = len(wanted)
    steps = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
    places = np.arange(size)[:, None] + steps
    inside = (places >= 0) & (places < size)
    places = np.where(inside, places, size)
    return np.where(np.append(wanted, False)[places], places, size)


def link_by_neighbourhood(board: Board) -> None:
    """Algorithm 4: like content words that are left, the best first."""
    i, j = board.free_cells(board.source.content, board.target.content)
    near = neighbourhood(board)[i, j]
    kept = (board.level[i, j] == SAME) | (near > 0)
    i, j, near = i[kept], j[kept], near[kept]
    order = best_first(board, i, j, board.score(i, j, near))
    link_in_order(board, i[order], j[order])
