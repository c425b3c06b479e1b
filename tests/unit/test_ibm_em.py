"""EM of the unsupervised aligners: counts, shares and objective against formulas and plain loops."""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet
from variants import variants

from jacana_torch.systems.unsupervised.em import Direction, Settings, agreed, iterate, separate, shares
from jacana_torch.systems.unsupervised.hmm_lattice import Jumps, Moves, Posterior
from jacana_torch.systems.unsupervised.translation_table import NEVER, Table, Text

WORDS = "ant bee cat dog eel fox".split()
TEXTS = st.lists(
    st.tuples(*[st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)] * 2), min_size=1, max_size=6
)


def direction(pairs, weights=None, prior=0.0, null_prior=0.0, variational=False, learn_p0=True) -> Direction:
    moves = Moves(0.3, 0.4, Jumps.uniform(2, "cpu"))
    return Direction(
        Text(pairs, weights), Table(), moves, Settings(prior, null_prior, variational, learn_p0, "cpu")
    )


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.sampled_from([1, 20, 10**6]))
def test_cells_of_a_batch_are_numbers_of_word_pairs(pairs, most_cells):
    text = Text(pairs)
    s, t = text.numbers
    names = [(text.source[a], text.target[b]) for a, b in zip(s, t, strict=True)]
    assert len(set(names)) == len(names) and (np.diff(text.keys) > 0).all()
    seen = []
    for group in text.groups(most_cells):
        batch = text.batch(group, "cpu")
        seen += group.tolist()
        for b, k in enumerate(group.tolist()):
            source, target = pairs[k]
            assert (batch.sizes[b], batch.targets[b]) == (len(source), len(target))
            for i in range(batch.cell.shape[0]):
                word = int(batch.word[i, b])
                assert text.source[word] == source[i] if i < len(source) else word == len(text.source)
                for j in range(batch.cell.shape[2]):
                    cell = int(batch.cell[i, b, j])
                    inside = i < len(source) and j < len(target)
                    assert names[cell] == (source[i], target[j]) if inside else cell == len(names)
    assert sorted(seen) == list(range(len(pairs)))


@settings(max_examples=30, deadline=None)
@given(TEXTS, st.integers(0, 99))
def test_iterations_of_ibm1_agree_with_loops(pairs, seed):
    weights = [Random(seed + k).uniform(0.5, 3) for k in range(len(pairs))]
    d = direction(pairs, weights)
    iterate([d], [False, False], 50, separate, lambda done: None)
    V = len({word for source, _ in pairs for word in source})
    table, null, p0 = defaultdict(lambda: 1 / V), defaultdict(lambda: 1 / V), 0.3
    for _ in range(2):
        links, nulls, tokens, log_likelihood = defaultdict(float), defaultdict(float), 0.0, 0.0
        for (source, target), weight in zip(pairs, weights, strict=True):
            for word in source:
                parts = [(1 - p0) / len(target) * table[word, other] for other in target]
                total = sum(parts) + p0 * null[word]
                for other, part in zip(target, parts, strict=True):
                    links[word, other] += weight * part / total
                nulls[word] += weight * p0 * null[word] / total
                log_likelihood += weight * math.log(total)
                tokens += weight
        rows = defaultdict(float)
        for (_, other), count in links.items():
            rows[other] += count
        table = {pair: count / rows[pair[1]] for pair, count in links.items()}
        skipped = sum(nulls.values())
        null, p0 = {word: count / skipped for word, count in nulls.items()}, skipped / tokens
    found = d.table()
    assert d.moves.p0 == pytest.approx(p0) and d.objective == pytest.approx(log_likelihood)
    for key, value in zip(found.keys, found.probability, strict=True):
        assert value == pytest.approx(table[found.source[key % V], found.target[key // V]])
    for word, value in zip(found.source, found.null, strict=True):
        assert value == pytest.approx(null[word])


@pytest.mark.parametrize(
    "prior, variational", variants([(0.05, True), (0.0, False), (0.2, False), (1.5, True)], 2)
)
@pytest.mark.parametrize("null_prior", variants([1.0, 0.0]))
@pytest.mark.parametrize("jumping", [False, True])
def test_no_iteration_lowers_the_objective(prior, variational, null_prior, jumping):
    draw = Random(5)
    pairs = [tuple(draw.choices(WORDS, k=draw.randint(1, 9)) for _ in range(2)) for _ in range(40)]
    d = direction(pairs, [draw.uniform(0.5, 3) for _ in pairs], prior, null_prior, variational)
    values = []
    iterate([d], [jumping] * 25, 60, separate, lambda done: values.append(d.objective))
    # The first parameters are not a posterior, so the variational bound holds from the second iteration on.
    values = values[1:]
    assert values[-1] > values[0] and all(b >= a - 1e-7 for a, b in zip(values, values[1:], strict=False))


def test_objective_includes_the_prior_of_null():
    pairs = [(["ant", "bee", "ant"], ["ant", "cat"]), (["eel", "ant"], ["dog"])]
    with_it, without = direction(pairs, null_prior=2.0), direction(pairs)
    iterate([with_it], [False], 100, separate, lambda done: None)
    without.values, without.null, without.moves = with_it.values.clone(), with_it.null.clone(), with_it.moves
    logs = float(with_it.null[:-1].log().sum())
    for d in (with_it, without):
        d.clear()
        iterate([d], [False], 100, separate, lambda done: None)
    assert with_it.objective == pytest.approx(without.objective + 2.0 * logs)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(0, 50), min_size=1, max_size=5), min_size=1, max_size=4), st.floats(0.01, 3))
