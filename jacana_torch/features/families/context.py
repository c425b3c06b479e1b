"""The company words keep: neighbours that match, runs of matching words, and rivals with better company.

Function words have many possible partners that look the same; only their surroundings tell which is meant.
What is the same from either side of a pair is computed once for the two (`grid.shared`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..api import Block, NodeBlocks
from ..grid import MARGIN, Grid, Laid, Named
from ..padded_grid import Canvas, table_of
from ..string_similarity import FORM, base_of, base_similarity
from ..word_pairs import Signal, WordPairs
from ..wordlists import word_class

LONGEST_RUN = 6
TIE = 1e-5  # what rounding makes of equals is no victory
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Context:
    """`window`: how many neighbours on either side count."""

    window: int = 3
    name: str = "context"
    requires: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        return grid.memo(self, lambda: self._said(grid))  # the family `kinds` asks for the same

    def _said(self, grid: Grid) -> NodeBlocks:
        laid = grid.laid_out(max(self.window, MARGIN))  # skipping a word looks two away, whatever the window
        both = grid.shared(("context", self.window), lambda: _BothSides(grid, laid, self.window))
        window = _window(laid.canvas, both.field, both.heavy, self.window)
        company = both.base + 0.5 * both.diagonal + 0.3 * window["window_content"] + 0.3 * both.run
        rivals, null = competition(laid.canvas, both.base, _nearer(company, laid.canvas))
        link = (Block(*both.columns, laid.place), Block(*table_of(window | rivals), laid.place))
        return NodeBlocks(link, (Block(*table_of(null), laid.line),))


class _BothSides:
    """What is the same from either side."""

    def __init__(self, grid: Grid, laid: Laid, window: int) -> None:
        canvas = laid.canvas
        self.field = canvas.field(grid.figure(base_similarity), laid.place)
        self.heavy = canvas.field(grid.figure(heavy_similarity), laid.place)
        self.base = canvas.near(self.field, 0, 0)
        neighbours, self.diagonal = _neighbours(canvas, self.field, window)
        run = run_length(canvas, self.field)
        self.run = np.minimum(run, LONGEST_RUN) / np.float32(LONGEST_RUN)
        columns = neighbours | _edges(grid, laid) | anchored(grid, laid, self.base)
        columns |= {f"run>={k}": run >= k for k in (2, 3, 4, LONGEST_RUN)} | {"run": self.run}
        self.columns = table_of(columns)


def _neighbours(canvas: Canvas, field: np.ndarray, window: int) -> tuple[Columns, np.ndarray]:
    columns: Columns = {}
    diagonal = np.zeros(canvas.size, dtype=field.dtype)
    for d in range(1, window + 1):
        for side, step in (("left", -d), ("right", d)):
            near = canvas.near(field, step, step)
            columns[f"{side}{d}_identical"] = near >= 1.0
            columns[f"{side}{d}_similar"] = near > 0.0
            diagonal += near / d
    left, right = canvas.near(field, -1, -1), canvas.near(field, 1, 1)
    columns["both_identical"] = columns["left1_identical"] & columns["right1_identical"]
    columns["both_similar"] = columns["left1_similar"] & columns["right1_similar"]
    columns["sandwiched"] = (left >= 0.9) & (right >= 0.9) & (canvas.near(field, 0, 0) == 0)
    diagonal /= 2 * sum(1 / d for d in range(1, window + 1))
    columns["diagonal"] = diagonal
    match = field >= 0.9
    for side, s in (("left", -1), ("right", 1)):  # one word inserted on either side of the pair
        columns[f"{side}_skip"] = canvas.near(match, s, 2 * s) | canvas.near(match, 2 * s, s)
    return columns, diagonal


def _edges(grid: Grid, laid: Laid) -> Columns:
    """Whether both words are the first, or the last, of their sentences."""
    canvas, pair = laid.canvas, np.flatnonzero(grid.n_source * grid.n_target)
    columns: Columns = {}
    for name, m, n in (("left", 0 * pair, 0 * pair), ("right", grid.n_source[pair] - 1, grid.n_target[pair] - 1)):
        columns[f"{name}_edge"] = np.zeros(canvas.size, dtype=bool)
        columns[f"{name}_edge"][canvas.place(pair, m, n)] = True
    return columns


def _window(canvas: Canvas, base: np.ndarray, heavy: np.ndarray, window: int) -> Columns:
    """How many of the surrounding words have a match anywhere in the surroundings of the other word."""
    steps = [d for d in range(-window, window + 1) if d]
    found = []
    for field in (base, heavy):
        best = canvas.near(field, 0, steps[0]).copy()
        for dn in steps[1:]:
            np.maximum(best, canvas.near(field, 0, dn), out=best)
        best, total = canvas.field(best), np.zeros(canvas.size, dtype=field.dtype)
        for dm in steps:
            total += canvas.near(best, dm, 0)
        found.append(total)
    return {
        "window": found[0] / (2 * window),
        "window_content": found[1] / (2 * window),
        "window_any_content": found[1] > 0,
        "window_none": found[0] == 0,
    }


def company_of(
    grid: Grid, name: object, similarity: Callable[[], np.ndarray]
) -> tuple[tuple[Block, Block], Block]:
    """Neighbours, anchors and rivals once more, for a family that knows more likenesses than spelling shows; over
    the links, and for NULL.

    `similarity()` [C] is the same from either side, and is not asked for twice.
    """
    laid = grid.laid_out()
    made = grid.shared(("company", name), lambda: _company(grid, laid, similarity()))
    similar, company, near = made
    rivals, null = competition(laid.canvas, similar, company)
    return (Block(*near, laid.place), Block(*table_of(rivals), laid.place)), Block(*table_of(null), laid.line)


def _company(grid: Grid, laid: Laid, similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray, Named]:
    canvas, field = laid.canvas, laid.canvas.field(similarity, laid.place)
    similar = canvas.near(field, 0, 0)
    columns = {f"near_{step:+d}": canvas.near(field, step, step) for step in (-2, -1, 1, 2)}
    diagonal = sum(columns.values()) / 4
    columns["near_both"] = columns["near_-1"] * columns["near_+1"]
    columns |= anchored(grid, laid, similar)
    anchors = columns["left_anchor_similar"].astype(field.dtype) + columns["right_anchor_similar"]
    return similar, _nearer(similar + 0.5 * diagonal + 0.2 * anchors, canvas), table_of(columns)


def _nearer(company: np.ndarray, canvas: Canvas) -> np.ndarray:
    """The same, but better for words that stand in like places."""
    return company - 0.1 * canvas.distance.astype(company.dtype)


def anchored(grid: Grid, laid: Laid, similar: np.ndarray) -> Columns:
    """Whether the next content words left and right of both words match: what a function word belongs to."""
    columns: Columns = {}
    for side, step in (("left", -1), ("right", 1)):
        row, column = _next_content(grid, laid, step)
        found, both = laid.canvas.meet(similar, row, column)
        columns[f"{side}_anchor_same"] = found >= 0.9
        columns[f"{side}_anchor_similar"] = found > 0
        columns[f"{side}_anchor_differs"] = (found == 0) & both
    columns["both_anchors"] = columns["left_anchor_similar"] & columns["right_anchor_similar"]
    columns["no_anchor"] = columns["left_anchor_differs"] & columns["right_anchor_differs"]
    return columns


def _next_content(grid: Grid, laid: Laid, step: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row and each column, the position of the nearest content word on one side of it, -1 if none is."""
    meeting = grid.meeting(FORM)
    content = meeting.lexicon.attribute("content", are_content)
    row, column = laid.canvas.no_positions()
    row[laid.line] = _nearest(content[meeting.source], grid.source_position, grid.n_source[grid.source_pair], step)
    column[laid.column_line] = _nearest(
        content[meeting.target], grid.target_position, grid.n_target[grid.target_pair], step
    )
    return row, column


