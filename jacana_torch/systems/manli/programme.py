"""The integer programme of Thadani & McKeown (2011), solved by HiGHS: edits, tokens, conditions between tokens.

Gains of some edits in, numbers of the chosen ones out. A variable an edit; every token takes one edit at most, and
where there are conditions, a token that is active needs one of its supporters to be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import JacanaError
from .phrases import Spans

# (a token, those of which one must be active where it is); targets are numbered after sources
Condition = tuple[int, Sequence[int]]


def cover(source: Spans, target: Spans, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """[m + n, K] whether an edit covers a token; targets come after sources."""
    tokens = np.arange(source.n)[:, None]
    above = (source.start[s] <= tokens) & (tokens < source.end[s])
    tokens = np.arange(target.n)[:, None]
    below = (target.start[t] <= tokens) & (tokens < target.end[t])
    return np.concatenate([above, below])


def maximise(
    gain: np.ndarray,
    source: Spans,
    target: Spans,
    s: np.ndarray,
    t: np.ndarray,
    conditions: Sequence[Condition] = (),
    relaxed: bool = False,
) -> np.ndarray:
    """Numbers of the edits in the optimum; `relaxed` gives their values [K] in that of the linear relaxation."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    covers = cover(source, target, s, t)
    rows = csr_array(covers[covers.sum(axis=1) > 1], dtype=np.float64)
    upper = np.ones(rows.shape[0])
    if conditions:
        active = np.array([covers[token] for token, _ in conditions], dtype=np.float64)
        support = np.array([covers[list(others)].sum(axis=0) for _, others in conditions], dtype=np.float64)
        needed = active - support
        rows = vstack([rows, csr_array(needed[(needed > 0).any(axis=1)])], format="csr")
        upper = np.concatenate([upper, np.zeros(rows.shape[0] - len(upper))])
    result = milp(
        -gain,
        integrality=np.full(len(gain), 0 if relaxed else 1),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(rows, -np.inf, upper)] if rows.shape[0] else None,
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise JacanaError(f"HiGHS found no alignment of {source.n} x {target.n} tokens: {result.message}")
    return result.x if relaxed else np.flatnonzero(result.x > 0.5)
