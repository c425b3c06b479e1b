"""Kill workers and machines under `jacana-torch align --output FOLDER/`, and compare with one process.

    python scripts/bulk_chaos.py                   # 100,000 pairs in Parquet
    python scripts/bulk_chaos.py --pairs 20000 --model standard

Ray: a cluster of two nodes with two CPUs each on this machine. A worker is killed, then the node of another one.
Shards: two shards of three are killed in the middle, and the same commands run again. Then, without --no-timing,
the throughput of one and of two actors, and of as many processes without Ray, in turns, between the first and the
last part that each has written. Tables go
to stdout, progress to stderr; the exit code is 1 if any output differs. Needs the extras `ray` and `parquet`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import text
from benchmarks.measure import markdown, progress

COLUMNS = ("premise", "hypothesis")
DEADLINE = 3600.0  # seconds of a run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pairs", type=int, default=100_000)
    add("--block-size", type=int, default=1_000)
    add("--model", default="core")
    add("--folder", type=Path, help="where the files go (a temporary one)")
    add("--runs", type=int, default=3, help="of one and of two actors, in turns (3)")
    add("--no-timing", action="store_true", help="leave the throughput out")
    add("--only", choices=["ray", "shards", "timing"], help="leave the others out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return Chaos(options, options.folder or Path(temporary)).run()


class Chaos:
    """The runs, and what became of them."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.input = folder / "pairs.parquet"
        self.same = True

    def run(self) -> int:
        only = self.options.only
        self.write_input()
        if only != "timing":
            progress("one process")
            self.expected = self.folder / "one.parquet"
            self.done(self.align("--workers", "1", output=self.expected))
        rows = []
        if only in (None, "ray"):
            rows.append(self.on_ray())
        if only in (None, "shards"):
            rows.append(self.sharded())
        if rows:
            print(*markdown(["run", "killed after parts", "parts", "pairs", "output"], rows), sep="\n", flush=True)
        if only in (None, "timing") and not self.options.no_timing:
            self.timed()
        return 0 if self.same else 1

    def write_input(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pairs = list(text.fresh(self.options.pairs))
        columns = [[" ".join(pair[side]) for pair in pairs] for side in (0, 1)]
        made = pa.table({"number": range(len(pairs)), COLUMNS[0]: columns[0], COLUMNS[1]: columns[1]})
        pq.write_table(made, self.input, row_group_size=7_777)

    # Commands

    def align(self, *more: str, output: Path) -> subprocess.Popen[bytes]:
        """Start the command line."""
        command = [sys.executable, "-m", "jacana_torch", "align", str(self.input), "--columns", ",".join(COLUMNS)]
        command += ["--model", self.options.model, "--output", str(output), *more]
        return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)

    def bulk(self, output: Path, *more: str) -> subprocess.Popen[bytes]:
        return self.align("--block-size", str(self.options.block_size), *more, output=output)

    def done(self, process: subprocess.Popen[bytes]) -> None:
        _, said = process.communicate(timeout=DEADLINE)
        if process.returncode:
            raise SystemExit(said.decode())

    def until(self, folder: Path, count: int, process: subprocess.Popen[bytes]) -> int:
        """Wait until there are so many parts; return how many there are."""
        while len(parts_of(folder)) < count:
            if process.poll() is not None:
                raise SystemExit(f"it ended before it was killed: {process.communicate()[1].decode()}")
            time.sleep(0.02)
        return len(parts_of(folder))

    # Runs

    def on_ray(self) -> list[str]:
        progress("Ray: two nodes, of which a worker and then a node are killed")
        cluster, nodes = cluster_of(2)
        out = self.folder / "ray"
        total = -(-self.options.pairs // self.options.block_size)
        try:
            process = self.bulk(out, "--engine", "ray", "--address", cluster.address, "--workers", "2")
            killed = [self.until(out, total // 5, process)]
            victims = [worker for node in nodes for worker in workers_of(node)]
            os.kill(victims[0], signal.SIGKILL)
            progress(f"killed worker {victims[0]} of {victims} after {killed[0]} parts")
            killed.append(self.until(out, total // 2, process))
            node = next(node for node in nodes if workers_of(node))
            progress(f"killing a node with workers {workers_of(node)} after {killed[1]} parts")
            cluster.remove_node(node, allow_graceful=False)
            self.done(process)
        finally:
            cluster.shutdown()
        return self.row("Ray, two nodes: a worker and a node killed", killed, out)

    def sharded(self) -> list[str]:
        progress("three shards, two of them killed")
        out = self.folder / "shards"
        killed = []
        total = -(-self.options.pairs // self.options.block_size)
        for shard in ("1/3", "2/3", "3/3"):
            process = self.bulk(out, "--shard", shard, "--workers", "2", "--resume")
            if shard != "2/3":
                count = len(parts_of(out)) if out.exists() else 0
                killed.append(self.until(out, count + total // 6, process))
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        # The second shard runs beside the others, which go on.
        again = [self.bulk(out, "--shard", shard, "--workers", "1", "--resume") for shard in ("1/3", "3/3")]
        for one in (*again, self.bulk(out, "--shard", "2/3", "--workers", "1", "--resume")):
            self.done(one)
        return self.row("three shards: two killed and resumed", killed, out)

    def timed(self) -> None:
        """Throughput of one and of two actors, and of as many processes without Ray, in turns."""
        rates: dict[tuple[str, int], list[float]] = {(e, n): [] for e in ("local", "ray") for n in (1, 2)}
        cluster, _ = cluster_of(2)
        try:
            for run in range(self.options.runs):
                for (engine, workers), found in rates.items():
                    out = self.folder / f"timed-{run}-{engine}-{workers}"
                    more = ["--engine", "ray", "--address", cluster.address] if engine == "ray" else []
                    self.done(self.bulk(out, *more, "--workers", str(workers)))
                    found.append(self.rate(out, workers))
                    progress(f"{engine}, {workers} workers: {found[-1]:,.0f} pairs/s")
                    shutil.rmtree(out)
        finally:
            cluster.shutdown()
        rows = [
            [engine, str(n), ", ".join(f"{rate:,.0f}" for rate in found)] for (engine, n), found in rates.items()
        ]
        print("", *markdown(["engine", "workers", "pairs/s of each run"], rows), sep="\n")
        for engine in ("local", "ray"):
            one, two = (statistics.median(rates[engine, workers]) for workers in (1, 2))
            print(
                f"\n{engine}: two workers have {two / one:.2f} times the throughput of one (medians).", flush=True
            )

    def rate(self, out: Path, workers: int) -> float:
        """Pairs per second from the time when each worker had written a part."""
        times = sorted((out / name).stat().st_mtime for name in parts_of(out))[workers - 1 :]
        return (len(times) - 1) * self.options.block_size / (times[-1] - times[0])

    def row(self, name: str, killed: list[int], out: Path) -> list[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        found = pa.concat_tables([pq.read_table(out / part) for part in parts_of(out)])
        same = found.equals(pq.read_table(self.expected))
        left = [one for one in os.listdir(out) if one.startswith(".jacana")]
        self.same = self.same and same and not left
        verdict = "identical" if same else "DIFFERENT"
        return [
            name,
            ", ".join(map(str, killed)),
            str(len(parts_of(out))),
            f"{found.num_rows:,}",
            verdict + (f", left: {left}" if left else ""),
        ]


def parts_of(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("part-")) if folder.exists() else []


def cluster_of(nodes: int) -> tuple[Any, list[Any]]:
    """A cluster on this machine: a head without CPUs, and nodes with two each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    return cluster, [cluster.add_node(num_cpus=2) for _ in range(nodes)]


def workers_of(node: Any) -> list[int]:
    """The processes of a node's actors, which are children of its raylet."""
    raylet = node.all_processes["raylet"][0].process.pid if "raylet" in node.all_processes else None
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = (
                int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else None
            )
            if raylet is not None and parent == raylet and b"RayWorker" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
