"""Forward-backward, best paths and jumps of the unsupervised HMM against enumeration, pair by pair."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from hmm_twin import Pair
from hypothesis import given, settings
from hypothesis import strategies as st

from jacana_torch.systems.unsupervised.hmm_lattice import (
    Chains,
    JumpCounts,
    Jumps,
    Moves,
    best_paths,
    independent,
    posteriors,
)

SIZES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3)


def pairs_of(sizes, seed: int, p0: float, uniform: float, window: int = 2) -> list[Pair]:
    draw = random.Random(seed)
    weights = [draw.uniform(0.05, 3) for _ in range(2 * window + 1)]
    starts = [draw.uniform(0.05, 3) for _ in range(window + 1)]
    return [
        Pair(
            [[10 ** draw.uniform(-6, 0) for _ in range(n)] for _ in range(m)],
            [10 ** draw.uniform(-6, 0) for _ in range(m)], p0, uniform, weights, starts,
        )
        for m, n in sizes
    ]  # fmt: skip


def packed(pairs: list[Pair], weight=None) -> tuple[Chains, Moves]:
    M, S = max(len(p.link) for p in pairs), max(p.n for p in pairs)
    link, null = torch.zeros(M, len(pairs), S).double(), torch.zeros(M, len(pairs)).double()
    for b, p in enumerate(pairs):
        link[: len(p.link), b, : p.n] = torch.tensor(p.link, dtype=torch.float64)
        null[: len(p.link), b] = torch.tensor(p.null, dtype=torch.float64)
    sizes, targets = torch.tensor([len(p.link) for p in pairs]), torch.tensor([p.n for p in pairs])
    weight = torch.ones(len(pairs)).double() if weight is None else torch.tensor(weight, dtype=torch.float64)
    one = pairs[0]
    jumps = Jumps(*(torch.tensor(x, dtype=torch.float64) for x in (one.weights, one.starts)))
    return Chains(link, null, sizes, targets, weight), Moves(one.p0, one.uniform, jumps)


def score_of(pair: Pair, path: list[int]) -> float:
    """The probability of the best path with these links (-1: NULL), by the twin."""
    return max(probability for states, probability in pair.paths() if [j if k else -1 for j, k in states] == path)


@settings(max_examples=25, deadline=None)
@given(SIZES, st.integers(0, 10**6), st.sampled_from([0.05, 0.5]), st.sampled_from([0.0, 0.3, 1.0]))
def test_posteriors_and_best_paths_agree_with_enumeration(sizes, seed, p0, uniform):
    pairs = pairs_of(sizes, seed, p0, uniform)
    x, moves = packed(pairs)
    found, (path, score) = posteriors(x, moves), best_paths(x, moves)
    for b, pair in enumerate(pairs):
        log_likelihood, link, null, best, _, _ = pair.expected()
        m, n = len(pair.link), pair.n
        assert float(found.log_likelihood[b]) == pytest.approx(log_likelihood, abs=1e-9)
        np.testing.assert_allclose(found.link[:m, b, :n], link, atol=1e-9)
        np.testing.assert_allclose(found.null[:m, b], null, atol=1e-9)
        assert not found.link[m:, b].any() and not found.link[:, b, n:].any() and not found.null[m:, b].any()
        assert float(score[b]) == pytest.approx(math.log(best), abs=1e-9)
        assert score_of(pair, path[:m, b].tolist()) == pytest.approx(best, rel=1e-9)
        assert (path[m:, b] == -1).all()


@settings(max_examples=25, deadline=None)
@given(SIZES, st.integers(0, 10**6), st.sampled_from([0.05, 0.5]), st.sampled_from([0.0, 0.3, 1.0]))
def test_expected_jumps_agree_with_enumeration(sizes, seed, p0, uniform):
    pairs = pairs_of(sizes, seed, p0, uniform)
    weight = [1.0 + b for b in range(len(pairs))]
    x, moves = packed(pairs, weight)
    counts = JumpCounts.zeros(5, "cpu")
    posteriors(x, moves, counts)
    jump, leave, first = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros((5, 5))
    for pair, times in zip(pairs, weight, strict=True):
        *_, jumps, starts = pair.expected()
        n = pair.n
        jump[:n, :n] += times * np.array(jumps)
        leave[n - 1, :n] += times * np.sum(jumps, axis=1)
        first[n - 1, :n] += times * np.array(starts)
    for found, expected in ((counts.jump, jump), (counts.leave, leave), (counts.first, first)):
        np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(SIZES, st.integers(0, 10**6), st.sampled_from([0.05, 0.5]))
def test_ibm1_is_the_hmm_with_uniform_jumps(sizes, seed, p0):
    pairs = pairs_of(sizes, seed, p0, 1.0)
    x, moves = packed(pairs)
    found = independent(x, p0)
    for b, pair in enumerate(pairs):
        m, n = len(pair.link), pair.n
        total = 0.0
        for i in range(m):
            parts = [(1 - p0) / n * q for q in pair.link[i]]
            here = sum(parts) + p0 * pair.null[i]
            np.testing.assert_allclose(found.link[i, b, :n], [part / here for part in parts], atol=1e-12)
            assert float(found.null[i, b]) == pytest.approx(p0 * pair.null[i] / here)
            total += math.log(here)
        assert float(found.log_likelihood[b]) == pytest.approx(total, abs=1e-9)
        assert not found.link[m:, b].any() and not found.null[m:, b].any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 9))
def test_jump_updates_raise_the_likelihood_and_converge(seed, window, longest):
    """The log-likelihood of the counted jumps never falls, and its gradient vanishes at the end."""
    draw = np.random.default_rng(seed)
    by_length = [draw.gamma(0.5, 5.0, (n, n)) * (n > 1) for n in range(1, longest + 1)]
    counts = JumpCounts.zeros(longest, "cpu")
    for n, jumps in enumerate(by_length, 1):
        counts.jump[:n, :n] += torch.as_tensor(jumps)
        counts.leave[n - 1, :n] += torch.as_tensor(jumps.sum(1))
        counts.first[n - 1, :n] += torch.as_tensor(jumps.sum(0))

    def log_likelihood(weights: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(()).double()
        for n, jumps in enumerate(by_length, 1):
            for j in range(n):
                out = torch.stack([weights[max(-window, min(window, k - j)) + window] for k in range(n)])
                total = total + (torch.as_tensor(jumps[j]) * (out / out.sum()).log()).sum()
            begin = torch.stack([starts[min(k, window)] for k in range(n)])
            total = total + (torch.as_tensor(jumps.sum(0)) * (begin / begin.sum()).log()).sum()
        return total

    jumps, values = Jumps.uniform(window, "cpu"), []
    for _ in range(60):
        values.append(float(log_likelihood(jumps.weights, jumps.starts)))
        jumps = jumps.updated(counts)
    assert all(b >= a - 1e-9 * abs(a) for a, b in zip(values, values[1:], strict=False))
    logs = [x.log().requires_grad_() for x in (jumps.weights, jumps.starts)]
    log_likelihood(*(x.exp() for x in logs)).backward()
    scale = sum(x.sum() for x in by_length)
    assert all(float(x.grad.abs().max()) < 2e-3 * scale for x in logs)
