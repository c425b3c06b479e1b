"""The company words keep: neighbours that match, runs of matching words, and rivals with better company.

Function words have many possible partners that look the same; only their surroundings tell which is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .base import Block, NodeBlocks
from .grid import Grid
from .string import base_similarity, forms
from .wordlists import word_class

LONGEST_RUN = 6


@dataclass(frozen=True)
class Context:
    """`window`: how many neighbours on either side count."""

    window: int = 3
    name: str = "context"
    requires: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        words = forms(grid)
        base = base_similarity(grid)[words.cell]
        content = np.array([word_class(w) not in ("punct", "function") for w in words.values], dtype=bool)
        heavy = content[words.left][words.cell] & content[words.right][words.cell]
        columns = self._neighbours(grid, base)
        columns |= self._window(grid, base, heavy)
        columns |= anchored(grid, base, content)
        run = run_length(grid, base >= 0.9)
        columns |= {f"run>={k}": run >= k for k in (2, 3, 4, LONGEST_RUN)}
        columns["run"] = np.minimum(run, LONGEST_RUN) / LONGEST_RUN
        link = _block(columns)
        company = base + 0.5 * columns["diagonal"] + 0.3 * columns["window_content"] + 0.3 * columns["run"]
        nearness = 0.1 * np.abs(grid.m / grid.n_source[grid.pair] - grid.n / grid.n_target[grid.pair])
        rivals, null = competition(grid, base, company - nearness)
        return NodeBlocks((link, rivals), (null,))

    def _neighbours(self, grid: Grid, base: np.ndarray) -> dict[str, np.ndarray]:
        padded = np.append(base, 0.0)
        columns: dict[str, np.ndarray] = {}
        diagonal = np.zeros(grid.n_cells)
        for d in range(1, self.window + 1):
            for side, step in (("left", -d), ("right", d)):
                near = padded[grid.shift(step, step)]
                columns[f"{side}{d}_identical"] = near >= 1.0
                columns[f"{side}{d}_similar"] = near > 0.0
                diagonal += near / d
        left, right = padded[grid.shift(-1, -1)], padded[grid.shift(1, 1)]
        columns["both_identical"] = (left >= 1.0) & (right >= 1.0)
        columns["both_similar"] = (left > 0) & (right > 0)
        columns["sandwiched"] = (left >= 0.9) & (right >= 0.9) & (base == 0)
        columns["diagonal"] = diagonal / (2 * sum(1 / d for d in range(1, self.window + 1)))
        for side, s in (("left", -1), ("right", 1)):  # one word inserted on either side of the pair
            skips = np.maximum(padded[grid.shift(s, 2 * s)], padded[grid.shift(2 * s, s)])
            columns[f"{side}_skip"] = skips >= 0.9
        at_start = (grid.m == 0) & (grid.n == 0)
        at_end = (grid.m == grid.n_source[grid.pair] - 1) & (grid.n == grid.n_target[grid.pair] - 1)
        columns["left_edge"], columns["right_edge"] = at_start, at_end
        return columns

    def _window(self, grid: Grid, base: np.ndarray, heavy: np.ndarray) -> dict[str, np.ndarray]:
        """How many of the surrounding words have a match anywhere in the surroundings of the other word."""
        w = self.window
        padded_all, padded_heavy = np.append(base, 0.0), np.append(base * heavy, 0.0)
        found_all, found_heavy = np.zeros(grid.n_cells), np.zeros(grid.n_cells)
        for dm in range(-w, w + 1):
            if dm == 0:
                continue
            best_all, best_heavy = np.zeros(grid.n_cells), np.zeros(grid.n_cells)
            for dn in range(-w, w + 1):
                if dn == 0:
                    continue
                cells = grid.shift(dm, dn)
                np.maximum(best_all, padded_all[cells], out=best_all)
                np.maximum(best_heavy, padded_heavy[cells], out=best_heavy)
            found_all += best_all
            found_heavy += best_heavy
        return {
            "window": found_all / (2 * w),
            "window_content": found_heavy / (2 * w),
            "window_any_content": found_heavy > 0,
            "window_none": found_all == 0,
        }


def company_of(grid: Grid, similarity: np.ndarray) -> tuple[Block, Block, Block]:
    """Neighbours, anchors and rivals once more, for a family that knows more likenesses than spelling shows."""
    content = np.array([word_class(w) not in ("punct", "function") for w in forms(grid).values], dtype=bool)
    padded = np.append(similarity, 0.0)
    columns = {f"near_{step:+d}": padded[grid.shift(step, step)] for step in (-2, -1, 1, 2)}
    diagonal = sum(columns.values()) / 4
    columns["near_both"] = columns["near_-1"] * columns["near_+1"]
    columns |= anchored(grid, similarity, content)
    anchors = columns["left_anchor_similar"].astype(float) + columns["right_anchor_similar"]
    nearness = np.abs(grid.m / grid.n_source[grid.pair] - grid.n / grid.n_target[grid.pair])
    rivals, null = competition(grid, similarity, similarity + 0.5 * diagonal + 0.2 * anchors - 0.1 * nearness)
    return _block(columns), rivals, null


def anchored(grid: Grid, similarity: np.ndarray, content: np.ndarray) -> dict[str, np.ndarray]:
    """Whether the next content words to the left and right of both words match: what a function word belongs to.

    `content` [W] says which of the grid's forms are content words.
    """
    words = forms(grid)
    padded = np.append(similarity, 0.0)
    columns: dict[str, np.ndarray] = {}
    for side, step in (("left", -1), ("right", 1)):
        source = _next_content(content[words.source], grid.source_position, grid.n_source[grid.source_pair], step)
        target = _next_content(content[words.target], grid.target_position, grid.n_target[grid.target_pair], step)
        m, n = source[grid.source_token], target[grid.target_token]
        found = padded[grid.cell_at(grid.pair, m, n)]
        columns[f"{side}_anchor_same"] = found >= 0.9
        columns[f"{side}_anchor_similar"] = found > 0
        columns[f"{side}_anchor_differs"] = (found == 0) & (m >= 0) & (n >= 0)
    columns["both_anchors"] = columns["left_anchor_similar"] & columns["right_anchor_similar"]
    columns["no_anchor"] = columns["left_anchor_differs"] & columns["right_anchor_differs"]
    return columns


def _next_content(content: np.ndarray, position: np.ndarray, length: np.ndarray, step: int) -> np.ndarray:
    """[T] position of the nearest content word before (step -1) or after (step 1) each token, -1 if none is."""
    token = np.arange(len(content))
    if step < 0:
        marked = np.where(content, token, -1)
        last = np.concatenate([[-1], np.maximum.accumulate(marked)[:-1]]) if len(token) else marked
        distance = token - last
        return np.where((last >= 0) & (distance <= position), position - distance, -1)
    marked = np.where(content, token, len(token) * 2)
    following = np.append(np.minimum.accumulate(marked[::-1])[::-1][1:], len(token) * 2) if len(token) else marked
    distance = following - token
    return np.where(position + distance < length, position + distance, -1)


def run_length(grid: Grid, match: np.ndarray) -> np.ndarray:
    """[C] length (at most LONGEST_RUN to each side) of the diagonal run of matches that a cell is in, or 0."""
    total = match.astype(np.float64)
    for step in (-1, 1):
        alive = match.copy()
        for d in range(1, LONGEST_RUN):
            alive = alive & np.append(match, False)[grid.shift(step * d, step * d)]
            total += alive
    return total


def best_other(values: np.ndarray, group: np.ndarray, maximum: Callable) -> np.ndarray:
    """[C] the best value among the other cells of each cell's group; -1 where there is none better than that.

    `maximum` gives that of each group: a grid's `row_max` or `column_max`.
    """
    best = maximum(values)
    top = np.flatnonzero(values >= best[group])
    first_top = np.full(len(best), -1)
    first_top[group[top][::-1]] = top[::-1]  # the earliest of equals wins
    first_top = first_top[first_top >= 0]
    rest = values.copy()
    rest[first_top] = -1.0
    runner = np.maximum(maximum(rest), -1.0)
    out = best[group]
    out[first_top] = runner[group[first_top]]
    return out


def competition(grid: Grid, base: np.ndarray, company: np.ndarray) -> tuple[Block, Block]:
    """Whether another word of the row or the column would be the better partner, and by how much."""
    row = best_other(company, grid.source_token, grid.row_max)
    column = best_other(company, grid.target_token, grid.column_max)
    row_margin, column_margin = company - row, company - column
    alike = base > 0
    wins_row, wins_column = row_margin > 0, column_margin > 0
    candidates = np.bincount(grid.source_token[alike], minlength=len(grid.source_pair))
    suitors = np.bincount(grid.target_token[alike], minlength=len(grid.target_pair))
    columns = {
        "wins_row": wins_row & alike,
        "wins_column": wins_column & alike,
        "wins_both": wins_row & wins_column & alike,
        "loses_both": ~wins_row & ~wins_column & alike,
        "identical_loses_row": ~wins_row & (base >= 1),
        "identical_loses_column": ~wins_column & (base >= 1),
        "row_margin": np.clip(row_margin, -1, 1) * alike,
        "column_margin": np.clip(column_margin, -1, 1) * alike,
        "row_better": np.clip(-row_margin, 0, 1) * ~alike,
        "column_better": np.clip(-column_margin, 0, 1) * ~alike,
        "row_free": ~alike & (candidates[grid.source_token] == 0),
        "column_free": ~alike & (suitors[grid.target_token] == 0),
        "both_free": (candidates[grid.source_token] == 0) & (suitors[grid.target_token] == 0),
        "only_pair": alike & (candidates[grid.source_token] == 1) & (suitors[grid.target_token] == 1),
    }
    win = grid.row_max((wins_row & wins_column & alike).astype(np.float64))
    margin = grid.row_max(np.where(alike, np.clip(column_margin, -1, 1), -1.0), -1.0)
    best = grid.row_max(np.where(alike, company, 0.0))
    null = {
        "null_no_candidate": candidates == 0,
        "null_some_wins": win,
        "null_none_wins": (candidates > 0) & (win == 0),
        "null_margin": np.where(candidates > 0, margin, 0.0),
        "null_best_company": np.minimum(best, 2.0) / 2,
    }
    return _block(columns), _block(null)


def _block(columns: dict[str, np.ndarray]) -> Block:
    # shares, margins and yes or no: half the memory, for the largest tables there are
    table = np.empty((len(columns), len(next(iter(columns.values())))), dtype=np.float32)
    for row, values in zip(table, columns.values(), strict=True):
        row[:] = values  # one column after the other in memory, for that is how they come
    return Block(tuple(columns), table.T)