def test_shares_and_cost_of_the_prior(rows, prior):
    V = 6
    counts = torch.tensor([c for row in rows for c in row], dtype=torch.float64)
    row = torch.tensor([r for r, row in enumerate(rows) for _ in row])
    for variational in (False, True):
        found, cost = shares(counts, row, V, prior, variational)
        expected, costs = [], 0.0
        for some in rows:
            every = np.array(some + [0.0] * (V - len(some))) + prior
            if variational:
                share = np.exp(digamma(every) - digamma(every.sum()))
                means = digamma(every) - digamma(every.sum())
                log_prior = gammaln(prior * V) - V * gammaln(prior) + (prior - 1) * means.sum()
                costs += -dirichlet(every).entropy() - log_prior
            else:
                share = every / every.sum()
                costs -= prior * np.log(share).sum()
            expected += share[: len(some)].tolist()
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert cost == pytest.approx(costs, rel=1e-6, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_agreeing_directions_count_the_product_of_posteriors(seed, M, N):
    draw = np.random.default_rng(seed)
    forward, backward = draw.dirichlet(np.ones(N + 1), (M, 2)), draw.dirichlet(np.ones(M + 1), (N, 2))
    sizes = [(M, N), (max(M - 1, 1), max(N - 1, 1))]
    for b, (m, n) in enumerate(sizes):
        forward[m:, b], backward[n:, b] = 0, 0
        forward[:, b, n:-1], backward[:, b, m:-1] = 0, 0
    parts = [
        Posterior(*(torch.tensor(x) for x in (p[..., :-1], p[..., -1])), torch.zeros(2))
        for p in (forward, backward)
    ]
    (link, null), (flipped, other) = agreed(parts)
    for b, (m, n) in enumerate(sizes):
        for i in range(M):
            row = [forward[i, b, j] * backward[j, b, i] for j in range(N)]
            np.testing.assert_allclose(link[i, b], row, atol=1e-12)
            assert float(null[i, b]) == pytest.approx(1 - sum(row) if i < m else 0.0)
        for j in range(N):
            column = [forward[i, b, j] * backward[j, b, i] for i in range(M)]
            np.testing.assert_allclose(flipped[j, b], column, atol=1e-12)
            assert float(other[j, b]) == pytest.approx(1 - sum(column) if j < n else 0.0)


def test_unknown_words_get_probabilities_by_spelling():
    pairs = [(["ant", "bee"], ["ant", "cat"]), (["ant"], ["ant"]), (["bee"], ["cat"])]
    d = direction(pairs)
    iterate([d], [False] * 5, 100, separate, lambda done: None)
    table = d.table()
    sources, targets = ["ant", "zebra", "bee", "zebras"], ["ant", "zebra", "cat"]
    text, found = Text([(sources, targets)]), np.zeros((4, 3))
    found[text.numbers] = table.between(text)
    number = {word: k for k, word in enumerate(table.source)}
    known = {(k % 2, k // 2): p for k, p in zip(table.keys.tolist(), table.probability, strict=True)}
    others = {word: k for k, word in enumerate(table.target)}
    for i, j in ((0, 0), (0, 2), (2, 0), (2, 2)):
        assert found[i, j] == max(known[number[sources[i]], others[targets[j]]], NEVER)
    assert found[1, 1] == table.same == pytest.approx(known[number["ant"], others["ant"]])
    assert NEVER < found[3, 1] < found[1, 1]
    assert found[0, 1] == found[1, 0] == NEVER
    assert found[2, 1] == NEVER  # a letter or two in common are not enough
    assert table.of_null(["zebra"])[0] == pytest.approx(1 / 3) and table.of_null(["ant"])[0] >= NEVER


def test_empty_table():
    assert Table().between(Text([(["ant"], ["ant"])]))[0] == 0.5
    assert len(Table.of_state(Table().state())) == 0
