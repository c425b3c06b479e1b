"""Time `jacana-torch train` from files to a saved model, tagging included.

The baseline is the time that pytorch-crf takes for log Z and its gradient alone, on lattices of the corpus's sizes
in similar batches. One of our iterations has one or more evaluations, each of which computes the scores of
features, log Z and the gradient of the weights.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import text
from .measure import Finished, command, jacana, markdown, progress, ratio, shown, summary, timings

MADE_UP = 800  # pairs, without a corpus
PARTS = ("forward", "backward")
_BEGUN = re.compile(r"(\w+) +1 +loss ")
_DONE = re.compile(r"(\w+): loss (\S+) after (\d+) iterations(?:, (\d+) evaluations)?")


def run(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        data = corpus(options.data, Path(directory))
        runs = []
        for turn in range(options.runs):
            progress(f"train: run {turn + 1} of {options.runs}")
            runs.append(trained(data))
        sizes = text.lengths(data, 10**9)
    found = [directions(run.lines) for run in runs]
    baseline = pytorch_crf_pass(sizes, options.seconds)
    report: dict[str, Any] = {
        "data": str(options.data) if options.data else f"{MADE_UP} generated pairs", "pairs": len(sizes),
        "seconds": summary([run.seconds for run in runs]), "cpu_seconds": summary([run.cpu for run in runs]),
        "directions": [],
    }  # fmt: skip
    for part in PARTS:
        seconds = summary([f[part]["seconds"] for f in found])
        each = {k: v / found[0][part]["iterations"] if k != "runs" else v for k, v in seconds.items()}
        report["directions"].append({
            "part": part, **found[0][part], "seconds": seconds, "seconds_each": each,
            "pytorch_crf": baseline[part], "pytorch_crf_over_ours": ratio(baseline[part], each),
        })  # fmt: skip
    return report


def corpus(data: Path | None, directory: Path) -> Path:
    if data:
        return data
    made = directory / "made.jsonl"
    text.write_gold(made, MADE_UP)
    return made


def trained(data: Path, meter: bool = False, settings: Sequence[str] = ()) -> Finished:
    """Train with the default features, without those whose resources are missing, or with other settings."""
    from jacana_torch import resources
    from jacana_torch.errors import MissingResource

    overrides = list(settings)
    try:
        for name in ("wordnet", "tagger"):
            resources.path(name)
    except MissingResource:
        overrides = [*settings, "annotate=none", "features=[string,position,context,distortion]"]
        progress("train: without tags and WordNet, which are not installed")
    with tempfile.TemporaryDirectory() as run:
        where = [f"data.train=[{data.resolve()}]", f"hydra.run.dir={run}", f"output={run}/saved"]
        finished = command(jacana("train", *where, *overrides), meter=meter)
        if finished.code or not (Path(run) / "saved").is_dir():
            raise SystemExit(f"training failed: {finished.complaint}")
    return finished


def directions(lines: list[tuple[float, str]]) -> dict[str, dict[str, Any]]:
    """Parse the log: loss, iterations, evaluations (or None) of each direction, and the seconds between its first
    and its last step."""
    begun, out = {}, {}
    for second, line in lines:
        if first := _BEGUN.match(line):
            begun.setdefault(first[1], second)
        if done := _DONE.match(line):
            out[done[1]] = {
                "loss": float(done[2]), "iterations": int(done[3]),
                "evaluations": int(done[4]) if done[4] else None, "seconds": second - begun[done[1]],
            }  # fmt: skip
    missing = [part for part in PARTS if part not in out]
    if missing:
        raise SystemExit(f"the training log lacks the end of {' and '.join(missing)}")
    return out


def pytorch_crf_pass(sizes: list[tuple[int, int]], seconds: float) -> dict[str, dict[str, float]]:
    """Time pytorch-crf on all lattices of each direction, with one transition table per batch."""
    import numpy as np
    import torch

    from jacana_torch.aligners.crf import Crf
    from jacana_torch.util.batches import like_sizes

    from . import libraries

    out = {}
    for part, (m, n) in zip(PARTS, (np.array(sizes).T, np.array(sizes).T[::-1]), strict=True):
        runs = []
        for pairs in like_sizes(m, n, Crf.batch_cells):
            B, M, S = len(pairs), int(m[pairs].max()), int(n[pairs].max()) + 1
            scores = [torch.randn(*shape, dtype=torch.float64) for shape in ((B, M, S), (S, S), (S,), (S,))]
            p = libraries.Lattices(*scores, torch.as_tensor(m[pairs], dtype=torch.long))
            runs.append(libraries.pytorch_crf(p)["marginals"])
        out[part] = timings({"pass": lambda runs=runs: [run() for run in runs]}, seconds)["pass"]
    return out


def table(report: dict[str, Any]) -> list[str]:
    rows = [
        [d["part"], shown(d["seconds"]), str(d["iterations"]), str(d["evaluations"] or "unknown"),
         f"{d['loss']:.6f}", shown(d["seconds_each"]), shown(d["pytorch_crf"]), shown(d["pytorch_crf_over_ours"])]
        for d in report["directions"]
    ]  # fmt: skip
    baseline = ["seconds per iteration", "pytorch-crf, log Z alone", "ratio"]
    head = ["direction", "seconds", "iterations", "evaluations", "loss", *baseline]
    whole = (
        f"{report['pairs']} pairs, from the file to the saved model: {shown(report['seconds'])} s "
        f"({shown(report['cpu_seconds'])} s of CPU)."
    )
    return [whole, "", *markdown(head, rows)]
