"""Time a cold process that aligns one pair, with compiled resources, against one that only imports torch."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .align import PAIR, usable
from .measure import command, jacana, markdown, progress, ratio, shown, summary

TORCH = "python -c 'import torch'"


def run(options: argparse.Namespace) -> dict[str, Any]:
    calls = {TORCH: [sys.executable, "-c", "import torch"], "jacana-torch --help": jacana("--help")}
    calls |= {f"jacana-torch align --model {m}": jacana("align", "--model", m) for m in usable(options.models)}
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(options.runs, 7)):
        progress(f"startup: round {turn + 1}")
        for name, call in calls.items():
            finished = command(call, text=PAIR)
            if finished.code:
                raise SystemExit(f"{name} failed: {finished.complaint}")
            taken[name].append(finished.seconds)
    seconds = {name: summary(times) for name, times in taken.items()}
    torch = seconds[TORCH]
    limit = 2 * torch["median"] + 1
    return {"seconds": seconds, "over_torch": {n: ratio(s, torch) for n, s in seconds.items()}, "limit": limit}


def table(report: dict[str, Any]) -> list[str]:
    rows = [[f"`{n}`", shown(s), shown(report["over_torch"][n])] for n, s in report["seconds"].items()]
    last = [f"limit: twice torch plus one second: {report['limit']:.2f} s"]
    return [*markdown(["command", "seconds", "over importing torch"], rows), "", *last]
