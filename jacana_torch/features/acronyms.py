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


def acronyms(grid: Grid, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[C] whether one word is an acronym and the other one of the words whose initials it spells.

    `source` and `target` are the tokens that may be acronyms.
    """
    found = np.zeros(grid.n_cells)
    for pair, m in zip(grid.source_pair[source].tolist(), grid.source_position[source].tolist(), strict=True):
        one, other = grid.pairs[pair].source.tokens, grid.pairs[pair].target.tokens
        for n in _spelt_out(one[m], other):
            found[grid.cell_start[pair] + m * len(other) + n] = 1.0
    for pair, n in zip(grid.target_pair[target].tolist(), grid.target_position[target].tolist(), strict=True):
        one, other = grid.pairs[pair].target.tokens, grid.pairs[pair].source.tokens
        for m in _spelt_out(one[n], other):
            found[grid.cell_start[pair] + m * len(one) + n] = 1.0
    return found


def _spelt_out(acronym: str, tokens: Sequence[str]) -> list[int]:
    """The positions of words whose initials spell an acronym."""
    if not is_acronym(acronym):
        return []
    return [k for run in _initial_runs(tokens, acronym.replace(".", "")) for k in run]


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
