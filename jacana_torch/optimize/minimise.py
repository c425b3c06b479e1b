"""Minimise a smooth function to a stated accuracy, by L-BFGS in float64 (Nocedal & Wright, chapters 3 and 7).

A search can be resumed: its state after an iteration is a few arrays, and a search that starts from them takes the
same steps as one that was never interrupted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import ConfigError, JacanaError

log = logging.getLogger(__name__)

Closure = Callable[[np.ndarray], tuple[Any, Any]]  # x -> (loss, gradient)
Callback = Callable[[int, np.ndarray, float, float], None]  # (iteration, x, loss, norm of the gradient)
State = Mapping[str, np.ndarray]
Keep = Callable[[Callable[[], State]], None]

DECREASE, SLOPE = 1e-4, 0.9  # the strong Wolfe conditions: c1 and c2
TRIALS = 40  # of a line search
STALLED = 1e-15  # relative gain of an iteration, below which rounding has ended the search
AGREES = 1e-6  # relative difference of the loss that is found again at the point of a state


@dataclass
class Result:
    """The best point of a search and its loss; `iterations` counts steps, `evaluations` calls of the closure.

    `converged` says that the accuracy was reached, and `interrupted` that Ctrl-C ended the search.
    """

    x: np.ndarray
    loss: float = np.inf
    iterations: int = 0
    evaluations: int = 0
    converged: bool = False
    interrupted: bool = False
    message: str = ""


class DivergedError(JacanaError):
    """The loss or its gradient is no longer finite."""


def minimise(
    closure: Closure,
    x0: np.ndarray,
    *,
    max_iterations: int = 300,
    tolerance: float = 1e-9,
    curvature: float | None = None,
    history: int = 10,
    scale: np.ndarray | None = None,
    callback: Callback | None = None,
    resume: State | None = None,
    keep: Keep | None = None,
) -> Result:
    """Find the minimum of `closure(x) -> (loss, gradient)`, with a strong Wolfe line search.

    `tolerance`  relative accuracy of the loss. With `curvature` (a lower bound of the second derivative in every
                 direction, such as the L2 weight) it is guaranteed: the search ends when |gradient|^2 / (2
                 curvature), which bounds the remaining gain, is below tolerance * |loss|. Otherwise the search
                 ends when an iteration gains less.
    `history`    number of corrections that L-BFGS remembers.
    `scale`      searches in x / scale; good values are about the inverse root of the second derivatives.
    `callback`   called after each iteration with the best point so far.
    `keep`       called after each iteration but the last, with a function that returns the state of the search at
                 that moment, whenever it is called. `resume` is such a state, of a search for the same minimum.

    Ctrl-C ends the search and returns the best point so far.
    """
    start = np.array(x0, dtype=np.float64).reshape(-1)
    scale = np.ones_like(start) if scale is None else np.asarray(scale, dtype=np.float64).reshape(-1)
    if scale.shape != start.shape or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"scale must hold {start.size} positive numbers")
    if start.size == 0:
        return Result(start, float(closure(start)[0]), 0, 1, True, False, "there is nothing to minimise over")
    search = _Search(closure, Result(start), scale, _Memory(history), tolerance, curvature)
    result = search.result
    try:
        search.run(max_iterations, resume, callback, keep)
    except KeyboardInterrupt:
        log.warning("interrupted at iteration %d: keeping the best point so far", result.iterations)
        result.interrupted, result.message = True, "interrupted"
        return result
    if not result.converged:
        done, why = result.iterations, result.message
        log.warning("stopped after %d iterations short of the required accuracy: %s", done, why)
    return result


class _Point(NamedTuple):
    """A point of the scaled space, with the loss there and its gradient."""

    z: np.ndarray
    loss: float
    gradient: np.ndarray


@dataclass
class _Search:
    """A search in x / scale: its best point, and what it remembers of its last steps."""

    closure: Closure
    result: Result
    scale: np.ndarray
    memory: _Memory
    tolerance: float
    curvature: float | None

    def run(self, limit: int, resume: State | None, callback: Callback | None, keep: Keep | None) -> None:
        """Take steps until one of them ends the search."""
        result, point = self.result, self.begun(resume)
        result.message = self.ended(point)
        while not result.message:
            if result.iterations >= limit:
                result.message = f"STOPPED AT THE LIMIT OF {limit} ITERATIONS"
                return
            before, found = point, self.step(point)
            if found is None:
                result.message = "no step along the gradient lowers the loss"
                return
            point = found
            result.iterations += 1
            if callback is not None:
                callback(result.iterations, result.x, result.loss, self.norm(point))
            result.message = self.ended(point, before.loss - point.loss)
            if keep is not None and not result.message:
                keep(self.state(point))
        result.converged = True

    def norm(self, point: _Point) -> float:
        """Return the norm of the gradient in x."""
        return float(np.linalg.norm(point.gradient / self.scale))

    def ended(self, point: _Point, gain: float = np.inf) -> str:
        """Return why the search ends at a point that the last step reached with this gain; empty if it goes on."""
        size = max(abs(point.loss), 1.0)
        if self.curvature and self.norm(point) ** 2 / (2 * self.curvature) <= self.tolerance * size:
            return "the loss is within tolerance of its minimum"
        least = STALLED if self.curvature else self.tolerance
        return f"an iteration gains less than {least:g} of the loss" if gain <= least * size else ""

    def begun(self, state: State | None) -> _Point:
        """Return the first point: the start, or that of a state, whose loss must be found again there."""
        if state is None:
            return self.reached(self.at(self.result.x / self.scale))
        z, loss = np.array(state["point"]), float(state["loss"])
        if z.shape != self.scale.shape:
            raise ConfigError(f"the interrupted search is over {z.size} weights, not {self.scale.size}")
        again = self.at(z).loss
        if abs(again - loss) > AGREES * max(abs(loss), 1.0):
            raise ConfigError(
                f"the loss of the weights that were kept was {loss:.6f} and is {again:.6f} now: features or "
                "linguistic resources have changed since, so training must begin anew, without resume="
            )
        for step, change in zip(state["steps"], state["changes"], strict=True):
            self.memory.add(np.array(step), np.array(change))
        self.result.iterations, self.result.evaluations = map(int, state["counts"])
        return self.reached(_Point(z, loss, np.array(state["gradient"])))

    def state(self, point: _Point) -> Callable[[], State]:
        """Return a function that returns the state at this point: no array of a search changes in place."""
        pairs = list(self.memory.pairs)
        counts, size = np.array([self.result.iterations, self.result.evaluations]), (-1, len(point.z))

        def state() -> State:
            return {
                "point": point.z, "gradient": point.gradient, "loss": np.array(point.loss), "counts": counts,
                "steps": np.array([pair.step for pair in pairs]).reshape(size),
                "changes": np.array([pair.change for pair in pairs]).reshape(size),
            }  # fmt: skip

        return state

    def at(self, z: np.ndarray) -> _Point:
        """Evaluate the closure; DivergedError if loss or gradient are not finite."""
        loss, gradient = self.closure(z * self.scale)
        loss, gradient = float(loss), np.asarray(gradient, dtype=np.float64).reshape(-1)
        self.result.evaluations += 1
        if gradient.shape != z.shape:
            raise ValueError(f"the closure gave a gradient of {gradient.size} values for {z.size}")
        wrong = np.flatnonzero(~np.isfinite(gradient))
        if not np.isfinite(loss) or len(wrong):
            what = f"the loss is {loss}"
            if np.isfinite(loss):
                what = f"entry {wrong[0]} of the gradient is {gradient[wrong[0]]}"
            raise DivergedError(
                f"{what} at evaluation {self.result.evaluations} (iteration {self.result.iterations}): a feature "
                "value is not finite, or the weights diverge; check the features, or regularise more strongly"
            )
        return _Point(z, loss, gradient * self.scale)

    def reached(self, point: _Point) -> _Point:
        """Make a point the best one: every step lowers the loss."""
        self.result.x, self.result.loss = point.z * self.scale, point.loss
        return point

    def step(self, point: _Point) -> _Point | None:
        """Take a step; None if no step lowers the loss, not even one along the gradient."""
        while True:
            direction = self.memory.direction(point.gradient)
            first = 1.0 if self.memory.pairs else min(1.0, 1 / float(np.linalg.norm(direction)))
            found = line_search(self.at, point, direction, first)
            if found is not None:
                self.memory.add(found.z - point.z, found.gradient - point.gradient)
                return self.reached(found)
            if not self.memory.pairs:
                return None
            self.memory.pairs.clear()


class _Pair(NamedTuple):
    """A step, the change of the gradient along it, and their product, which is positive."""

    step: np.ndarray
    change: np.ndarray
    product: float


class _Memory:
    """The last steps of a search, which stand for second derivatives."""

    def __init__(self, size: int) -> None:
        self.pairs: deque[_Pair] = deque(maxlen=size)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        product = float(step @ change)
        if product > np.finfo(float).eps * float(change @ change):  # else it is too flat to say anything
            self.pairs.append(_Pair(step, change, product))

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return the quasi-Newton direction of descent, by the two-loop recursion."""
        direction, shares = -gradient, []
        for pair in reversed(self.pairs):
            shares.append(float(pair.step @ direction) / pair.product)
            direction -= shares[-1] * pair.change
        if self.pairs:
            last = self.pairs[-1]
            direction *= last.product / float(last.change @ last.change)
        for pair in self.pairs:
            direction += (shares.pop() - float(pair.change @ direction) / pair.product) * pair.step
        return direction


