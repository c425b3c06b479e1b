"""The context family: neighbours that match, runs of matching words, and competitors with better context.

Function words have many possible partners that look the same; only their context shows which one is meant. What
both alignment directions share is computed once (`grid.shared`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from ...util.build import INTERNAL, Within
from ...util.geometry import COLUMN, ROW, PaddedGrid, nearest
from ..api import Block, NodeBlocks
from ..grid import MARGIN, Grid, Named, table_of
from ..string_similarity import FORM, base_similarity
from ..wordlists import IS_CONTENT, word_classes

Window = Annotated[int, Within(1, 100)]
LONGEST_RUN = 6
_FAR = 0.1  # off the score of two words at opposite ends of their sentences
TIE = 1e-5  # equal scores may differ by rounding: neither wins
Columns = dict[str, np.ndarray]
_Shared = tuple[Named, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Context:
    """`window`: how many neighbours on either side count."""

    window: Window = 3
    name: str = "context"
    requires: Annotated[tuple[str, ...], INTERNAL] = ()
    resources: Annotated[tuple[str, ...], INTERNAL] = ()

    def __call__(self, grid: Grid) -> NodeBlocks:
        return grid.memo(self, partial(self._blocks, grid))  # the family `kinds` reads the same columns

    def _blocks(self, grid: Grid) -> NodeBlocks:
        padded = grid.padded(max(self.window, MARGIN))  # skipping a word looks two away, whatever the window
        shared = grid.shared(("context", self.window), partial(_both_directions, grid, padded, self.window))
        named, field, content_field, base, diagonal, run = shared
        window = _window(padded, field, content_field, self.window)
        score = base + 0.5 * diagonal + 0.3 * window["window_content"] + 0.3 * run
        competitors, null = competition(padded, base, score - _FAR * padded.distance.astype(score.dtype))
        link = Block(*named, padded.place), Block(*table_of(window | competitors), padded.place)
        return NodeBlocks(link, (Block(*table_of(null), padded.line),))


def _both_directions(grid: Grid, padded: PaddedGrid, window: int) -> _Shared:
    """What both directions share: columns; fields of the similarity of all words, and of content words; per place
    the similarity, that of the diagonal and the length of the run."""
    similarity, words = grid.per_cell(base_similarity), grid.words(FORM)
    content = IS_CONTENT[words.lexicon.attribute("class", word_classes)]
    both = content[words.source][grid.source_token] & content[words.target][grid.target_token]
    field, content_field = padded.field(similarity, padded.place), padded.field(similarity * both, padded.place)
    base = padded.near(field, 0, 0)
    columns, diagonal = _neighbours(padded, field, window)
    pair = np.flatnonzero(grid.n_source * grid.n_target)
    last = grid.n_source[pair] - 1, grid.n_target[pair] - 1
    for name, m, n in (("left_edge", 0 * pair, 0 * pair), ("right_edge", *last)):  # both are first, or last
        columns[name] = np.zeros(padded.size, dtype=bool)
        columns[name][padded.place[grid.cell_at(pair, m, n)]] = True
    columns |= content_neighbours(grid, padded, base)
    run = run_length(padded, field)
    for k in (2, 3, 4, LONGEST_RUN):
        columns[f"run>={k}"] = run >= k
    columns["run"] = np.minimum(run, LONGEST_RUN) / np.float32(LONGEST_RUN)
    return table_of(columns), field, content_field, base, diagonal, columns["run"]


def _neighbours(padded: PaddedGrid, field: np.ndarray, window: int) -> tuple[Columns, np.ndarray]:
    """Matches of the words the same number of places to the left or right of both, and their weighted mean."""
    columns: Columns = {}
    diagonal, weight = np.zeros(padded.size, dtype=field.dtype), 0.0
    for d in range(1, window + 1):
        for side, step in (("left", -d), ("right", d)):
            near = padded.near(field, step, step)
            columns[f"{side}{d}_identical"] = near >= 1.0
            columns[f"{side}{d}_similar"] = near > 0.0
            diagonal += near / d
        weight += 1 / d
    left, right = padded.near(field, -1, -1), padded.near(field, 1, 1)
    columns["both_identical"] = columns["left1_identical"] & columns["right1_identical"]
    columns["both_similar"] = columns["left1_similar"] & columns["right1_similar"]
    columns["sandwiched"] = (left >= 0.9) & (right >= 0.9) & (padded.near(field, 0, 0) == 0)
    diagonal /= 2 * weight
    columns["diagonal"] = diagonal
    match = field >= 0.9
    for side, s in (("left", -1), ("right", 1)):  # one word inserted on either side of the pair
        columns[f"{side}_skip"] = padded.near(match, s, 2 * s) | padded.near(match, 2 * s, s)
    return columns, diagonal


def run_length(padded: PaddedGrid, field: np.ndarray) -> np.ndarray:
    """[size] length (at most LONGEST_RUN to each side) of the diagonal run of matches through a cell, or 0."""
    match = field >= 0.9
    total = padded.near(match, 0, 0).astype(np.int8)
    for step in (-1, 1):
        alive = padded.near(match, 0, 0)
        for d in range(1, LONGEST_RUN):
            alive = alive & padded.near(match, step * d, step * d)
            total += alive
    return total


def _window(padded: PaddedGrid, base: np.ndarray, content: np.ndarray, window: int) -> Columns:
    """How many of the surrounding words have a match anywhere in the surroundings of the other word."""
    steps, found = [*range(-window, 0), *range(1, window + 1)], []
    for field in (base, content):
        best = padded.near(field, 0, steps[0]).copy()
        for dn in steps[1:]:
            np.maximum(best, padded.near(field, 0, dn), out=best)
        best, total = padded.field(best), np.zeros(padded.size, dtype=field.dtype)
        for dm in steps:
            total += padded.near(best, dm, 0)
        found.append(total)
    return {
        "window": found[0] / (2 * window),
        "window_content": found[1] / (2 * window),
        "window_any_content": found[1] > 0,
        "window_none": found[0] == 0,
    }


def content_neighbours(grid: Grid, padded: PaddedGrid, similar: np.ndarray) -> Columns:
    """Whether the next content words left and right of both words match: what a function word belongs to."""
    columns: Columns = {}
    source, target = grid.per_token("next content words", _next_content_words)
    rows, lines = padded.lines(source, ROW), padded.lines(target, COLUMN)
    for k, side in enumerate(("left", "right")):
        crossing = partial(padded.crossing, rows[k], lines[k])
        place, both = grid.shared(("next content words", side, padded.margin), crossing)
        found = similar[place]
        columns[f"{side}_anchor_same"] = found >= 0.9
        columns[f"{side}_anchor_similar"] = found > 0
        columns[f"{side}_anchor_differs"] = (found == 0) & both
    columns["both_anchors"] = columns["left_anchor_similar"] & columns["right_anchor_similar"]
    columns["no_anchor"] = columns["left_anchor_differs"] & columns["right_anchor_differs"]
    return columns


def _next_content_words(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[2, T] of each side: the position of the next content word to the left, and to the right; -1 for none."""
    words, sides = grid.words(FORM), []
    content = IS_CONTENT[words.lexicon.attribute("class", word_classes)]
    for word, pair, start in (
        (words.source, grid.source_pair, grid.source_start),
        (words.target, grid.target_pair, grid.target_start),
    ):
        token = np.array((nearest(content[word], pair, -1), nearest(content[word], pair, 1)))
        sides.append(np.where(token < 0, -1, token - start[pair]))
    return sides[0], sides[1]


