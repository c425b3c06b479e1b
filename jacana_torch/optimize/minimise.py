"""Minimise a smooth function to a stated accuracy, by L-BFGS in float64."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import JacanaError

log = logging.getLogger(__name__)

Closure = Callable[[np.ndarray], tuple[Any, Any]]  # x -> (loss, gradient)
Callback = Callable[[int, np.ndarray, float, float], None]  # (iteration, x, loss, norm of the gradient)


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
) -> Result:
    """Find the minimum of `closure(x) -> (loss, gradient)`, with a strong Wolfe line search.

    `tolerance`  relative accuracy of the loss. With `curvature` (a lower bound of the second derivative in every
                 direction, such as the L2 weight) it is guaranteed: the search ends when |gradient|^2 / (2
                 curvature), which bounds the remaining gain, is below tolerance * |loss|. Otherwise the search
                 ends when an iteration gains less.
    `history`    number of corrections that L-BFGS remembers.
    `scale`      searches in x / scale; good values are about the inverse root of the second derivatives.
    `callback`   called after each iteration with the best point so far.

    Ctrl-C ends the search and returns the best point so far.
    """
    from scipy.optimize import minimize  # slow to import, and only training needs it

    start = np.array(x0, dtype=np.float64).reshape(-1)
    scale = np.ones_like(start) if scale is None else np.asarray(scale, dtype=np.float64).reshape(-1)
    if scale.shape != start.shape or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"scale must hold {start.size} positive numbers")
    if start.size == 0:
        return Result(start, float(closure(start)[0]), 0, 1, True, False, "there is nothing to minimise over")
    best, best_gradient = Result(start), np.zeros_like(start)

    def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best_gradient
        x = z * scale
        loss, gradient = closure(x)
        loss, gradient = float(loss), np.asarray(gradient, dtype=np.float64).reshape(-1)
        best.evaluations += 1
        if gradient.shape != start.shape:
            raise ValueError(f"the closure gave a gradient of {gradient.size} values for {start.size}")
        wrong = np.flatnonzero(~np.isfinite(gradient))
        if not np.isfinite(loss) or len(wrong):
            what = f"the loss is {loss}"
            if np.isfinite(loss):
                what = f"entry {wrong[0]} of the gradient is {gradient[wrong[0]]}"
            raise DivergedError(
                f"{what} at evaluation {best.evaluations} (iteration {best.iterations}): a feature value is not "
                "finite, or the weights have diverged; check the features, or regularise more strongly"
            )
        if loss < best.loss:
            best.x, best.loss, best_gradient = x.copy(), loss, gradient.copy()
        return loss, gradient * scale

    def after_step(z: np.ndarray) -> None:
        best.iterations += 1
        norm = float(np.linalg.norm(best_gradient))
        if callback is not None:
            callback(best.iterations, best.x, best.loss, norm)
        if curvature and norm**2 / (2 * curvature) <= tolerance * max(abs(best.loss), 1.0):
            best.converged, best.message = True, "the loss is within tolerance of its minimum"
            raise StopIteration  # ends scipy's search

    # With a curvature, after_step decides, and ftol only ends a search that rounding has stalled.
    options = {"ftol": 1e-15 if curvature else tolerance, "gtol": 1e-14, "maxls": 40, "maxcor": history}
    options |= {"maxiter": max_iterations, "maxfun": 20 * max_iterations + 20}
    try:
        found = minimize(
            evaluate, start / scale, jac=True, method="L-BFGS-B", callback=after_step, options=options
        )
    except KeyboardInterrupt:
        log.warning("interrupted at iteration %d: keeping the best point so far", best.iterations)
        best.interrupted, best.message = True, "interrupted"
        return best
    if not best.converged:
        best.converged, best.message = found.status == 0, str(found.message)
        if not best.converged:
            log.warning(
                "stopped after %d iterations short of the required accuracy: %s", best.iterations, best.message
            )
    return best
