"""Pins: two words that can hardly belong to anybody else. Where others stand is told from the nearest of them.

In: a `Grid`, and which cells lie in long runs of matches. Out: columns over its cells: as far from a pin as the
other word is, between the same two pins, out of order; whether repeated words are the same of their kind.
"""

from __future__ import annotations

import numpy as np

from .families.context import are_content
from .grid import Grid
from .string_similarity import FORM, base_similarity

COLUMNS = ("left_pin", "right_pin", "either_pin", "both_pins", "between_pins", "out_of_order", "same_occurrence")
_NOWHERE = 1 << 40


def pinned(grid: Grid, in_run: np.ndarray, cells: np.ndarray | None = None) -> np.ndarray:
    """[cells, COLUMNS] of 0 and 1, of all cells if none are named; `in_run` [C] says which cells are in runs long
    enough for any word to be a pin."""
    base = grid.figure(base_similarity)
    place = _pins(grid, base, in_run)
    cells = np.arange(grid.n_cells) if cells is None else cells
    table = np.zeros((len(COLUMNS), len(cells)), dtype=np.float32)
    token, n = grid.source_token[cells], grid.n[cells]
    shift = n - grid.m[cells]
    left, right = _nearest(grid, place, -1), _nearest(grid, place, 1)
    here = grid.source_position
    for column, pin in ((table[0], left), (table[1], right)):
        column[:] = shift == np.where(pin < 0, _NOWHERE, place[pin] - here[pin])[token]
    np.maximum(table[0], table[1], out=table[2])
    np.multiply(table[0], table[1], out=table[3])
    after, before = np.where(left < 0, -1, place[left])[token], np.where(right < 0, _NOWHERE, place[right])[token]
    table[4] = (n > after) & (n < before) & ((left >= 0) & (right >= 0))[token]
    table[5] = (n < after) | (n > before)
    identical = np.flatnonzero(base[cells] >= 1)
    table[6, identical] = _same_occurrence(grid, cells[identical])
    return table.T


def _pins(grid: Grid, base: np.ndarray, in_run: np.ndarray) -> np.ndarray:
    """[Ts] the position of the word that each source token is pinned to, -1 for none."""
    alike = np.flatnonzero(base >= 0.9)
    s, t = grid.source_token[alike], grid.target_token[alike]
    meeting = grid.meeting(FORM)
    content = meeting.lexicon.attribute("content", are_content)
    telling = (content[meeting.source[s]] & content[meeting.target[t]]) | in_run[alike]
    alone = (np.bincount(s, minlength=1)[s] == 1) & (np.bincount(t, minlength=1)[t] == 1)
    place = np.full(len(grid.source_pair), -1)
    place[s[telling & alone]] = grid.n[alike[telling & alone]]
    return place


def _nearest(grid: Grid, place: np.ndarray, step: int) -> np.ndarray:
    """[Ts] the nearest pinned token of the same sentence on one side of each, -1 for none."""
    token = np.arange(len(place))
    if not len(place):
        return token
    if step < 0:
        last = np.maximum.accumulate(np.where(place >= 0, token, -1))
        found = np.concatenate([[-1], last[:-1]])
        return np.where(found >= grid.source_start[grid.source_pair], found, -1)
    first = np.minimum.accumulate(np.where(place >= 0, token, _NOWHERE)[::-1])[::-1]
    found = np.concatenate([first[1:], [_NOWHERE]])
    return np.where(found < (grid.source_start + grid.n_source)[grid.source_pair], found, -1)


def _same_occurrence(grid: Grid, cells: np.ndarray) -> np.ndarray:
    """Of cells of identical words that one sentence repeats: whether they are the k-th from the left, and from the
    right, on both sides."""
    meeting = grid.meeting(FORM)
    s, t = grid.source_token[cells], grid.target_token[cells]
    before_s, after_s = _occurrences(meeting.source, grid.source_pair)
    before_t, after_t = _occurrences(meeting.target, grid.target_pair)
    repeated = (before_s + after_s)[s] + (before_t + after_t)[t] > 0
    return repeated & (before_s[s] == before_t[t]) & (after_s[s] == after_t[t])


def _occurrences(word: np.ndarray, pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[T] how many of the same word stand before each token in its sentence, and after it."""
    order = np.lexsort((word, pair))  # stable: the same words of a sentence stay in order
    word, pair = word[order], pair[order]
    new = np.ones(len(word), dtype=bool)
    new[1:] = (word[1:] != word[:-1]) | (pair[1:] != pair[:-1])
    number = np.arange(len(word))
    first = np.maximum.accumulate(np.where(new, number, 0)) if len(word) else number
    size = np.diff(np.append(np.flatnonzero(new), len(word)))[np.cumsum(new) - 1]
    before, after = np.empty(len(word), dtype=np.int64), np.empty(len(word), dtype=np.int64)
    before[order], after[order] = number - first, size - 1 - (number - first)
    return before, after