def context_of(
    grid: Grid, name: object, similarity: Callable[[], np.ndarray]
) -> tuple[tuple[Block, Block], Block]:
    """Neighbours, anchors and competitors under another similarity than that of spelling: link blocks, NULL block.

    `similarity()` [C] is the same in both directions; it is called once for them.
    """
    padded = grid.padded()
    columns, similar, score = grid.shared(("context of", name), partial(_near, grid, padded, similarity))
    competitors, null = competition(padded, similar, score)
    link = Block(*columns, padded.place), Block(*table_of(competitors), padded.place)
    return link, Block(*table_of(null), padded.line)


def _near(
    grid: Grid, padded: PaddedGrid, similarity: Callable[[], np.ndarray]
) -> tuple[Named, np.ndarray, np.ndarray]:
    """Columns over the padded grid, and of each place the similarity and its score in context."""
    field = padded.field(similarity(), padded.place)
    similar = padded.near(field, 0, 0)
    columns: Columns = {}
    for step in (-2, -1, 1, 2):
        columns[f"near_{step:+d}"] = padded.near(field, step, step)
    diagonal = sum(columns.values()) / 4
    columns["near_both"] = columns["near_-1"] * columns["near_+1"]
    columns |= content_neighbours(grid, padded, similar)
    anchors = columns["left_anchor_similar"].astype(field.dtype) + columns["right_anchor_similar"]
    score = similar + 0.5 * diagonal + 0.2 * anchors
    return table_of(columns), similar, score - _FAR * padded.distance.astype(score.dtype)


def competition(padded: PaddedGrid, base: np.ndarray, score: np.ndarray) -> tuple[Columns, Columns]:
    """Whether another word of the row or the column is a better partner, and by how much.

    Columns over the padded grid, and over its rows for NULL.
    """
    inside = np.minimum(score, padded.ceiling)
    row, column = padded.best_other(inside, ROW), padded.best_other(inside, COLUMN)
    row_margin, column_margin = score - np.maximum(row, -1.0), score - np.maximum(column, -1.0)
    alike = base > 0
    unlike = ~alike
    wins_row, wins_column = (row_margin > TIE) & alike, (column_margin > TIE) & alike
    wins = wins_row & wins_column
    candidates, suitors = padded.count(alike, ROW), padded.count(alike, COLUMN)
    row_free, column_free = padded.along(candidates == 0, ROW), padded.along(suitors == 0, COLUMN)
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
        "only_pair": alike & padded.along(candidates == 1, ROW) & padded.along(suitors == 1, COLUMN),
    }
    some_win = padded.count(wins, ROW) > 0
    null = {
        "null_no_candidate": candidates == 0,
        "null_some_wins": some_win,
        "null_none_wins": (candidates > 0) & ~some_win,
        "null_margin": np.where(candidates > 0, padded.max(np.where(alike, clipped, -1.0), ROW), 0.0),
        "null_best_company": np.minimum(padded.max(score * alike, ROW), 2.0) / 2,
    }
    return columns, null
