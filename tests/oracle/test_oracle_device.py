"""Training and aligning on another device: nothing stays on the CPU, and the program seldom waits for the device.

Operations and waits of an evaluation, a step and a batch are the same for a few pairs and for many.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from elsewhere import NAME, Device
from templates import corpus

from jacana_torch.aligners.crf import Crf
from jacana_torch.aligners.neural.neural import Neural
from jacana_torch.crf.objective import Objective, Part
from jacana_torch.crf.states import readings
from jacana_torch.features.families.context import Context
from jacana_torch.features.families.distortion import Distortion
from jacana_torch.features.families.position import Position
from jacana_torch.features.families.string import String

EXAMPLES = corpus(6)
PAIRS = [e.pair for e in EXAMPLES]


def crf(**settings) -> Crf:
    return Crf({family.name: family for family in (String(), Position(), Distortion())}, **settings)


def objective(examples, device: str, precision: str) -> tuple[Objective, np.ndarray]:
    aligner = crf(device=device, precision=precision)
    batch = aligner.features([e.pair for e in examples])
    names = batch.names()
    gold, costs = [readings(e.gold, ["monotone"]).paths for e in examples], {"cost_null": 1.0, "cost_link": 1.0}
    made = Objective([Part(aligner.chain_scores(batch, names), gold)], 1.0, costs, 10**7, device)
    return made, np.random.default_rng(1).normal(size=len(names))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_an_evaluation_waits_twice(precision):
    """For the ranges of transitions, by which a way to compute is chosen, and for loss and gradient."""
    counts = []
    for copies in (1, 20):
        plain, weights = objective(EXAMPLES * copies, "cpu", precision)
        loss, gradient = plain(weights)
        with Device() as device:
            there, _ = objective(EXAMPLES * copies, NAME, precision)
            there(weights)
            device.calls = device.waits = 0
            found = there(weights)
        assert found[0] == pytest.approx(loss, rel=1e-6)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-5, atol=1e-4)
        counts.append((device.calls, device.waits))
    assert counts[0] == counts[1]
    assert counts[0][0] <= 350 and counts[0][1] == 2


def neural_counts(copies: int) -> list[tuple[int, int]]:
    families = {family.name: family for family in (String(), Context(), Position(), Distortion())}
    small = {"width": 8, "blocks": 1, "epochs": 3, "dropout": 0.0, "batch_pairs": 1000}
    losses, alone, counts = [], [], []
    Neural(families, **small).fit(EXAMPLES * copies, (), lambda step: alone.append(step.loss))
    with Device() as device:
        made = Neural(families, **small, device=NAME)

        def ended(step) -> None:
            losses.append(step.loss)
            counts.append((device.calls, device.waits))
            device.calls = device.waits = 0

        made.fit(EXAMPLES * copies, (), ended)
    assert losses == pytest.approx(alone, rel=1e-4)
    return counts


def test_a_step_of_a_network_waits_three_times():
    """For the ranges of either direction's transitions, and for the loss and the norm of its gradient."""
    few, many = neural_counts(2), neural_counts(20)  # an epoch is a step; a lone chain is laid out as it is
    assert few[1:] == many[1:]
    assert few[1][0] <= 2000 and [waits for _, waits in few[1:]] == [3, 3]


@pytest.mark.parametrize("confidence", [False, True])
def test_a_batch_is_aligned_with_a_few_waits(confidence):
    trained = crf()
    trained.fit(EXAMPLES)
    counts = []
    for copies in (1, 20):
        alone = trained.align(PAIRS * copies, confidence)
        with Device() as device:
            there = crf(device=NAME)
            there.restore(trained.state())
            found = there.align(PAIRS * copies, confidence)
        assert [a.links for a in found] == [a.links for a in alone]
        counts.append((device.calls, device.waits))
    assert counts[0] == counts[1]
    assert counts[0][0] <= 900 and counts[0][1] == (6 if confidence else 2)


def test_the_device_counts_and_refuses():
    with Device() as device:
        x = torch.as_tensor(np.arange(4.0), device=NAME)
        assert (x + 1).cpu().tolist() == [1, 2, 3, 4] and float(x.sum()) == 6 and device.waits == 2
        assert x.nonzero().shape == (3, 1) and x[x > 1].shape == (2,) and device.waits == 4
        with pytest.raises(AssertionError, match="one of the CPU"):
            x + torch.ones(4)
