"""Cutting a stream by size: no item is lost, no batch is too large, and none could hold one more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.util.batches import by_size, like_sizes


@given(st.lists(st.integers(0, 30)), st.integers(0, 50))
def test_batches_by_size(sizes: list[int], most: int) -> None:
    made = list(by_size(sizes, lambda size: size, most))
    assert [size for batch in made for size in batch] == sizes
    assert all(made), "an empty one"
    assert all(sum(batch) <= most for batch in made if len(batch) > 1)
    assert all(sum(one) + other[0] > most for one, other in zip(made, made[1:], strict=False))


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=200), st.integers(1, 20_000))
def test_every_pair_once_and_within_the_limit(sizes, limit):
    m, n = (np.array([s[i] for s in sizes], dtype=np.int64) for i in (0, 1))
    cut = like_sizes(m, n, limit)
    assert sorted(i for b in cut for i in b.tolist()) == list(range(len(sizes)))
    for b in cut:
        assert len(b) == 1 or len(b) * m[b].max() * (n[b].max() + 1) <= limit


def test_little_padding_and_few_batches():
    draw = np.random.default_rng(0)
    m = draw.integers(3, 60, 3000)
    n = np.clip(m + draw.integers(-8, 9, 3000), 1, None)
    cut = like_sizes(m, n, 100_000)
    padded = sum(len(b) * m[b].max() * (n[b].max() + 1) for b in cut)
    assert padded < 1.5 * (m * (n + 1)).sum()
    assert len(cut) < 3 * padded / 100_000 + 20


def test_one_long_pair_does_not_blow_up_the_rest():
    m, n = np.array([10] * 500 + [300]), np.array([10] * 500 + [300])
    cut = like_sizes(m, n, 200_000)
    assert [500] in [b.tolist() for b in cut]


def test_lengths_must_come_in_pairs():
    with pytest.raises(ValueError, match="2 source lengths and 1 target"):
        like_sizes(np.array([1, 2]), np.array([1]), 100)
