"""Measure speed and memory, each figure beside a baseline measured in the same run.

    python scripts/bench.py engine    # inference: pytorch-crf, torch-struct, bare matrix products; decoding alone
    python scripts/bench.py train     # from files to a saved model; pytorch-crf's log Z alone
    python scripts/bench.py align     # pairs per second of `jacana-torch align`
    python scripts/bench.py startup   # one pair in a cold process; importing torch
    python scripts/bench.py stream    # `align_stream`: memory on ten times as many pairs, links beside the CLI
    python scripts/bench.py memory    # peaks of aligning, training and inference
    python scripts/bench.py scaling   # how time grows with sizes
    python scripts/bench.py gpu       # training and aligning on a CUDA device, if there is one
    python scripts/bench.py all --json FILE

Systems take turns; figures are medians with quartiles. Tables go to stdout, progress to stderr, and the report to
FILE, from which scripts/bench_page.py fills docs/performance.md. The parts engine and train need
`pip install 'jacana-torch[bench]'`.
"""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from benchmarks.measure import machine, progress, write_json

PARTS = ("engine", "train", "align", "startup", "stream", "memory", "scaling", "gpu")


def default_corpus() -> Path | None:
    root = os.environ.get("JACANA_DATA")
    path = Path(root or ".") / "msr" / "dev.jsonl"
    return path if root and path.is_file() else None


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    corpus = "aligned corpus in any format (default: $JACANA_DATA/msr/dev.jsonl, else generated pairs)"
    many, threads = (
        "pairs per run; memory: also 16 times as many (20000)",
        "engine, scaling: threads (1; 0: the default)",
    )
    add("part", choices=[*PARTS, "all"])
    add("--json", type=Path, metavar="FILE", help="write the report here, after each part")
    add("--data", type=Path, default=default_corpus(), metavar="FILE", help=corpus)
    add("--pairs", type=int, default=20_000, help=many)
    add("--runs", type=int, default=3, help="train, align, startup: repetitions, at least 3 (3)")
    add("--seconds", type=float, default=1.0, help="engine, scaling: time per figure (1)")
    add("--threads", type=int, default=1, help=threads)
    add("--models", nargs="+", default=["core", "standard"], help="align, startup, memory: which models")
    options = parser.parse_args()
    if options.data and not options.data.is_file():
        parser.error(f"--data {options.data}: there is no such file")
    if options.json and not options.json.resolve().parent.is_dir():
        parser.error(f"--json {options.json}: its folder does not exist")
    if options.pairs < 1 or options.runs < 3 or options.seconds <= 0 or options.threads < 0:
        parser.error("--pairs at least 1, --runs at least 3, --seconds above 0, --threads at least 0")
    return options


def main() -> None:
    options = parsed()
    if options.threads:  # before numpy is loaded
        os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    report = {"machine": machine(torch.get_num_threads()), "parts": {}}
    for name in PARTS if options.part == "all" else [options.part]:
        part = importlib.import_module(f"benchmarks.{name}")
        report["parts"][name] = part.run(options)
        print(f"## {name}\n", *part.table(report["parts"][name]), sep="\n", end="\n\n", flush=True)
        if options.json:
            write_json(options.json, report)
    if options.json:
        progress(f"wrote {options.json}")


if __name__ == "__main__":
    main()