def are_content(words: Sequence) -> np.ndarray:
    """[W] whether words are content words, names or numbers."""
    return np.array([word_class(w) not in ("punct", "function") for w in words], dtype=bool)


def _heavy(pairs: WordPairs) -> np.ndarray:
    return np.where(pairs.both("content", are_content), base_of(pairs), 0.0)


heavy_similarity = Signal("context.heavy", FORM, _heavy)


def _nearest(content: np.ndarray, position: np.ndarray, length: np.ndarray, step: int) -> np.ndarray:
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


def run_length(canvas: Canvas, field: np.ndarray) -> np.ndarray:
    """[size] length (at most LONGEST_RUN to each side) of the diagonal run of matches that a cell is in, or 0."""
    match = field >= 0.9
    total = canvas.near(match, 0, 0).astype(np.int8)
    for step in (-1, 1):
        alive = canvas.near(match, 0, 0)
        for d in range(1, LONGEST_RUN):
            alive = alive & canvas.near(match, step * d, step * d)
            total += alive
    return total


def competition(canvas: Canvas, base: np.ndarray, company: np.ndarray) -> tuple[Columns, Columns]:
    """Whether another word of the row or the column would be the better partner, and by how much.

    Columns over the canvas, and over its rows for NULL.
    """
    row, column = (np.maximum(best, -1.0) for best in canvas.best_other(np.where(canvas.inside, company, -1.0)))
    row_margin, column_margin = company - row, company - column
    alike = base > 0
    unlike = ~alike
    wins_row, wins_column = (row_margin > TIE) & alike, (column_margin > TIE) & alike
    wins = wins_row & wins_column
    candidates, suitors = canvas.row_count(alike), canvas.column_count(alike)
    row_free, column_free = canvas.along_rows(candidates == 0), canvas.along_columns(suitors == 0)
    clipped = np.clip(column_margin, -1, 1)
    identical = base >= 1
    columns = {
        "wins_row": wins_row,
        "wins_column": wins_column,
        "wins_both": wins,
        "loses_both": alike & ~wins_row & ~wins_column,
        "identical_loses_row": identical & ~wins_row,
        "identical_loses_column": identical & ~wins_column,
        "row_margin": np.clip(row_margin, -1, 1) * alike,
        "column_margin": clipped * alike,
        "row_better": np.clip(-row_margin, 0, 1) * unlike,
        "column_better": np.clip(-column_margin, 0, 1) * unlike,
        "row_free": unlike & row_free,
        "column_free": unlike & column_free,
        "both_free": row_free & column_free,
        "only_pair": alike & canvas.along_rows(candidates == 1) & canvas.along_columns(suitors == 1),
    }
    some_win = canvas.row_count(wins) > 0
    null = {
        "null_no_candidate": candidates == 0,
        "null_some_wins": some_win,
        "null_none_wins": (candidates > 0) & ~some_win,
        "null_margin": np.where(candidates > 0, canvas.row_max(np.where(alike, clipped, -1.0)), 0.0),
        "null_best_company": np.minimum(canvas.row_max(np.where(alike, company, 0.0)), 2.0) / 2,
    }
    return columns, null