class _Trial(NamedTuple):
    """A step length, with the loss there, its slope along the direction, and the point."""

    length: float
    loss: float
    slope: float
    point: _Point


def line_search(
    evaluate: Callable[[np.ndarray], _Point], start: _Point, direction: np.ndarray, length: float
) -> _Point | None:
    """Return a point along a direction that satisfies the strong Wolfe conditions; None if TRIALS find none.

    Lengths grow until an interval holds such a point, and cubic interpolation then finds it.
    """
    slope = float(start.gradient @ direction)
    if slope >= 0:
        return None
    low, high = _Trial(0.0, start.loss, slope, start), None
    for _ in range(TRIALS):
        point = evaluate(start.z + length * direction)
        trial = _Trial(length, point.loss, float(point.gradient @ direction), point)
        if trial.loss > start.loss + DECREASE * length * slope or trial.loss >= low.loss:
            high = trial
        elif abs(trial.slope) <= -SLOPE * slope:
            return point
        else:
            if trial.slope * ((high.length if high else np.inf) - low.length) >= 0:
                high = low
            low = trial
        length = 4 * trial.length if high is None else _between(low, high)
        if length in (low.length, trial.length):  # nothing lies between them
            break
    return low.point if low.length else None


def _between(one: _Trial, other: _Trial) -> float:
    """Return the minimum of the cubic through two trials, kept away from both; their middle if it has none."""
    width = other.length - one.length
    a = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.length - other.length)
    root = a * a - one.slope * other.slope
    share = 0.5
    if root > 0:
        b = float(np.sqrt(root)) * (1.0 if width > 0 else -1.0)
        bottom = other.slope - one.slope + 2 * b
        if bottom:
            share = 1 - (other.slope + b - a) / bottom
    return one.length + width * min(max(share, 0.1), 0.9)
