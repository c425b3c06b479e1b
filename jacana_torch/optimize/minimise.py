"""Minimise a smooth function to a stated accuracy, by L-BFGS in float64 (Nocedal & Wright, chapters 3 and 7).

A search can be resumed: its state after an iteration is a few arrays, and a search that starts from them takes the
same steps as one that was never interrupted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    noise: float = 0.0,
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
    `noise`      relative error of the loss, as in single precision; the search ends before a step that would gain
                 no more than that.
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
    search = _Search(closure, Result(start), scale, deque(maxlen=history), noise)
    result = search.result
    try:
        search.run(max_iterations, tolerance, curvature, resume, callback, keep)
    except KeyboardInterrupt:
        log.warning("interrupted at iteration %d: keeping the best point so far", result.iterations)
        result.interrupted, result.message = True, "interrupted"
        return result
    if not result.converged:
        done, why = result.iterations, result.message
        log.warning("stopped after %d iterations short of the required accuracy: %s", done, why)
    return result


class _Point(NamedTuple):
    """A point of the scaled space, with the loss there and its gradient.

    On a line that is searched, `length` says how far along, and `slope` is that of the loss along the line.
    """

    z: np.ndarray
    loss: float
    gradient: np.ndarray
    length: float = 0.0
    slope: float = 0.0


@dataclass
class _Search:
    """A search in x / scale. Its memory stands for second derivatives.

    The memory has the last steps, each with the change of the gradient along it and the product of the two, which
    is positive.
    """

    closure: Closure
    result: Result
    scale: np.ndarray
    memory: deque[tuple[np.ndarray, np.ndarray, float]]
    noise: float = 0.0

    def run(
        self,
        limit: int,
        tolerance: float,
        curvature: float | None,
        resume: State | None,
        callback: Callback | None,
        keep: Keep | None,
    ) -> None:
        """Take steps until the loss is accurate, no step lowers it, or there were too many."""
        result, gain, least = self.result, np.inf, STALLED if curvature else tolerance
        point = self.at(result.x / self.scale) if resume is None else self.resumed(resume)
        while True:
            result.x, result.loss = point.z * self.scale, point.loss  # the best ones: every step lowers the loss
            size, norm = max(abs(point.loss), 1.0), float(np.linalg.norm(point.gradient / self.scale))
            if callback is not None and gain < np.inf:
                callback(result.iterations, result.x, result.loss, norm)
            if curvature and norm**2 / (2 * curvature) <= tolerance * size:
                result.converged, result.message = True, "the loss is within tolerance of its minimum"
                return
            if gain <= least * size:
                result.converged, result.message = True, f"an iteration gains less than {least:g} of the loss"
                return
            if keep is not None and gain < np.inf:
                counts = result.iterations, result.evaluations
                keep(partial(self.state, point, counts, [*self.memory]))
            if result.iterations >= limit:
                result.message = f"STOPPED AT THE LIMIT OF {limit} ITERATIONS"
                return
            found = self.step(point)
            if found is None:
                result.converged, result.message = self.noise > 0, "no step along the gradient lowers the loss"
                if self.noise:
                    result.message = f"no step gains more than the noise of the loss, {self.noise:g} of it"
                return
            result.iterations, gain, point = result.iterations + 1, point.loss - found.loss, found

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

    def step(self, point: _Point) -> _Point | None:
        """Take a step; None if no step lowers the loss by more than its noise, not even one along the gradient."""
        while True:
            direction, shares = -point.gradient, []  # the quasi-Newton one of descent, by the two-loop recursion
            for step, change, product in reversed(self.memory):
                shares.append(float(step @ direction) / product)
                direction -= shares[-1] * change
            if self.memory:
                _, change, product = self.memory[-1]
                direction *= product / float(change @ change)
            for step, change, product in self.memory:
                direction += (shares.pop() - float(change @ direction) / product) * step
            if -float(point.gradient @ direction) / 2 <= self.noise * abs(point.loss):
                return None
            first = 1.0 if self.memory else min(1.0, 1 / float(np.linalg.norm(direction)))
            found = line_search(self.at, point, direction, first)
            if found is not None:
                step, change = found.z - point.z, found.gradient - point.gradient
                product = float(step @ change)
                if product > np.finfo(float).eps * float(change @ change):  # else it is too flat to say anything
                    self.memory.append((step, change, product))
                return found
            if not self.memory or self.noise:
                return None
            self.memory.clear()

    def state(
        self, point: _Point, counts: tuple[int, int], memory: Sequence[tuple[np.ndarray, np.ndarray, float]]
    ) -> State:
        """Return the state at a point, at any time after: no array of a search changes in place."""
        return {
            "point": point.z, "gradient": point.gradient, "loss": np.array(point.loss), "counts": np.array(counts),
            "steps": np.array([step for step, _, _ in memory]).reshape(-1, len(point.z)),
            "changes": np.array([change for _, change, _ in memory]).reshape(-1, len(point.z)),
        }  # fmt: skip

    def resumed(self, state: State) -> _Point:
        """Take back a state, and return its point, whose loss must be found again there."""
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
            self.memory.append((np.array(step), np.array(change), float(step @ change)))
        self.result.iterations, self.result.evaluations = map(int, state["counts"])
        return _Point(z, loss, np.array(state["gradient"]))


def line_search(
    evaluate: Callable[[np.ndarray], _Point], start: _Point, direction: np.ndarray, length: float
) -> _Point | None:
    """Return a point along a direction that satisfies the strong Wolfe conditions; None if TRIALS find none.

    Lengths grow until an interval holds such a point, and cubic interpolation then finds it.
    """
    start = start._replace(length=0.0, slope=float(start.gradient @ direction))
    if start.slope >= 0:
        return None
    low, high = start, None
    for _ in range(TRIALS):
        trial = evaluate(start.z + length * direction)
        trial = trial._replace(length=length, slope=float(trial.gradient @ direction))
        if trial.loss > start.loss + DECREASE * length * start.slope or trial.loss >= low.loss:
            high = trial
        elif abs(trial.slope) <= -SLOPE * start.slope:
            return trial
        else:
            if trial.slope * ((high.length if high else np.inf) - low.length) >= 0:
                high = low
            low = trial
        length = 4 * trial.length if high is None else _between(low, high)
        if length in (low.length, trial.length):  # nothing lies between them
            break
    return low if low.length else None


def _between(one: _Point, other: _Point) -> float:
    """Return the minimum of the cubic through two points, kept away from both; their middle if it has none."""
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
