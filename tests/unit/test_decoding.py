"""Pairs cut into grids: none is lost, those without words are left out, and the hopeless are told at once."""

from __future__ import annotations

import pytest

from jacana_torch.errors import ConfigError
from jacana_torch.features.grid import LARGEST_PAIR, LONGEST_SIDE, grids
from jacana_torch.types import Sentence, SentencePair


def pair(m: int, n: int) -> SentencePair:
    return SentencePair(Sentence(("owl",) * m), Sentence(("hen",) * n))


def test_every_pair_with_words_is_in_one_grid():
    pairs = [pair(m, n) for m, n in [(3, 5), (0, 4), (2, 2), (7, 1), (4, 0), (6, 6), (1, 9)]]
    found = list(grids(pairs, most_cells=40))
    assert sorted(place for places, _ in found for place in places) == [0, 2, 3, 5, 6]
    for places, grid in found:
        assert grid.n_source.tolist() == [len(pairs[k].source) for k in places]
        assert grid.n_target.tolist() == [len(pairs[k].target) for k in places]
        assert grid.n_cells <= 40 or len(places) == 1


@pytest.mark.parametrize("m, n", [(LONGEST_SIDE + 1, 1), (1, LONGEST_SIDE + 1), (4001, LARGEST_PAIR // 4000)])
def test_what_is_too_large_is_told(m, n):
    with pytest.raises(ConfigError, match=f"a pair of {m} x {n} tokens is too large .*split it"):
        list(grids([pair(2, 3), pair(m, n)], most_cells=100))


def test_nothing_is_too_long_to_have_no_partner():
    assert list(grids([pair(LONGEST_SIDE + 1, 0)], most_cells=100)) == []
