"""Peak memory: of aligning few, more and many pairs, of training, and of inference in units of its input."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from . import text
from .align import aligned, usable
from .measure import markdown, peak_of, shown, tell

SHAPES = [(512, 30, 30), (2048, 30, 30), (512, 120, 30), (512, 30, 120)]  # B, M, N; each grows one of them by 4
PASSES = ("marginals", "gradient", "viterbi")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from . import train

    counts = [max(options.pairs // 4, 1), options.pairs, options.pairs * 4]
    report: dict[str, Any] = {"align": [], "inference": [_inference(shape) for shape in SHAPES]}
    with tempfile.TemporaryDirectory() as directory:
        files = {count: Path(directory) / f"{count}.txt" for count in counts}
        for count, path in files.items():
            text.write_text(path, text.pairs(options.data, count))
        for model in usable(options.models):
            tell(f"memory: {model} on {', '.join(f'{count:,}' for count in counts)} pairs")
            peaks = {count: aligned(path, model, None, meter=True).peak for count, path in files.items()}
            report["align"].append({"model": model, "pairs": counts, "peak_mib": list(peaks.values())})
        tell("memory: training")
        report["training_mib"] = train.trained(train.corpus(options.data, Path(directory)), meter=True).peak
    return report


def _inference(shape: tuple[int, int, int]) -> dict[str, Any]:
    """What a pass adds, over the bytes of its node scores: B * M * S float32 numbers."""
    from . import rivals

    tell(f"memory: inference at B, M, N = {shape}")
    B, M, N = shape
    unit = B * M * (N + 1) * 4 / 2**20
    peaks = {what: peak_of(rivals.one_run, "jacana", what, shape) for what in PASSES}
    return {"shape": shape, "scores_mib": unit, "over_scores": {w: p and p / unit for w, p in peaks.items()}}


def table(report: dict[str, Any]) -> list[str]:
    rows = []
    for e in report["align"]:
        for pairs, peak in zip(e["pairs"], e["peak_mib"], strict=True):
            rows.append([f"align, {e['model']}, {pairs:,} pairs", shown(peak)])
    rows.append(["train, both directions", shown(report["training_mib"])])
    passes = [
        [", ".join(map(str, e["shape"])), shown(e["scores_mib"]), *(shown(e["over_scores"][w]) for w in PASSES)]
        for e in report["inference"]
    ]
    return [
        *markdown(["command", "peak MiB, all processes"], rows), "",
        *markdown(["B, M, N", "node scores, MiB", *(f"{w}, × that" for w in PASSES)], passes),
    ]  # fmt: skip
