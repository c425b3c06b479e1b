"""The optimiser: accuracy, stopping rules, interruption and errors."""

from __future__ import annotations

import numpy as np
import pytest

from jacana_torch.errors import ConfigError
from jacana_torch.optimize.minimise import DivergedError, minimise


def logistic(columns: int = 30, l2: float = 0.01, seed: int = 0):
    """A regularised logistic regression whose columns differ in size by a hundred."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(300, columns)) * np.logspace(-1, 1, columns)
    y = np.where(draw.random(300) < 0.5, 1.0, -1.0)

    def closure(w):
        margin = y * (x @ w)
        loss = np.logaddexp(0, -margin).sum() + l2 / 2 * w @ w
        return loss, -x.T @ (y * np.exp(-np.logaddexp(0, margin))) + l2 * w

    return closure, 1 / np.sqrt((x**2).sum(0) / 4 + l2)


@pytest.mark.parametrize("curvature", [None, 0.01])
@pytest.mark.parametrize("scaled", [False, True])
def test_two_starts_reach_the_same_loss(curvature, scaled):
    closure, scale = logistic()
    options = {"curvature": curvature, "scale": scale if scaled else None, "max_iterations": 2000}
    a, b = (minimise(closure, start, **options) for start in (np.zeros(30), np.ones(30)))
    assert a.converged and b.converged
    assert a.loss == pytest.approx(b.loss, rel=1e-6)
    assert closure(a.x)[0] == a.loss


def test_the_certificate_bounds_the_distance_to_the_minimum():
    closure, _ = logistic()
    best = minimise(closure, np.zeros(30), tolerance=1e-13, curvature=0.01, max_iterations=5000).loss
    rough = minimise(closure, np.zeros(30), tolerance=1e-3, curvature=0.01, max_iterations=5000)
    assert rough.converged and best <= rough.loss <= best * (1 + 1e-3)
    assert np.linalg.norm(closure(rough.x)[1]) ** 2 / 0.02 <= 1e-3 * rough.loss


def test_a_quadratic_is_solved_exactly():
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    result = minimise(lambda x: (x @ a @ x / 2 - x.sum(), a @ x - 1), np.array([9.0, -9.0]), tolerance=1e-14)
    assert result.x == pytest.approx(np.linalg.solve(a, np.ones(2)), abs=1e-6)


def test_callback_sees_every_iteration():
    closure, _ = logistic()
    seen = []
    result = minimise(closure, np.zeros(30), callback=lambda *state: seen.append(state))
    assert [s[0] for s in seen] == list(range(1, result.iterations + 1))
    for _, x, loss, norm in seen:
        assert closure(x)[0] == loss and np.linalg.norm(closure(x)[1]) == pytest.approx(norm)
    assert seen[-1][2] == result.loss and seen[0][2] > result.loss


@pytest.mark.parametrize("where", ["closure", "callback"])
def test_interrupting_keeps_the_best_point(where):
    closure, _ = logistic()
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return closure(*arguments) if where == "closure" else None

    if where == "closure":
        result = minimise(interrupted, np.zeros(30))
    else:
        result = minimise(closure, np.zeros(30), callback=interrupted)
    assert result.interrupted and not result.converged
    assert closure(result.x)[0] == result.loss < closure(np.zeros(30))[0]


def test_running_out_of_iterations_is_reported():
    closure, _ = logistic()
    result = minimise(closure, np.ones(30), max_iterations=3)
    assert not result.converged and result.iterations == 3 and "ITERATIONS" in result.message


@pytest.mark.parametrize("loss, gradient, match", [(np.nan, 1.0, "loss is nan"), (1.0, np.inf, "entry 0 of the")])
def test_values_that_are_not_finite_are_errors(loss, gradient, match):
    with pytest.raises(DivergedError, match=match):
        minimise(lambda x: (loss, np.full(2, gradient)), np.zeros(2))


def test_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="gradient of 3 values for 2"):
        minimise(lambda x: (1.0, np.zeros(3)), np.zeros(2))
    with pytest.raises(ValueError, match="2 positive numbers"):
        minimise(lambda x: (1.0, np.zeros(2)), np.zeros(2), scale=np.array([1.0, 0.0]))
    assert minimise(lambda x: (4.0, x), np.zeros(0)).loss == 4.0


@pytest.mark.parametrize("curvature", [None, 0.01])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_search_resumed_at_any_iteration_takes_the_same_steps(curvature, scaled):
    closure, scale = logistic()
    options = {"curvature": curvature, "scale": scale if scaled else None, "max_iterations": 2000}
    kept, seen = [], []
    whole = minimise(closure, np.zeros(30), keep=kept.append, callback=lambda *s: seen.append(s), **options)
    assert whole.iterations == len(kept) + 1 > 9
    states = [make() for make in kept]  # long after the search went on
    for k in range(0, len(states), 1 + len(states) // 20):
        state, steps = states[k], []
        result = minimise(
            closure, np.zeros(30), resume=state, callback=lambda *s, steps=steps: steps.append(s), **options
        )
        assert (result.loss, result.iterations, result.evaluations) == (
            whole.loss, whole.iterations, whole.evaluations)  # fmt: skip
        assert np.array_equal(result.x, whole.x) and result.converged
        assert [s[0] for s in steps] == [s[0] for s in seen[k + 1 :]]


def test_the_state_of_another_search_is_refused():
    closure, _ = logistic()
    kept = []
    minimise(closure, np.zeros(30), keep=kept.append, max_iterations=3)
    other, _ = logistic(seed=1)
    with pytest.raises(ConfigError, match="features or linguistic resources have changed"):
        minimise(other, np.zeros(30), resume=kept[-1]())
    with pytest.raises(ConfigError, match="over 30 weights, not 7"):
        minimise(logistic(7)[0], np.zeros(7), resume=kept[-1]())


def test_a_narrow_curved_valley_is_followed():
    """Rosenbrock's function, whose line searches must bracket."""

    def closure(x):
        a, b = x
        return (1 - a) ** 2 + 100 * (b - a * a) ** 2, np.array(
            [-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)]
        )

    for start in ([-1.2, 1.0], [30.0, -20.0], [0.0, 0.0]):
        result = minimise(closure, np.array(start), tolerance=1e-15, max_iterations=500)
        assert result.x == pytest.approx([1.0, 1.0], abs=1e-5) and result.evaluations < 2 * result.iterations + 10
