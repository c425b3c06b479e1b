"""Which words are acronyms of which: `U.N.` and `United Nations`. A `Grid` in, one figure a cell out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .grid import Grid
from .wordlists import FUNCTION_WORDS


def is_acronym(token: str) -> bool:
    """Whether a token could be one: two to six capitals, with or without dots."""
    if not token.isupper():  # most are not, and this is the quickest to see
        return False
    letters = token.replace(".", "")
    return 1 < len(letters) <= 6 and letters.isalpha()


def acronyms(grid: Grid, pairs: Sequence[int]) -> np.ndarray:
    """[C] whether one word is an acronym and the other one of the words whose initials it spells.

    `pairs`: those of the grid's pairs that have an acronym at all.
    """
    found = np.zeros(grid.n_cells)
    for p in pairs:
        pair = grid.pairs[p]
        for flipped, (one, other) in enumerate(((pair.source, pair.target), (pair.target, pair.source))):
            for position, token in enumerate(one.tokens):
                if not is_acronym(token):
                    continue
                for run in _initial_runs(other.tokens, token.replace(".", "")):
                    for k in run:
                        m, n = (k, position) if flipped else (position, k)
                        found[grid.cell_start[p] + m * grid.n_target[p] + n] = 1.0
    return found


def _initial_runs(tokens: Sequence[str], letters: str) -> list[list[int]]:
    """Runs of capitalised words whose initials spell `letters`; words like "of" between them may be left out."""
    runs = []
    for start, token in enumerate(tokens):
        if token[:1] != letters[0] or len(token) < 2:
            continue
        run, k = [start], start + 1
        while len(run) < len(letters) and k < len(tokens):
            if tokens[k][:1] == letters[len(run)]:
                run.append(k)
            elif tokens[k].lower() not in FUNCTION_WORDS:
                break
            k += 1
        if len(run) == len(letters):
            runs.append(run)
    return runs
