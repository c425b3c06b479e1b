"""Minimising a smooth function to a stated accuracy: L-BFGS in float64. Knows nothing of alignment.

In come a closure that gives loss and gradient at a point, and a starting point; out goes a `Result`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import JacanaError

log = logging.getLogger(__name__)

Closure = Callable[[np.ndarray], tuple[Any, Any]]
Callback = Callable[[int, np.ndarray, float, float], None]


@dataclass(frozen=True)
class Result:
    """`x` is the best point met, `loss` its value; `iterations` steps taken, `evaluations` calls of the closure.

    `converged` says that the accuracy asked for was reached, `interrupted` that Ctrl-C ended the search.
    """

    x: np.ndarray
    loss: float
    iterations: int
    evaluations: int
    converged: bool
    interrupted: bool
    message: str


class DivergedError(JacanaError):
    """The loss or its gradient stopped being a number."""


@dataclass
class _Search:
    """The function in scaled coordinates z = x / scale, and the best point seen so far.

    `certified`  what is left to gain is within the tolerance.
    """

    closure: Closure
    scale: np.ndarray
    best_x: np.ndarray
    tolerance: float
    curvature: float | None
    callback: Callback | None
    certified: bool = False
    best_loss: float = np.inf
    best_gradient: np.ndarray = field(default_factory=lambda: np.zeros(0))
    evaluations: int = 0
    iterations: int = 0

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        x = z * self.scale
        loss, gradient = self.closure(x)
        loss, gradient = float(loss), np.asarray(gradient, dtype=np.float64).reshape(-1)
        self.evaluations += 1
        self._check(loss, gradient)
        if loss < self.best_loss:
            self.best_x, self.best_loss, self.best_gradient = x.copy(), loss, gradient.copy()
        return loss, gradient * self.scale

    def after_step(self, z: np.ndarray) -> None:
        self.iterations += 1
        norm = float(np.linalg.norm(self.best_gradient))
        if self.callback is not None:
            self.callback(self.iterations, self.best_x, self.best_loss, norm)
        if self.curvature and norm**2 / (2 * self.curvature) <= self.tolerance * max(abs(self.best_loss), 1.0):
            self.certified = True
            raise StopIteration  # what ends scipy's search

    def _check(self, loss: float, gradient: np.ndarray) -> None:
        if gradient.shape != self.best_x.shape:
            raise ValueError(f"the closure gave a gradient of {gradient.size} values for {self.best_x.size}")
        wrong = np.flatnonzero(~np.isfinite(gradient))
        if np.isfinite(loss) and not len(wrong):
            return
        what = f"the loss is {loss}"
        if np.isfinite(loss):
            what = f"entry {wrong[0]} of the gradient is {gradient[wrong[0]]}"
        raise DivergedError(
            f"{what} at evaluation {self.evaluations} (iteration {self.iterations}): a feature value is not "
            "finite, or the weights have diverged; check the features, or regularise more strongly"
        )


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
) -> Result:
    """The point where `closure(x) -> (loss, gradient)` is smallest, by L-BFGS with a strong Wolfe line search.

    `tolerance`  relative accuracy of the loss. With `curvature` (a lower bound of the second derivative in every
                 direction, such as the L2 weight), it is guaranteed: the search ends when |gradient|^2 / (2
                 curvature), which bounds what is left to gain, is below tolerance * |loss|. Without, it ends when
                 an iteration gains less.
    `history`    corrections that L-BFGS remembers.
    `scale`      searches in x / scale; good values are about the inverse root of the second derivatives.
    `callback`   called as callback(iteration, x, loss, gradient_norm).

    Ctrl-C ends the search and gives the best point so far.
    """
    start = np.array(x0, dtype=np.float64).reshape(-1)
    scale = np.ones_like(start) if scale is None else np.asarray(scale, dtype=np.float64).reshape(-1)
    if scale.shape != start.shape or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"scale must hold {start.size} positive numbers")
    if start.size == 0:
        loss, _ = closure(start)
        return Result(start, float(loss), 0, 1, True, False, "there is nothing to minimise over")
    search = _Search(closure, scale, start, tolerance, curvature, callback)
    small = 1e-15 if curvature else tolerance  # the certificate decides; this is for when rounding stalls it
    options = {"ftol": small, "gtol": 1e-14, "maxls": 40, "maxcor": history}
    return _ended(search, options | {"maxiter": max_iterations, "maxfun": 20 * max_iterations + 20})


def _ended(search: _Search, options: dict[str, float]) -> Result:
    from scipy.optimize import minimize  # slow to import, and only training needs it

    start, after = search.best_x / search.scale, search.after_step
    try:
        found = minimize(search, start, jac=True, method="L-BFGS-B", callback=after, options=options)
    except KeyboardInterrupt:
        log.warning("interrupted at iteration %d: keeping the best point so far", search.iterations)
        return _result(search, False, True, "interrupted")
    if search.certified:
        return _result(search, True, False, "the loss is within tolerance of its minimum")
    reached, message = found.status == 0, str(found.message)
    if not reached:
        log.warning("stopped after %d iterations short of the accuracy asked for: %s", search.iterations, message)
    return _result(search, reached, False, message)


def _result(search: _Search, converged: bool, interrupted: bool, message: str) -> Result:
    return Result(
        search.best_x, search.best_loss, search.iterations, search.evaluations, converged, interrupted, message
    )
