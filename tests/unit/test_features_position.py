"""Positions: every column of every cell against the formula."""

from __future__ import annotations

import pytest
from feature_twin import assert_empty_sides, assert_same_alone, compare, random_pairs

from jacana_torch.features.families.position import Position
from jacana_torch.features.grid import Grid
from jacana_torch.types import Sentence, SentencePair

LONG = SentencePair(Sentence(("x",) * 45), Sentence(("y",) * 3))


def cell(m: int, n: int, M: int, N: int) -> dict[str, float]:
    relative = abs(m / M - n / N)
    ends = (m + 1 == M) + (n + 1 == N)
    return {
        "relative": relative, "absolute": min(abs(m - n) / 30, 1), "relative<0.05": relative < 0.05,
        "relative<0.15": relative < 0.15, "relative>0.5": relative > 0.5, "both_first": m + n == 0,
        "both_last": ends == 2, "one_last": ends == 1,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_every_column_of_every_cell(seed):
    pairs = [*random_pairs(seed), LONG, LONG.flip(), SentencePair(Sentence(("x",)), Sentence(()))]
    sizes = [(len(x.source), len(x.target)) for x in pairs]
    blocks = Position()(Grid(pairs))
    compare(blocks.link, [cell(m, n, M, N) for M, N in sizes for m in range(M) for n in range(N)])
    expected = [
        {"null_first": m == 0, "null_last": m == M - 1, "null_ratio": N / (M + N)}
        for M, N in sizes
        for m in range(M)
    ]
    compare(blocks.null, expected)


def test_company_and_empty_sides():
    assert_same_alone(Position(), [*random_pairs(7), LONG])
    assert_empty_sides(Position())
