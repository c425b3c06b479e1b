"""Anchors: every column of every cell against loops over one pair's words, and small sentences by hand."""

from __future__ import annotations

import numpy as np
import pytest
from context_twin import Surroundings
from feature_twin import Bases, random_pairs

from jacana_torch.features.families.kinds import ANCHOR_COLUMNS, anchor_columns
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


OWN = [
    pair("the fox saw the hen and the barn", "the hen , the old fox and the barn burnt"),
    pair("to sell the barn of the fox", "of the barn to the fox"),
    pair("a hen , a fox , a barn", "a barn , a hen , a fox"),
    pair("a", "a a"),
]


def expected(x: SentencePair, longest: int) -> list[list[float]]:
    twin = Bases(x)
    score = Surroundings(twin, twin.base)
    alike = [[b >= 0.9 for b in row] for row in twin.base]
    anchors: dict[int, int] = {}
    for m, n in score.cells():
        alone = sum(alike[m]) == 1 == sum(alike[i][n] for i in range(twin.M))
        telling = (score.content[0][m] and score.content[1][n]) or score.run(m, n) >= longest
        if alike[m][n] and alone and telling:
            anchors[m] = n
    rows = []
    for m, n in score.cells():
        left = max((k for k in anchors if k < m), default=None)
        right = min((k for k in anchors if k > m), default=None)
        by_left = left is not None and n - anchors[left] == m - left
        by_right = right is not None and n - anchors[right] == m - right
        between = left is not None and right is not None and anchors[left] < n < anchors[right]
        crossed = (left is not None and n < anchors[left]) or (right is not None and n > anchors[right])
        rows.append([by_left, by_right, by_left or by_right, by_left and by_right, between, crossed,
                     twin.base[m][n] >= 1 and same_occurrence(twin, m, n)])  # fmt: skip
    return rows


def same_occurrence(twin: Bases, m: int, n: int) -> bool:
    """The words are compared as they are written, so `The` and `the` are two words here."""
    a, b = twin.source[m], twin.target[n]
    before = twin.source[:m].count(a), twin.target[:n].count(b)
    after = twin.source[m + 1 :].count(a), twin.target[n + 1 :].count(b)
    return before[0] == before[1] and after[0] == after[1] and sum(before + after) > 0


def anchored(grid: Grid, in_run: np.ndarray) -> np.ndarray:
    return anchor_columns(grid, in_run, np.arange(grid.n_cells))


def runs(pairs: list[SentencePair], longest: int) -> np.ndarray:
    found = []
    for x in pairs:
        score = Surroundings(twin := Bases(x), twin.base)
        found += [score.run(m, n) >= longest for m, n in score.cells()]
    return np.array(found, dtype=bool)


@pytest.mark.parametrize("longest", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_every_column_of_every_cell(seed, longest):
    pairs = random_pairs(seed, 8) + OWN + [SentencePair(Sentence(()), Sentence(("a",)))]
    got = anchored(Grid(pairs), runs(pairs, longest))
    want = [row for x in pairs for row in expected(x, longest)]
    assert np.array_equal(got, np.array(want, dtype=float).reshape(-1, len(ANCHOR_COLUMNS)))


@pytest.mark.parametrize("seed", range(3))
def test_seen_flipped(seed):
    pairs = random_pairs(seed + 20, 8) + OWN
    grid = Grid(pairs)
    turned = anchored(grid.flipped(), runs(pairs, 3)[grid.by_column])
    assert np.array_equal(turned, anchored(Grid([x.flip() for x in pairs]), runs([x.flip() for x in pairs], 3)))


def test_by_hand():
    """`fox` and `hen` are anchors, and the first `the` stands before the fox there as here."""
    x = pair("the fox and the hen", "the big fox and a hen")
    table = anchored(Grid([x]), np.zeros(30, dtype=bool)).reshape(5, 6, len(ANCHOR_COLUMNS))
    at = {name: table[:, :, k] for k, name in enumerate(ANCHOR_COLUMNS)}
    assert at["right_pin"][0].tolist() == [0, 1, 0, 0, 0, 0]
    assert at["both_pins"][2].tolist() == [0, 0, 0, 1, 0, 0]  # and
    assert at["left_pin"][3].tolist() == at["right_pin"][3].tolist() == [0, 0, 0, 0, 1, 0]
    assert at["between_pins"][3].tolist() == [0, 0, 0, 1, 1, 0]
    assert at["out_of_order"][3].tolist() == [1, 1, 0, 0, 0, 0]
    assert not at["same_occurrence"].any()


def test_repeated_words_by_hand():
    x = pair("a hen , a fox , the barn", "a barn , a fox ,")
    table = anchored(Grid([x]), np.zeros(48, dtype=bool)).reshape(8, 6, len(ANCHOR_COLUMNS))
    same = table[:, :, ANCHOR_COLUMNS.index("same_occurrence")]
    assert np.argwhere(same).tolist() == [[0, 0], [2, 2], [3, 3], [5, 5]]


def test_nothing_at_all():
    assert anchored(Grid([]), np.zeros(0, dtype=bool)).shape == (0, len(ANCHOR_COLUMNS))
