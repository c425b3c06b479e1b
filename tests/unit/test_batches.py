"""Cutting a stream by size, against its definition: no item lost, no batch too large, none that could hold more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.util.batches import by_size


@given(st.lists(st.integers(0, 30)), st.integers(0, 50))
def test_batches_by_size(sizes: list[int], most: int) -> None:
    made = list(by_size(sizes, lambda size: size, most))
    assert [size for batch in made for size in batch] == sizes
    assert all(made), "an empty one"
    assert all(sum(batch) <= most for batch in made if len(batch) > 1)
    assert all(sum(one) + other[0] > most for one, other in zip(made, made[1:], strict=False))
