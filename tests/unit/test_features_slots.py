"""A table of fixed size: what it tells was kept under that code, and what is asked for again stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.features.slots import Slots

ROW = np.dtype([("0", np.float64), ("1", np.float32)])


def rows(codes: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.empty(len(codes), ROW)
    out["0"], out["1"] = np.sqrt(codes), codes % 7
    return out


def some(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(1 << 40, size, replace=False)


def fill(table: Slots, codes: np.ndarray) -> None:
    codes = np.asarray(codes, np.int64)
    _, there = table.look_up(codes)
    table.keep(codes[~there], rows(codes[~there]))


@given(
    st.integers(0, 6),
    st.lists(st.lists(st.integers(0, 300), unique=True, max_size=30), min_size=1, max_size=12),
)
def test_what_is_found_was_kept_under_that_code(bits, batches):
    table, met = Slots(bits, ROW), set()
    for batch in batches:
        codes = np.array(batch, np.int64)
        found, there = table.look_up(codes)
        assert met.issuperset(codes[there].tolist())
        assert (found[there] == rows(codes[there])).all()
        fill(table, codes)
        met.update(batch)
        held = table.code[table.code >= 0]
        assert len(held) == len(set(held.tolist())) == table.taken <= 1 << bits
        assert table.look_up(held)[1].all()


def test_a_few_codes_are_all_there():
    """At a load where one slot a code would lose many."""
    table, codes = Slots(12, ROW), some(1, 1 << 10)
    fill(table, codes)
    assert table.look_up(codes)[1].mean() > 0.99
    assert (np.bincount(table._own(codes)) > 1).sum() > 50


def test_what_is_asked_for_again_outlives_what_comes_once():
    table, often = Slots(10, ROW), some(1, 400)
    fill(table, often)
    for turn in range(20):
        fill(table, some(2 + turn, 300))
        fill(table, often)
    lost = ~table.look_up(often)[1]
    assert lost.mean() < 0.05
    assert table.taken == len(table.code)  # and yet others came


def test_what_is_no_longer_asked_for_makes_way():
    table, old = Slots(8, ROW), some(1, 256)
    for _ in range(3):
        fill(table, old)
    before = table.look_up(old)[1].sum()
    assert before > 150
    new = some(2, 200)
    for _ in range(6):
        fill(table, new)
    assert table.look_up(new)[1].mean() > 0.8
    assert np.isin(table.code, old).sum() < before - 50


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_and_one(size):
    table, codes = Slots(3, ROW), np.arange(size)
    fill(table, codes)
    found, there = table.look_up(codes)
    assert len(found) == size and there.all()
