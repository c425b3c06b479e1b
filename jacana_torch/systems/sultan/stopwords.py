"""swDepAlign and swTextAlign: stop words and punctuation, by what has been linked around them.

In: a `Board`. Its links out. One piece of evidence is enough for two stop words of the same form; others ("is",
"was") need two. Beyond the paper: the ends of the sentences are evidence for punctuation, as in the original's
code; words that connect the same two words ("of", "'s") are linked; and the last stage is repeated while it helps.
"""

from __future__ import annotations

import numpy as np

from .board import Board, best_first, link_in_order
from .content import MOST
from .dependencies import equivalent


def link_by_linked_dependencies(board: Board) -> None:
    """Stop words whose heads or dependents, by the same relation, are linked with each other."""
    i, j = board.free_cells(board.source.stop, board.target.stop)
    _link(board, i, j, linked_dependencies(board), beside(board))


def link_markers(board: Board) -> None:
    """Words like "of" and "'s" that connect two words linked with each other, at both ends."""
    one, other = board.source.edges.markers, board.target.edges.markers
    a, b = np.nonzero(board.links[one[:, 1, None], other[:, 1]] & board.links[one[:, 2, None], other[:, 2]])
    i, j = one[a, 0], other[b, 0]
    order = best_first(board, i, j, board.value[i, j])
    link_in_order(board, i[order], j[order])


def link_by_linked_neighbours(board: Board) -> None:
    """Stop words and punctuation whose neighbours to the left or to the right are linked; again while it helps."""
    linked = -1
    while linked < (linked := int(board.links.sum())):
        i, j = board.free_cells(~board.source.content, ~board.target.content)
        _link(board, i, j, beside(board), linked_dependencies(board))


def _link(board: Board, i: np.ndarray, j: np.ndarray, evidence: np.ndarray, more: np.ndarray) -> None:
    """Cells with `evidence`, the best first; those of other forms need a second piece, which may be of `more`."""
    enough = (evidence[i, j] > 0) & (board.identical[i, j] | (evidence[i, j] + more[i, j] > 1))
    i, j = i[enough], j[enough]
    order = best_first(board, i, j, board.score(i, j, evidence[i, j]), more[i, j])
    link_in_order(board, i[order], j[order])


def linked_dependencies(board: Board) -> np.ndarray:
    """[M, N] how many heads and dependents of the two words are linked with each other by the same relation."""
    source, target = board.source.edges, board.target.edges
    count = np.zeros(board.level.shape)
    step = max(1, MOST // max(len(target), 1))
    for start in range(0, len(source), step):
        some = slice(start, start + step)
        linked = board.links[source.there[some, None], target.there]
        a, b = np.nonzero(linked & equivalent(source, target, some, by_table=False))
        np.add.at(count, (source.here[a + start], target.here[b]), 1.0)
    return count


def beside(board: Board) -> np.ndarray:
    """[M, N] on how many sides (left, right) the next words, or the next content words, are linked."""
    m, n = board.level.shape
    links = np.zeros((m + 1, n + 1), dtype=bool)  # the last row and column: no word
    links[:-1, :-1] = board.links
    marks = board.source.punctuation[:, None] & board.target.punctuation
    found = np.zeros((m, n))
    for step in (-1, 1):
        next_one, next_other = _next(np.ones(m, dtype=bool), step), _next(np.ones(n, dtype=bool), step)
        content_one, content_other = _next(board.source.content, step), _next(board.target.content, step)
        ends = marks & ((content_one == m)[:, None] & (content_other == n))
        found += links[next_one][:, next_other] | links[content_one][:, content_other] | ends
    return found


def _next(wanted: np.ndarray, step: int) -> np.ndarray:
    """[T] the nearest word of the wanted kind before (-1) or behind (1) each word; T where there is none."""
    size, places = len(wanted), np.arange(len(wanted))
    if step < 0:
        last = np.maximum.accumulate(np.where(wanted, places, -1)) if size else places
        before = np.concatenate([[-1], last[:-1]])[:size]
        return np.where(before < 0, size, before)
    first = np.minimum.accumulate(np.where(wanted, places, size)[::-1])[::-1] if size else places
    return np.concatenate([first[1:], [size]])[:size]
