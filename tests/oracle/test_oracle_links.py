"""Choosing links by expected F1, against every choice there is in every world that the chances allow."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.crf.links import expected_f1_links

chances = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5])


def expected_f1(kept: tuple[int, ...], chances: list[float]) -> float:
    """The mean F1 of keeping the links marked 1, over all sets of links that might be gold."""
    total = 0.0
    for gold in product((0, 1), repeat=len(chances)):
        likely = 1.0
        for is_gold, chance in zip(gold, chances, strict=True):
            likely *= chance if is_gold else 1 - chance
        both = sum(a and b for a, b in zip(gold, kept, strict=True))
        if both:
            total += likely * 2 * both / (sum(gold) + sum(kept))
    return total


@given(st.lists(chances, max_size=6))
def test_no_other_choice_of_links_is_expected_to_do_better(chances):
    kept, threshold, f1 = expected_f1_links(chances)
    ranked = sorted(chances, reverse=True)
    best = max(expected_f1(choice, ranked) for choice in product((0, 1), repeat=len(chances)))
    assert f1 == pytest.approx(best, abs=1e-12)
    assert expected_f1((1,) * kept + (0,) * (len(chances) - kept), ranked) == pytest.approx(best, abs=1e-12)
    if kept:
        assert threshold == ranked[kept - 1]
    else:
        assert best == 0 and threshold == 1.0


def test_links_worked_out_by_hand():
    assert expected_f1_links([1.0, 0.4]) == (1, 1.0, pytest.approx(0.6 + 0.4 * 2 / 3))
    assert expected_f1_links([1.0, 0.6]) == (2, 0.6, pytest.approx(0.6 + 0.4 * 2 / 3))
    assert expected_f1_links([0.2]) == (1, 0.2, pytest.approx(0.2))
    assert expected_f1_links([]) == (0, 1.0, 0.0)


def test_many_links_are_no_harder():
    """The chances of a long pair: nothing overflows."""
    kept, threshold, f1 = expected_f1_links([0.9] * 400 + [0.01] * 400)
    assert kept == 400 and threshold == 0.9
    assert f1 == pytest.approx(2 * 360 / (400 + 364), abs=1e-3)
