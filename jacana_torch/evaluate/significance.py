"""Significance of the difference between two systems on the same pairs, and confidence intervals.

p-values come from approximate randomisation (Noreen 1989): if the systems were equal, either could have given
either answer to any pair, so answers are swapped at random and differences as large as the observed one counted.
Intervals come from the paired bootstrap: they say how large the difference may be on other pairs like these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import JacanaError
from .scores import Counts

METRICS = ("precision", "recall", "f1", "exact", "micro_precision", "micro_recall", "micro_f1")
ROUNDS = 10_000
_AT_ONCE = 500  # rounds; fixed, because the random numbers depend on it
_SAME = 1e-12  # rounding differences between sums added in different orders


@dataclass(frozen=True)
class Difference:
    """The difference in one metric."""

    value: float  # ours minus theirs
    p: float  # two-sided
    low: float  # the 95% interval of the paired bootstrap
    high: float


def differences(ours: Counts, theirs: Counts, rounds: int = ROUNDS, seed: int = 1) -> dict[str, Difference]:
    """The difference in every metric. Results depend on `seed` alone."""
    if rounds < 1:
        raise JacanaError(f"rounds={rounds}: significance needs at least one round")
    _check_seed(seed)
    if len(ours) != len(theirs) or not np.array_equal(ours.gold, theirs.gold):
        raise JacanaError(
            f"systems must be compared on the same pairs, but these counts have different gold links "
            f"({len(ours)} and {len(theirs)} pairs)"
        )
    if not len(ours):
        raise JacanaError("there are no pairs to compare systems on")
    one, other = _columns(ours), _columns(theirs)
    values = _metrics(one.sum(0), len(one)) - _metrics(other.sum(0), len(one))
    p = _randomised(one, other, np.abs(values), rounds, seed)
    low, high = _bootstrapped(one, other, rounds, seed)
    return {
        name: Difference(*(float(part[k]) for part in (values, p, low, high))) for k, name in enumerate(METRICS)
    }


@dataclass(frozen=True)
class Interval:
    """The 95% interval of a metric over resampled pairs."""

    low: float
    high: float


def intervals(counts: Counts, rounds: int = ROUNDS, seed: int = 1) -> dict[str, Interval]:
    """The bootstrap interval of every metric of one system. Results depend on `seed` alone."""
    if rounds < 1 or not len(counts):
        raise JacanaError(f"rounds={rounds}, {len(counts)} pairs: intervals need at least one of each")
    _check_seed(seed)
    low, high = _bootstrapped(_columns(counts), None, rounds, seed)
    return {name: Interval(float(low[k]), float(high[k])) for k, name in enumerate(METRICS)}


def _columns(counts: Counts) -> np.ndarray:
    """[pairs, 6] the columns whose sums determine every metric."""
    return np.column_stack([*counts.of_pairs, counts.table]).astype(float)


def _metrics(sums: np.ndarray, pairs: int) -> np.ndarray:
    """[..., 7] the metrics, in the order of METRICS, of [..., 6] sums of columns."""
    precision, recall, exact = (sums[..., k] / pairs for k in range(3))
    gold, predicted, both = (sums[..., k] for k in range(3, 6))
    micro = both / np.maximum(predicted, 1), both / np.maximum(gold, 1)
    return np.stack([precision, recall, _f1(precision, recall), exact, *micro, _f1(*micro)], axis=-1)


def _f1(precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    both = precision + recall
    return np.asarray(np.divide(2 * precision * recall, both, out=np.zeros(np.shape(both)), where=both > 0))


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise JacanaError(f"seed={seed}: a whole number from 0")


def _randomised(one: np.ndarray, other: np.ndarray, observed: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """[7] p-values. Only pairs whose counts differ are swapped; if they are few, in every possible way."""
    delta, total = one - other, one.sum(0) + other.sum(0)
    delta = delta[(delta != 0).any(1)]
    every = len(delta) <= 62 and 2 ** len(delta) <= rounds
    extreme = np.zeros(len(METRICS))
    for signs in _all_signs(len(delta)) if every else _random_signs(len(delta), rounds, seed):
        moved = signs @ delta  # [rounds, 6]
        found = _metrics((total + moved) / 2, len(one)) - _metrics((total - moved) / 2, len(one))
        extreme += (np.abs(found) >= observed - _SAME).sum(0)
    return extreme / 2 ** len(delta) if every else (extreme + 1) / (rounds + 1)


def _all_signs(n: int) -> Iterator[np.ndarray]:
    for start in range(0, 2**n, _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, 2**n))
        yield 1.0 - 2.0 * (numbers[:, None] >> np.arange(n) & 1)


def _random_signs(n: int, rounds: int, seed: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(seed)
    for start in range(0, rounds, _AT_ONCE):
        yield 1.0 - 2.0 * random.integers(0, 2, (min(_AT_ONCE, rounds - start), n))


def _bootstrapped(
    one: np.ndarray, other: np.ndarray | None, rounds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """[7] lower and [7] upper bounds of 95% of the resampled metrics, or of their differences from `other`."""
    random, n = np.random.default_rng(seed), len(one)
    found = []
    for start in range(0, rounds, _AT_ONCE):
        size = min(_AT_ONCE, rounds - start)
        drawn = random.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)
        figures = _metrics(times @ one, n)
        found.append(figures if other is None else figures - _metrics(times @ other, n))
    low, high = np.quantile(np.concatenate(found), [0.025, 0.975], axis=0)
    return low, high
