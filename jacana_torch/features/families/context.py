"""The context family: neighbours that match, runs of matching words, and competitors with better context.

Function words have many possible partners that look the same; only their context shows which one is meant. What
both alignment directions share is computed once (`grid.shared`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...util.geometry import nearest
from ..api import Block, NodeBlocks
from ..grid import MARGIN, Grid, Laid, Named
from ..padded_grid import Canvas, table_of
from ..string_similarity import FORM, base_of, base_similarity
from ..word_pairs import Signal, WordPairs
from ..wordlists import word_class

LONGEST_RUN = 6
TIE = 1e-5  # equal scores may differ by rounding: neither wins
_NO_CONTENT = frozenset(("punct", "function"))
Columns = dict[str, np.ndarray]
_Shared = tuple[Named, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def are_content(words: Sequence[str]) -> np.ndarray:
    """[W] whether words are content words, names or numbers."""
    return ~np.array(list(map(_NO_CONTENT.__contains__, map(word_class, words))), dtype=bool)


def _content_similarity(pairs: WordPairs) -> np.ndarray:
    return np.where(pairs.both("content", are_content), base_of(pairs), 0.0)


content_similarity = Signal("context.content", FORM, _content_similarity)


@dataclass(frozen=True)
class Context:
    """`window`: how many neighbours on either side count."""

    window: int = 3
    name: str = "context"
    requires: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        return grid.memo(self, partial(self._blocks, grid))  # the family `kinds` reads the same columns

    def _blocks(self, grid: Grid) -> NodeBlocks:
        laid = grid.laid_out(max(self.window, MARGIN))  # skipping a word looks two away, whatever the window
        shared = grid.shared(("context", self.window), partial(_both_directions, grid, laid, self.window))
        named, field, content_field, base, diagonal, run = shared
        window = _window(laid.canvas, field, content_field, self.window)
        score = base + 0.5 * diagonal + 0.3 * window["window_content"] + 0.3 * run
        competitors, null = competition(laid.canvas, base, _nearby_first(score, laid.canvas))
        link = Block(*named, laid.place), Block(*table_of(window | competitors), laid.place)
        return NodeBlocks(link, (Block(*table_of(null), laid.line),))


def _both_directions(grid: Grid, laid: Laid, window: int) -> _Shared:
    """What both directions share: columns; fields of the similarity of all words, and of content words; per place
    the similarity, that of the diagonal and the length of the run."""
    canvas = laid.canvas
    field = canvas.field(grid.figure(base_similarity), laid.place)
    content_field = canvas.field(grid.figure(content_similarity), laid.place)
    base = canvas.near(field, 0, 0)
    columns, diagonal = _neighbours(canvas, field, window)
    pair = np.flatnonzero(grid.n_source * grid.n_target)
    last = grid.n_source[pair] - 1, grid.n_target[pair] - 1
    for name, m, n in (("left_edge", 0 * pair, 0 * pair), ("right_edge", *last)):  # both are first, or last
        columns[name] = np.zeros(canvas.size, dtype=bool)
        columns[name][canvas.place(pair, m, n)] = True
    columns |= content_neighbours(grid, laid, base)
    run = run_length(canvas, field)
    for k in (2, 3, 4, LONGEST_RUN):
        columns[f"run>={k}"] = run >= k
    columns["run"] = np.minimum(run, LONGEST_RUN) / np.float32(LONGEST_RUN)
    return table_of(columns), field, content_field, base, diagonal, columns["run"]


def _neighbours(canvas: Canvas, field: np.ndarray, window: int) -> tuple[Columns, np.ndarray]:
    """Matches of the words the same number of places to the left or right of both, and their weighted mean."""
    columns: Columns = {}
    diagonal, weight = np.zeros(canvas.size, dtype=field.dtype), 0.0
    for d in range(1, window + 1):
        for side, step in (("left", -d), ("right", d)):
            near = canvas.near(field, step, step)
            columns[f"{side}{d}_identical"] = near >= 1.0
            columns[f"{side}{d}_similar"] = near > 0.0
            diagonal += near / d
        weight += 1 / d
    left, right = canvas.near(field, -1, -1), canvas.near(field, 1, 1)
    columns["both_identical"] = columns["left1_identical"] & columns["right1_identical"]
    columns["both_similar"] = columns["left1_similar"] & columns["right1_similar"]
    columns["sandwiched"] = (left >= 0.9) & (right >= 0.9) & (canvas.near(field, 0, 0) == 0)
    diagonal /= 2 * weight
    columns["diagonal"] = diagonal
    match = field >= 0.9
    for side, s in (("left", -1), ("right", 1)):  # one word inserted on either side of the pair
        columns[f"{side}_skip"] = canvas.near(match, s, 2 * s) | canvas.near(match, 2 * s, s)
    return columns, diagonal


def run_length(canvas: Canvas, field: np.ndarray) -> np.ndarray:
    """[size] length (at most LONGEST_RUN to each side) of the diagonal run of matches through a cell, or 0."""
    match = field >= 0.9
    total = canvas.near(match, 0, 0).astype(np.int8)
    for step in (-1, 1):
        alive = canvas.near(match, 0, 0)
        for d in range(1, LONGEST_RUN):
            alive = alive & canvas.near(match, step * d, step * d)
            total += alive
    return total


def _window(canvas: Canvas, base: np.ndarray, content: np.ndarray, window: int) -> Columns:
    """How many of the surrounding words have a match anywhere in the surroundings of the other word."""
    steps, found = [*range(-window, 0), *range(1, window + 1)], []
    for field in (base, content):
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


def content_neighbours(grid: Grid, laid: Laid, similar: np.ndarray) -> Columns:
    """Whether the next content words left and right of both words match: what a function word belongs to."""
    columns: Columns = {}
    meeting = grid.meeting(FORM)
    content = meeting.lexicon.attribute("content", are_content)
    for side, step in (("left", -1), ("right", 1)):
        row, column = laid.canvas.no_positions()
        token = nearest(content[meeting.source], grid.source_pair, step)
        row[laid.line] = np.where(token < 0, -1, token - grid.source_start[grid.source_pair])
        token = nearest(content[meeting.target], grid.target_pair, step)
        column[laid.column_line] = np.where(token < 0, -1, token - grid.target_start[grid.target_pair])
        found, both = laid.canvas.meet(similar, row, column)
        columns[f"{side}_anchor_same"] = found >= 0.9
        columns[f"{side}_anchor_similar"] = found > 0
        columns[f"{side}_anchor_differs"] = (found == 0) & both
    columns["both_anchors"] = columns["left_anchor_similar"] & columns["right_anchor_similar"]
    columns["no_anchor"] = columns["left_anchor_differs"] & columns["right_anchor_differs"]
    return columns


def context_of(
    grid: Grid, name: object, similarity: Callable[[], np.ndarray]
) -> tuple[tuple[Block, Block], Block]:
    """Neighbours, anchors and competitors under another similarity than that of spelling: link blocks, NULL block.

    `similarity()` [C] is the same in both directions; it is called once for them.
    """
    laid = grid.laid_out()
    columns, similar, score = grid.shared(("context of", name), partial(_near, grid, laid, similarity))
    competitors, null = competition(laid.canvas, similar, score)
    link = Block(*columns, laid.place), Block(*table_of(competitors), laid.place)
    return link, Block(*table_of(null), laid.line)


def _near(grid: Grid, laid: Laid, similarity: Callable[[], np.ndarray]) -> tuple[Named, np.ndarray, np.ndarray]:
    """Columns over the padded grid, and of each place the similarity and its score in context."""
    canvas, field = laid.canvas, laid.canvas.field(similarity(), laid.place)
    similar = canvas.near(field, 0, 0)
    columns: Columns = {}
    for step in (-2, -1, 1, 2):
        columns[f"near_{step:+d}"] = canvas.near(field, step, step)
    diagonal = sum(columns.values()) / 4
    columns["near_both"] = columns["near_-1"] * columns["near_+1"]
    columns |= content_neighbours(grid, laid, similar)
    anchors = columns["left_anchor_similar"].astype(field.dtype) + columns["right_anchor_similar"]
    return table_of(columns), similar, _nearby_first(similar + 0.5 * diagonal + 0.2 * anchors, canvas)


def _nearby_first(score: np.ndarray, canvas: Canvas) -> np.ndarray:
    """The score, less for words that are far from each other's place in the sentence."""
    return score - 0.1 * canvas.distance.astype(score.dtype)


def competition(canvas: Canvas, base: np.ndarray, score: np.ndarray) -> tuple[Columns, Columns]:
    """Whether another word of the row or the column is a better partner, and by how much.

    Columns over the padded grid, and over its rows for NULL.
    """
    row, column = canvas.best_other(np.where(canvas.inside, score, -1.0))
    row_margin, column_margin = score - np.maximum(row, -1.0), score - np.maximum(column, -1.0)
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
        "null_best_company": np.minimum(canvas.row_max(np.where(alike, score, 0.0)), 2.0) / 2,
    }
    return columns, null
