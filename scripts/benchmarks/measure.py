"""Instruments of the benchmarks: turns, medians and quartiles, timed commands, memory."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROC = Path("/proc")
MIB = 1024  # KiB, which is what /proc counts in
Summary = dict[str, float]


def progress(message: str) -> None:
    """Print progress to stderr."""
    print(message, file=sys.stderr, flush=True)


def summary(values: Sequence[float]) -> Summary:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {"median": middle, "low": low, "high": high, "runs": len(values)}


def ratio(above: Summary, below: Summary) -> Summary:
    """The ratio of two medians of one run, with the widest spread that their quartiles allow."""
    return {
        "median": above["median"] / below["median"],
        "low": above["low"] / below["high"],
        "high": above["high"] / below["low"],
    }


def timings(runs: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, Summary]:
    """Seconds per call of each function. They take turns until each had `seconds` and 5 calls (3 long ones)."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    waiting = list(runs)
    while waiting:
        for name in waiting:
            begun = time.perf_counter()
            runs[name]()
            taken[name].append(time.perf_counter() - begun)
        waiting = [
            n
            for n, t in taken.items()
            if len(t) < 3 or (sum(t) < max(5 * seconds, 1) and len(t) < 5) or (sum(t) < seconds and len(t) < 200)
        ]
    return {name: summary(times) for name, times in taken.items()}


@dataclass
class Finished:
    """The outcome of a command: wall and CPU seconds, samples of the MiB of all its processes together (empty if
    the system does not report them), and the lines of its stderr with the seconds of their arrival."""

    code: int
    seconds: float
    cpu: float
    memory: list[float] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)

    @property
    def peak(self) -> float | None:
        return max(self.memory, default=None)

    def peaks(self, parts: int) -> list[float]:
        """The peak in each of `parts` equal spans of time."""
        marks = [len(self.memory) * k // parts for k in range(parts + 1)]
        return [max(self.memory[a:b]) for a, b in zip(marks, marks[1:], strict=False) if a < b]

    @property
    def complaint(self) -> str:
        return next((line for _, line in reversed(self.lines) if line.strip()), f"exit code {self.code}")


def command(arguments: Sequence[str], text: str = "", meter: bool = False) -> Finished:
    """Run a command with `text` on stdin. `meter` samples its memory, which takes time."""
    before = os.times()
    with tempfile.TemporaryFile("w+") as given:
        given.write(text)
        given.seek(0)
        begun = time.perf_counter()
        process = subprocess.Popen(
            list(arguments), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        watch = Memory(process.pid) if meter else None
        assert process.stderr is not None
        lines = [(time.perf_counter() - begun, line.rstrip("\n")) for line in process.stderr]
        code = process.wait()
        seconds = time.perf_counter() - begun
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Finished(code, seconds, cpu, watch.stop() if watch else [], lines)


def jacana(*arguments: str) -> list[str]:
    """The command line of the package that this Python sees."""
    return [sys.executable, "-m", "jacana_torch", *arguments]


class Memory:
    """Samples the MiB of a process and its descendants every 50 ms.

    Shared pages count once, where the system reports them (on Linux).
    """

    def __init__(self, root: int) -> None:
        self._root, self._done = root, threading.Event()
        self._seen: list[float] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if PROC.joinpath("self/status").exists():
            self._thread.start()

    def _watch(self) -> None:
        while not self._done.is_set():
            self._seen.append(held_by(family(self._root)) / MIB)
            self._done.wait(0.05)

    def stop(self) -> list[float]:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()
        return self._seen


def family(root: int) -> dict[int, int]:
    """A process and all its descendants, each with its parent."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                # The name in parentheses may hold anything, spaces and parentheses too.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it has ended
            children.setdefault(parent, []).append(int(entry.name))
    found, ahead = {root: 0}, [root]
    for pid in ahead:
        found |= dict.fromkeys(children.get(pid, []), pid)
        ahead += children.get(pid, [])
    return found


def held_by(processes: dict[int, int]) -> int:
    """KiB that processes hold together; `processes` maps each to its parent."""
    sizes = {pid: _pages(pid) for pid in processes}
    borrowed = [pid for pid, parent in processes.items() if _same_memory(sizes[pid], sizes.get(parent))]
    return sum(_share(pid) for pid in processes if pid not in borrowed)


def _same_memory(own: list[int], parents: list[int] | None) -> bool:
    """Whether a process still shares its parent's memory, as between vfork and exec. A few pages may differ."""
    return bool(own and parents and own[0] == parents[0] and abs(own[1] - parents[1]) < 256)


def _pages(pid: int) -> list[int]:
    """Pages of its address space and resident pages; empty for a process that has ended."""
    try:
        return [int(count) for count in (PROC / str(pid) / "statm").read_text().split()[:2]]
    except OSError:
        return []


def _share(pid: int) -> int:
    """KiB that a process holds, with its share of shared pages, or all of them if the system reports no shares."""
    return _line(pid, "smaps_rollup", "Pss:") or resident(pid)


def resident(pid: int | str = "self", which: str = "VmRSS") -> int:
    """KiB; 0 for a process that has ended."""
    return _line(pid, "status", which)


def _line(pid: int | str, file: str, name: str) -> int:
    try:
        lines = (PROC / str(pid) / file).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def peak_of(make: Callable[..., Callable[[], object] | None], *arguments: Any) -> float | None:
    """Peak MiB that the function `make(*arguments)` adds to a fresh process; None without a function, or if the
    system does not report memory."""
    if not (PROC / "self/clear_refs").exists():
        return None
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_here, (make, arguments))


def _peak_here(make: Callable[..., Callable[[], object] | None], arguments: tuple[Any, ...]) -> float | None:
    run = make(*arguments)
    if run is None:
        return None
    before = resident()
    (PROC / "self/clear_refs").write_text("5")  # forget the peak so far
    run()
    return (resident(which="VmHWM") - before) / MIB


def free_memory() -> float:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def cores() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine(threads: int) -> dict[str, Any]:
    """Describe the machine, the versions, and the load at the start."""
    versions = {}
    for name in ("jacana-torch", "torch", "numpy", "nltk", "pytorch-crf", "torch-struct"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
        "cpu": _cpu_name(), "cores": cores(), "threads": threads, "system": platform.platform(),
        "python": platform.python_version(), "versions": versions, "load": list(os.getloadavg()),
    }  # fmt: skip


def _cpu_name() -> str:
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Write the file atomically."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def shown(value: Summary | float | None, digits: int = 3) -> str:
    """Format a figure, with its quartiles if it has any."""
    if value is None:
        return "not run"
    if not isinstance(value, dict):
        return _figure(value, digits)
    return f"{_figure(value['median'], digits)} ({_figure(value['low'], digits)}–{_figure(value['high'], digits)})"


def _figure(value: float, digits: int) -> str:
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def in_ms(value: Summary) -> Summary:
    return {key: figure * 1e3 if key != "runs" else figure for key, figure in value.items()}
