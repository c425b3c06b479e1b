"""Is one system better than another, or luckier? Two tables of counts of the same pairs in, p-values out.

Approximate randomisation (Noreen 1989): were the systems alike, either could have given either's answer to any
pair; how often do answers that are swapped at random differ by as much? The bootstrap says how large the
difference might be on other pairs like these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import JacanaError
from .counts import Counts

METRICS = ("precision", "recall", "f1", "exact", "micro_precision", "micro_recall", "micro_f1")
ROUNDS = 10_000
_AT_ONCE = 500  # rounds; their number must not depend on the machine, or the random numbers would
_SAME = 1e-12  # differences of sums that were added up in another order


@dataclass(frozen=True)
class Difference:
    """Of one metric: ours minus theirs, its two-sided p-value, and the 95% interval of the paired bootstrap."""

    value: float
    p: float
    low: float
    high: float


def differences(ours: Counts, theirs: Counts, rounds: int = ROUNDS, seed: int = 1) -> dict[str, Difference]:
    """Every metric's difference. The same seed gives the same figures."""
    if rounds < 1:
        raise JacanaError(f"rounds={rounds}: significance needs one round at least")
    if len(ours) != len(theirs) or not np.array_equal(ours.gold, theirs.gold):
        raise JacanaError(
            f"two systems are compared on the same pairs, and these counts, of {len(ours)} and of {len(theirs)}, "
            "are of others"
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
    """Where 95% of a system's figures on as many pairs drawn with replacement lie."""

    low: float
    high: float


def intervals(counts: Counts, rounds: int = ROUNDS, seed: int = 1) -> dict[str, Interval]:
    """Of every metric of one system. The same seed gives the same figures."""
    if rounds < 1 or not len(counts):
        raise JacanaError(f"rounds={rounds}, {len(counts)} pairs: intervals need one of either at least")
    low, high = _bootstrapped(_columns(counts), None, rounds, seed)
    return {name: Interval(float(low[k]), float(high[k])) for k, name in enumerate(METRICS)}


def _columns(counts: Counts) -> np.ndarray:
    """[pairs, 6]: what every metric is made of the sums of."""
    return np.column_stack([counts.precision, counts.recall, counts.exact, counts.table]).astype(float)


def _metrics(sums: np.ndarray, pairs: int) -> np.ndarray:
    """[..., 6] sums of columns -> [..., 7], in the order of METRICS."""
    precision, recall, exact = (sums[..., k] / pairs for k in range(3))
    gold, predicted, both = (sums[..., k] for k in range(3, 6))
    micro = _ratio(both, predicted), _ratio(both, gold)
    return np.stack([precision, recall, _f1(precision, recall), exact, *micro, _f1(*micro)], axis=-1)


def _f1(precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _randomised(one: np.ndarray, other: np.ndarray, observed: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """[7] p-values. Pairs with the same counts make no difference, so only others are swapped; where these are
    few, every way of swapping them is tried."""
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
    """[7] and [7]: between these lie 95% of the figures, or of the differences, on as many pairs drawn with
    replacement."""
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
