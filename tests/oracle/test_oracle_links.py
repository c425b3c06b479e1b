"""Choosing links by expected F1, against every choice there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.crf.inference import expected_f1_links


@given(st.lists(st.floats(0, 1), max_size=10))
def test_no_other_choice_of_links_is_expected_to_do_better(chances):
    kept, threshold, f1 = expected_f1_links(chances)
    everything = sum(chances)
    choices = [[c for i, c in enumerate(chances) if mask >> i & 1] for mask in range(1, 2 ** len(chances))]
    values = [2 * sum(c) / (len(c) + everything) for c in choices]
    assert f1 == pytest.approx(max(values, default=0.0))
    if kept:
        best = sorted(chances, reverse=True)[:kept]
        assert threshold == best[-1] and f1 == pytest.approx(2 * sum(best) / (kept + everything))
    else:
        assert everything == 0 and threshold == 1.0
