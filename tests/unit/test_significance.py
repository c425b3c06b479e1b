"""p-values against scipy and hand counts; intervals against resampling pairs one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from variants import variants

from jacana_torch.errors import JacanaError
from jacana_torch.evaluate import Counts, Score
from jacana_torch.evaluate.significance import METRICS, differences

SEEDED = "rng" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15) else "random_state"


def counts(seed: int, n: int, skill: float, gold_seed: int = 0) -> Counts:
    """n pairs of which `skill` of the gold links are found; some have none, in gold or in the prediction."""
    gold = np.random.default_rng(gold_seed).integers(0, 6, n)
    random = np.random.default_rng(seed)
    both = random.binomial(gold, skill)
    return Counts(np.column_stack([gold, both + random.integers(0, 3, n), both]))


def metric(name: str, table: np.ndarray) -> float:
    return getattr(Score.of(Counts(table.astype(np.int64))), name)


def by_scipy(name: str, ours: Counts, theirs: Counts, rounds: float) -> float:
    """scipy permutes the two samples of each pair, which are row numbers here."""
    tables, n = np.stack([ours.table, theirs.table]), len(ours)

    def statistic(which_one, which_other):
        one, other = which_one.astype(int), which_other.astype(int)
        rows = range(n)
        return metric(name, tables[one, rows]) - metric(name, tables[other, rows])

    return float(
        stats.permutation_test(
            (np.zeros(n), np.ones(n)),
            lambda x, y, axis: np.apply_along_axis(lambda v: statistic(v[:n], v[n:]), -1, np.hstack([x, y])),
            permutation_type="samples", vectorized=True, n_resamples=rounds, **{SEEDED: np.random.default_rng(5)},
        ).pvalue
    )  # fmt: skip


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_few_pairs_are_swapped_in_every_way(seed, n):
    ours, theirs = counts(seed, n, 0.9, seed), counts(seed + 1, n, 0.4, seed)
    found = differences(ours, theirs, rounds=200)
    tables = np.stack([ours.table, theirs.table])
    for name in METRICS:
        observed = metric(name, ours.table) - metric(name, theirs.table)
        assert found[name].value == pytest.approx(observed, abs=1e-12)
        ways = [
            metric(name, tables[which, range(n)]) - metric(name, tables[1 - np.array(which), range(n)])
            for which in itertools.product((0, 1), repeat=n)
        ]
        assert found[name].p == pytest.approx(np.mean([abs(w) >= abs(observed) - 1e-12 for w in ways]))


def test_few_pairs_agree_with_scipy():
    ours, theirs = counts(3, 8, 0.9), counts(4, 8, 0.4)
    found = differences(ours, theirs)
    for name in METRICS:
        assert found[name].p == pytest.approx(by_scipy(name, ours, theirs, np.inf), abs=1e-12), name


@pytest.mark.parametrize("skill", variants([0.55, 0.5, 0.6]))
def test_many_pairs_agree_with_scipy(skill):
    ours, theirs = counts(1, 120, skill), counts(2, 120, 0.5)
    found = differences(ours, theirs)
    for name in METRICS:
        expected = by_scipy(name, ours, theirs, 1500)
        noise = 4 * np.sqrt(max(expected * (1 - expected), 1e-3) * (1 / 1500 + 1 / 10_000))
        assert found[name].p == pytest.approx(expected, abs=noise), name


def test_equal_systems_differ_by_chance_and_better_ones_do_not():
    one = counts(1, 300, 0.5)
    same = differences(one, one)
    assert all(d.value == d.low == d.high == 0 and d.p == 1 for d in same.values())
    better = differences(counts(2, 300, 0.9), one)
    for name in ("precision", "recall", "f1", "exact", "micro_f1"):
        assert better[name].p < 0.001 and 0 < better[name].low < better[name].value < better[name].high


def test_p_values_of_equal_systems_are_uniform():
    p = [differences(counts(2 * k, 60, 0.5, k), counts(2 * k + 1, 60, 0.5, k), 300)["f1"].p for k in range(150)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_intervals_agree_with_drawing_pairs_one_by_one():
    ours, theirs = counts(1, 80, 0.7), counts(2, 80, 0.5)
    random = np.random.default_rng(9)
    drawn = [random.integers(0, 80, 80) for _ in range(1500)]
    for name, found in differences(ours, theirs, 5000).items():
        again = [metric(name, ours.table[rows]) - metric(name, theirs.table[rows]) for rows in drawn]
        low, high = np.quantile(again, [0.025, 0.975])
        width = high - low
        assert found.low == pytest.approx(low, abs=0.1 * width) and found.high == pytest.approx(
            high, abs=0.1 * width
        )


def test_results_depend_on_the_seed_and_swapping_systems_changes_signs_alone():
    ours, theirs = counts(1, 90, 0.55), counts(2, 90, 0.5)
    found, back = differences(ours, theirs, 700, seed=3), differences(theirs, ours, 700, seed=3)
    assert found == differences(ours, theirs, 700, seed=3) != differences(ours, theirs, 700, seed=4)
    for name in METRICS:
        assert back[name].value == -found[name].value and back[name].p == found[name].p
        assert back[name].low == pytest.approx(-found[name].high)


def test_other_pairs_and_no_rounds_are_errors():
    with pytest.raises(JacanaError, match="same pairs"):
        differences(counts(1, 5, 0.5), counts(1, 6, 0.5))
    with pytest.raises(JacanaError, match="same pairs"):
        differences(counts(1, 9, 0.5), counts(1, 9, 0.5, gold_seed=1))
    with pytest.raises(JacanaError, match="no pairs"):
        differences(Counts(np.zeros((0, 3), int)), Counts(np.zeros((0, 3), int)))
    with pytest.raises(JacanaError, match="rounds=0"):
        differences(counts(1, 5, 0.5), counts(2, 5, 0.5), rounds=0)
