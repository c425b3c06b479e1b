"""Measure how time grows with positions M, target tokens N and chains B, one at a time."""

from __future__ import annotations

import argparse
import math
from typing import Any

from .measure import in_ms, markdown, progress, shown, timings

BASE = {"B": 64, "M": 24, "N": 24}
VALUES = {"B": (16, 64, 256, 1024), "M": (12, 24, 48, 96, 192), "N": (12, 24, 48, 96, 192)}
PASSES = ("marginals", "viterbi")


def run(options: argparse.Namespace) -> dict[str, Any]:
    return {"over": {name: _over(name, options.seconds) for name in VALUES}}


def _over(name: str, seconds: float) -> dict[str, Any]:
    from . import libraries

    rows = []
    for value in VALUES[name]:
        progress(f"scaling: {name} = {value}")
        runs = libraries.jacana(libraries.lattices(**{**BASE, name: value}))
        rows.append({"value": value, **timings({what: runs[what] for what in PASSES}, seconds)})
    last = rows[-3:]  # beyond these, dispatching dominates
    return {
        "rows": rows,
        "exponent": {w: slope([(r["value"], r[w]["median"]) for r in last]) for w in PASSES},
    }


def slope(points: list[tuple[float, float]]) -> float:
    """Fit the exponent k of time = c * value**k by least squares in logarithms."""
    x, y = ([math.log(p[axis]) for p in points] for axis in (0, 1))
    middle, level = sum(x) / len(x), sum(y) / len(y)
    across = sum((a - middle) ** 2 for a in x)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / across


def table(report: dict[str, Any]) -> list[str]:
    rows = []
    for name, found in report["over"].items():
        for row in found["rows"]:
            rows.append([f"{name} = {row['value']}", *(shown(in_ms(row[what])) for what in PASSES)])
        powers = [f"{name}^{found['exponent'][what]:.2f}" for what in PASSES]
        rows.append([f"**grows as** (last {min(3, len(found['rows']))})", *powers])
    base = ", ".join(f"{name} = {value}" for name, value in BASE.items())
    return [f"The other sizes stay at {base}.", "", *markdown(["", "marginals, ms", "Viterbi, ms"], rows)]
