"""Training a chain: the gradient is that of the loss, and the optimum does not depend on how it is reached."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from templates import corpus

from jacana_torch.aligners.crf import Crf
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.states import gold_states, readings
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.pos import Pos
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String


def crf(**settings) -> Crf:
    families = {family.name: family for family in (String(), Pos(), Position(), Distortion())}
    return Crf(families, **{"tolerance": 1e-9, "l2": 0.5, **settings})


def objective(aligner: Crf, l2: float = 0.5) -> tuple[Objective, list[str]]:
    examples = corpus(8)
    batch = aligner.features([e.pair for e in examples])
    names = batch.names()
    gold = [readings(e.gold, ["monotone"]).paths for e in examples]
    priors = l2 * (1 + np.arange(len(names)) % 3)
    costs = {"cost_null": 0.7, "cost_link": 1.3}
    return Objective([Part(aligner.chain_scores(batch, names), gold)], priors, costs), names


def test_the_gradient_agrees_with_finite_differences():
    function, names = objective(crf(batch_cells=300))
    at = np.random.default_rng(3).normal(size=len(names)) * 0.3
    _, gradient = function(at)
    assert len(names) > 100 and (np.abs(gradient) > 1e-3).all()
    step = 1e-4
    for k in range(len(names)):
        there = np.zeros(len(names))
        there[k] = step
        slope = (function(at + there)[0] - function(at - there)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6), names[k]


def test_the_layout_changes_nothing():
    at = None
    found = []
    for batch_cells in (1, 300, 10**6):
        function, names = objective(crf(batch_cells=batch_cells))
        at = np.random.default_rng(4).normal(size=len(names)) if at is None else at
        found.append(function(at))
    for loss, gradient in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-12)
        np.testing.assert_allclose(gradient, found[0][1], rtol=1e-9, atol=1e-9)


def test_costs_and_prior_are_in_the_loss():
    """At weight 0 all (N + 1) ^ M paths score 0: the loss is a sum of logs of (N exp(cost) + 1) over tokens."""
    function, names = objective(crf())
    expected = 0.0
    for example in corpus(8):
        for state in gold_states(example.gold).states:
            expected += np.log(len(example.pair.target) * np.exp(1.3 if state else 0.7) + 1)
    assert function(np.zeros(len(names)))[0] == pytest.approx(expected, rel=1e-12)
    ones = np.ones(len(names))
    with_prior, without = function(ones)[0], objective(crf(), l2=0.0)[0](ones)[0]
    assert with_prior - without == pytest.approx(0.25 * (1 + np.arange(len(names)) % 3).sum(), rel=1e-9)


@cache
def trained(start: float, batch_cells: int) -> tuple[Crf, float]:
    aligner = crf(start=start, batch_cells=batch_cells)
    report = aligner.fit(corpus(40))
    assert report.converged
    return aligner, report.loss["forward"]


@pytest.mark.parametrize(("start", "batch_cells"), [(1.0, 500_000), (0.0, 200), (-2.0, 1_000)])
def test_the_optimum_does_not_depend_on_the_start(start, batch_cells):
    usual, loss = trained(0.0, 500_000)
    other, other_loss = trained(start, batch_cells)
    assert other_loss == pytest.approx(loss, rel=1e-6)
    assert other.names == usual.names
    pairs = [e.pair for e in corpus(30, seed=2)]
    for a, b in zip(usual.align(pairs), other.align(pairs), strict=True):
        assert a.links == b.links and a.score == pytest.approx(b.score, abs=1e-3)


def test_training_continues_from_restored_weights():
    loss = trained(0.0, 500_000)[1]
    aligner = crf(max_iterations=7)
    first = aligner.fit(corpus(40))
    assert not first.converged and first.loss["forward"] > loss * (1 + 1e-4)
    resumed = crf(start=5.0)  # `start` applies only to weights that were never trained
    resumed.restore(aligner.state())
    second = resumed.fit(corpus(40))
    assert second.loss["forward"] == pytest.approx(loss, rel=1e-6)
    done = crf()
    done.restore(resumed.state())
    third = done.fit(corpus(40))
    assert third.loss["forward"] == pytest.approx(loss, rel=1e-6) and third.iterations["forward"] <= 3


def test_it_learns_the_templates():
    aligner, _ = trained(0.0, 500_000)
    examples = corpus(30, seed=9)
    right = [
        a.sure == e.gold.sure for a, e in zip(aligner.align([e.pair for e in examples]), examples, strict=True)
    ]
    assert sum(right) >= 25
