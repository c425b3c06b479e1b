"""Measure `Model.align_stream`: peak memory on few pairs and on ten times as many, its links beside the CLI's."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import text
from .align import usable
from .measure import command, markdown, progress, shown

SCRIPTS = Path(__file__).parents[1]
WORKERS = 2
MANY = 10  # times --pairs


def run(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {"workers": WORKERS, "rows": []}
    with tempfile.TemporaryDirectory() as directory:
        files = {count: Path(directory) / f"{count}.txt" for count in (options.pairs, MANY * options.pairs)}
        for count, path in files.items():
            text.write_text(path, text.pairs(options.data, count))
        for model in usable(options.models):
            for count, path in files.items():
                progress(f"stream: {model} on {count:,} pairs")
                report["rows"].append({"model": model, "pairs": count, **_measured(model, path)})
    return report


def _measured(model: str, path: Path) -> dict[str, Any]:
    out = path.with_suffix(".links")
    child = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); from benchmarks.stream import main; main()"
    done = command([sys.executable, "-c", child, model, str(path), str(out)], meter=True)
    if done.code:
        raise SystemExit(f"align_stream: {done.complaint}")
    options = ["--from", "text", "--model", model, "--workers", str(WORKERS)]
    aligned = [sys.executable, "-m", "jacana_torch", "align", str(path), *options]
    cli = subprocess.run(aligned, capture_output=True, check=True).stdout
    lines = out.read_bytes()
    return {
        "peak_mib": done.peak, "seconds": done.seconds, "lines": lines.count(b"\n"),
        "sha256": hashlib.sha256(lines).hexdigest(), "same_as_cli": lines == cli,
    }  # fmt: skip


def table(report: dict[str, Any]) -> list[str]:
    rows = []
    for row in report["rows"]:
        rate = row["pairs"] / row["seconds"]
        same = "yes" if row["same_as_cli"] else "NO"
        rows.append([row["model"], f"{row['pairs']:,}", shown(row["peak_mib"]), f"{rate:,.0f}", same])
    columns = ["model", "pairs", "peak MiB, all processes", "pairs/s", "links as `jacana-torch align`"]
    ratios = []
    for few, many in zip(report["rows"][::2], report["rows"][1::2], strict=True):
        if few["peak_mib"] and many["peak_mib"]:
            ratios.append(f"{few['model']}: {many['peak_mib'] / few['peak_mib']:.3f}")
    return [
        *markdown(columns, rows), "",
        f"{report['workers']} workers. Peak memory on {MANY} times as many pairs: {', '.join(ratios)} times.",
    ]  # fmt: skip


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            source, target = line.rstrip("\n").split("\t")
            yield source, target


def main() -> None:
    """What is measured: a generator of pairs in, a file of links out."""
    import jacana_torch

    model, source, target = sys.argv[1:]
    stream = jacana_torch.load(model).align_stream(_pairs(source), workers=WORKERS, confidence=False)
    with open(target, "w", encoding="utf-8") as out:
        for alignment in stream:
            out.write(f"{alignment}\n")
