"""Cutting ragged pairs into batches, and arranging chains by their table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.crf.buckets import buckets
from jacana_torch.crf.groups import group_rows


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=200), st.integers(1, 20_000))
def test_every_pair_once_and_within_the_limit(sizes, limit):
    m, n = (np.array([s[i] for s in sizes], dtype=np.int64) for i in (0, 1))
    cut = buckets(m, n, limit)
    assert sorted(i for b in cut for i in b.tolist()) == list(range(len(sizes)))
    for b in cut:
        assert len(b) == 1 or len(b) * m[b].max() * (n[b].max() + 1) <= limit


def test_little_padding_and_few_batches():
    draw = np.random.default_rng(0)
    m = draw.integers(3, 60, 3000)
    n = np.clip(m + draw.integers(-8, 9, 3000), 1, None)
    cut = buckets(m, n, 100_000)
    padded = sum(len(b) * m[b].max() * (n[b].max() + 1) for b in cut)
    assert padded < 1.5 * (m * (n + 1)).sum()
    assert len(cut) < 3 * padded / 100_000 + 20


def test_one_long_pair_does_not_blow_up_the_rest():
    m, n = np.array([10] * 500 + [300]), np.array([10] * 500 + [300])
    cut = buckets(m, n, 200_000)
    assert [500] in [b.tolist() for b in cut]


def test_lengths_must_come_in_pairs():
    with pytest.raises(ValueError, match="2 source lengths and 1 target"):
        buckets(np.array([1, 2]), np.array([1]), 100)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=80))
def test_each_chain_has_a_row_of_its_own_in_a_group_of_its_table(table):
    g = group_rows(torch.tensor(table), 7)
    assert g.count <= len(set(table)) + len(table) // max(g.width, 1)
    if g.row is None:
        assert len(set(table)) == 1 and g.rows == len(table) and g.table.tolist() == [table[0]]
        return
    rows = g.row.tolist()
    assert len(set(rows)) == len(table) and max(rows) < g.rows
    assert [int(g.table[row // g.width]) for row in rows] == table
    values = torch.arange(len(table))
    assert torch.equal(g.gather(g.scatter(values, -1).unsqueeze(1)).squeeze(1), values)
