"""Measure peak memory: of aligning few, more and many pairs, of training, and of inference in units of its input.

Processes hold more than they use, because malloc keeps freed memory. The memory of Python objects and numpy arrays
is therefore reported too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import tracemalloc
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from . import text
from .align import aligned, usable
from .measure import markdown, peak_of, progress, shown

SHAPES = [(512, 30, 30), (2048, 30, 30), (512, 120, 30), (512, 30, 120)]  # B, M, N; each grows one of them by 4
PASSES = ("marginals", "gradient", "viterbi")
BATCH = 1024  # pairs, as `align` takes them
MANY = 16  # times --pairs
PARTS = 8  # spans of time of the longest run


def run(options: argparse.Namespace) -> dict[str, Any]:
    from . import train

    few, more, many = max(options.pairs // 4, 1), options.pairs, options.pairs * MANY
    report: dict[str, Any] = {"align": [], "held": [], "inference": [_inference(shape) for shape in SHAPES]}
    with tempfile.TemporaryDirectory() as directory:
        files = {count: Path(directory) / f"{count}.txt" for count in (few, more, many)}
        for count, path in files.items():
            text.write_text(path, text.pairs(options.data, count))
        for model in usable(options.models):
            for count, path in files.items():
                progress(f"memory: {model} on {count:,} pairs")
                peaks = aligned(path, model, None, meter=True).peaks(PARTS if count == many else 1)
                report["align"].append({"model": model, "pairs": count, "peak_mib": peaks})
            progress(f"memory: objects of {model}")
            report["held"].append({"model": model, **held_by_objects(model, files[more])})
        progress("memory: training")
        report["training_mib"] = train.trained(train.corpus(options.data, Path(directory)), meter=True).peak
    return report


def held_by_objects(model: str, pairs: Path) -> dict[str, list]:
    """MiB of objects and arrays, besides the loaded model, after each quarter of the pairs, and the peak within
    it.

    Measured in a fresh process.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_traced, (model, pairs))


def _traced(model: str, pairs: Path) -> dict[str, list]:
    from jacana_torch import corpora
    from jacana_torch.cli.loading import Aligning

    given = [example.pair for example in corpora.read(str(pairs), "text")]
    align = Aligning(model, tokenise=False)
    align(given[:1])
    tracemalloc.start()
    found: dict[str, list] = {"pairs": [], "held_mib": [], "most_mib": []}
    for first, last in _quarters(len(given)):
        tracemalloc.reset_peak()
        rest = iter(given[first:last])
        while batch := list(islice(rest, BATCH)):
            align(batch)
        held, most = tracemalloc.get_traced_memory()
        for name, figure in (("pairs", last), ("held_mib", held / 2**20), ("most_mib", most / 2**20)):
            found[name].append(figure)
    return found


def _quarters(count: int) -> Sequence[tuple[int, int]]:
    marks = [count * k // 4 for k in range(5)]
    return [(a, b) for a, b in zip(marks, marks[1:], strict=False) if a < b]


def _inference(shape: tuple[int, int, int]) -> dict[str, Any]:
    """Peak memory of each pass in units of its node scores, B * M * S float32 numbers."""
    from . import libraries

    progress(f"memory: inference at B, M, N = {shape}")
    B, M, N = shape
    unit = B * M * (N + 1) * 4 / 2**20
    peaks = {what: peak_of(libraries.one_run, "jacana", what, shape) for what in PASSES}
    return {"shape": shape, "scores_mib": unit, "over_scores": {w: p and p / unit for w, p in peaks.items()}}


def table(report: dict[str, Any]) -> list[str]:
    rows = []
    for e in report["align"]:
        name, peaks = f"align, {e['model']}, {e['pairs']:,} pairs", e["peak_mib"] or [None]
        parts = [f", part {k} of {len(peaks)}" for k in range(1, len(peaks) + 1)] if len(peaks) > 1 else [""]
        rows += [[name + part, shown(peak)] for part, peak in zip(parts, peaks, strict=True)]
    rows.append(["train, both directions", shown(report["training_mib"])])
    passes = [
        [", ".join(map(str, e["shape"])), shown(e["scores_mib"]), *(shown(e["over_scores"][w]) for w in PASSES)]
        for e in report["inference"]
    ]
    held = [
        [e["model"], f"{pairs:,}", shown(mib), shown(most)]
        for e in report["held"]
        for pairs, mib, most in zip(e["pairs"], e["held_mib"], e["most_mib"], strict=True)
    ]
    return [
        *markdown(["command", "peak MiB, all processes"], rows), "",
        *markdown(["model", "pairs so far", "MiB held by objects", "peak since the line above"], held), "",
        *markdown(["B, M, N", "node scores, MiB", *(f"{w}, × that" for w in PASSES)], passes),
    ]  # fmt: skip
