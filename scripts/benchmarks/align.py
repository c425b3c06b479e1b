"""Time `jacana-torch align` from a file to a file, with start-up, reading and writing."""

from __future__ import annotations

import argparse
import functools
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import text
from .measure import Finished, command, cores, jacana, markdown, progress, ratio, shown, summary

PAIR = "a b\ta c\n"


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every combination of model, kind of text and number of workers, in rounds.

    The first round warms the file cache and measures memory; it is not timed.
    """
    entries = []
    with tempfile.TemporaryDirectory() as directory:
        files = write_files(Path(directory), options.data, options.pairs)
        settings = [(m, k, w) for m in usable(options.models) for k in files for w in worker_counts()]
        taken: dict[tuple, list[Finished]] = {setting: [] for setting in settings}
        starts: dict[str, list[float]] = {model: [] for model, _, _ in settings}
        for turn in range(options.runs + 1):
            for model in starts:
                starts[model].append(command(jacana("align", "--model", model), text=PAIR).seconds)
            for model, kind, workers in settings:
                progress(f"align: {model}, {kind} text, {workers or 'all'} workers, run {turn} of {options.runs}")
                taken[model, kind, workers].append(aligned(files[kind], model, workers, meter=turn == 0))
    for (model, kind, workers), (watched, *runs) in taken.items():
        start = summary(starts[model][1:])
        entries.append({
            "model": model, "text": kind, "workers": workers or cores(), "pairs": options.pairs,
            "pairs_per_second": summary([options.pairs / run.seconds for run in runs]),
            "once_started": summary([options.pairs / max(r.seconds - start["median"], 1e-3) for r in runs]),
            "cpu_ms_per_pair": summary([run.cpu / options.pairs * 1e3 for run in runs]),
            "seconds_to_start": start, "peak_mib": watched.peak,
        })  # fmt: skip
    return {"entries": entries, "gain": _gain(entries)}


def write_files(directory: Path, data: Path | None, count: int) -> dict[str, Path]:
    """Write a file of the corpus repeated with misspellings (if there is a corpus), and one of generated pairs."""
    made: dict[str, Iterable[text.Pair]] = {"repeated": text.pairs(data, count)} if data else {}
    made["fresh"] = text.fresh(count, seed=1)
    out = {}
    for kind, sentences in made.items():
        out[kind] = directory / f"{kind}.txt"
        text.write_text(out[kind], sentences)
    return out


def aligned(pairs: Path, model: str, workers: int | None, meter: bool = False) -> Finished:
    """Align a file. `workers` None is the command's default."""
    given = ["--workers", str(workers)] if workers else []
    call = jacana("align", str(pairs), "--from", "text", "--pretokenized", "--model", model, *given)
    finished = command([*call, "--output", str(pairs.with_suffix(".out"))], meter=meter)
    if finished.code:
        raise SystemExit(f"aligning with {model} failed: {finished.complaint}")
    return finished


def usable(models: Iterable[str]) -> list[str]:
    """The models whose resources are installed. Trying them also fills caches for later runs."""
    found = []
    for model in models:
        trial = command(jacana("align", "--model", model), text=PAIR)
        if trial.code:
            progress(f"{model} is skipped: {trial.complaint}")
        else:
            found.append(model)
    return found


@functools.cache
def worker_counts() -> list[int | None]:
    """The command's default (None) and 1; only the default if there is a single core."""
    said = subprocess.run(jacana("align", "--help"), capture_output=True, text=True).stdout
    return [None, 1] if "--workers" in said and cores() > 1 else [None]


def _gain(entries: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The speed of all workers over that of one."""
    rates = {(e["model"], e["text"], e["workers"]): e["pairs_per_second"] for e in entries}
    return {
        f"{model}, {kind}": ratio(rate, rates[model, kind, 1])
        for (model, kind, workers), rate in rates.items()
        if workers > 1 and (model, kind, 1) in rates
    }


def table(report: dict[str, Any]) -> list[str]:
    head = [
        "model",
        "text",
        "workers",
        "pairs",
        "pairs/s, start-up included",
        "once started",
        "CPU ms per pair",
        "peak MiB",
    ]
    return markdown(head, [
        [e["model"], e["text"], str(e["workers"]), f"{e['pairs']:,}", shown(e["pairs_per_second"], 4),
         shown(e["once_started"], 4),          shown(e["cpu_ms_per_pair"]), shown(e["peak_mib"])]
        for e in report["entries"]
    ])  # fmt: skip
