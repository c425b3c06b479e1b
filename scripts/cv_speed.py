"""Time a cross-validation whose folds are trained side by side, beside one process, in turns.

    python scripts/cv_speed.py                                    # experiment=msr cv=5
    python scripts/cv_speed.py experiment=standard data=msr cv=5 --workers 4 --runs 1

The overrides are those of `jacana-torch train`. Prints the seconds of each run, the load of the machine before it,
CPU seconds, and whether both write the same scores and predictions, to the last digit. Wall time means little on a
busy machine: `bound` is the CPU seconds of one process over those of the main process and its busiest worker, the
ratio that the division of work allows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import markdown, progress

WRITTEN = ("scores.json", "predictions.jsonl")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Run:
    """A run: seconds, those of its CPUs, those of the main process and its busiest worker, and what it wrote."""

    load: float
    seconds: float
    cpu: float
    longest: float
    written: list[bytes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", default=["experiment=msr", "cv=5"], metavar="OVERRIDE")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3, help="of each, in turns (3)")
    options = parser.parse_intermixed_args()
    counts = (1, options.workers)
    runs: dict[int, list[Run]] = {count: [] for count in counts}
    for _ in range(options.runs):
        for count in counts:
            runs[count].append(validated([*options.overrides, f"workers={count}"]))
            progress(f"{count} workers: {runs[count][-1].seconds:.1f} s")
    rows = []
    for count, own in runs.items():
        for run in own:
            figures = (f"{run.seconds:.1f}", f"{run.cpu:.1f}", f"{run.longest:.1f}", f"{run.load:.1f}")
            rows.append([str(count), *figures])
    head = ["workers", "seconds", "CPU seconds", "of the main process and its busiest worker", "load before"]
    print(*markdown(head, rows), sep="\n")
    one, many = (statistics.median(run.seconds for run in runs[count]) for count in counts)
    bound = statistics.median(a.cpu / b.longest for a, b in zip(*(runs[count] for count in counts), strict=True))
    same = len({tuple(run.written) for own in runs.values() for run in own}) == 1
    print(
        f"\n{' '.join(options.overrides)}: {options.workers} workers are {one / many:.2f} times as fast as one "
        f"(medians; bound {bound:.2f}); results are {'identical' if same else 'DIFFERENT'}."
    )
    return 0 if same else 1


def validated(overrides: list[str]) -> Run:
    """Cross-validate in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "jacana_torch", "train", *overrides, f"hydra.run.dir={folder}"]
        load, begun, cpu = os.getloadavg()[0], time.monotonic(), {}
        with open(f"{folder}/messages", "wb") as messages:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages)
        while process.poll() is None:
            for pid in (process.pid, *children(process.pid)):
                cpu[pid] = max(cpu.get(pid, 0.0), cpu_of(pid))
            time.sleep(0.1)
        seconds = time.monotonic() - begun
        if process.returncode:
            raise SystemExit(Path(folder, "messages").read_text())
        own = cpu.pop(process.pid)
        longest = own + max(cpu.values(), default=0.0)
        return Run(
            load, seconds, own + sum(cpu.values()), longest, [(Path(folder) / n).read_bytes() for n in WRITTEN]
        )


def children(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def cpu_of(pid: int) -> float:
    """Return the seconds that a process has computed; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    sys.exit(main())
