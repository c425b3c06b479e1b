"""Portions against their definition: nothing is lost, none is too large, and none could have held one more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.util.batches import portions


@given(st.lists(st.integers(0, 30)), st.integers(0, 50))
def test_portions(sizes: list[int], most: int) -> None:
    made = list(portions(sizes, lambda size: size, most))
    assert [size for portion in made for size in portion] == sizes
    assert all(made), "an empty one"
    assert all(sum(portion) <= most for portion in made if len(portion) > 1)
    assert all(sum(one) + other[0] > most for one, other in zip(made, made[1:], strict=False))
