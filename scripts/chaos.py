"""Kill the package's work at random moments, and check what is left.

    python scripts/chaos.py [--kills 50] [--seed 1] [--only PART ...]

Training (chains, cross-validation, a small network), saving models, installing and compiling resources, and
aligning with workers are killed by SIGKILL, SIGTERM or Ctrl-C. After each kill, every file must be whole or
absent. Then the next run follows: `resume=` for training, the same command for the rest. It must end as a run
without a kill ends, and remove what the killed one left. A kill after the end of the work is tried again.

The table has a line for each kind of work: the kills; after how many of them everything was whole; how many were
resumed, so that the next run ended as it should; how many of these had a checkpoint to go on from (a run that
has begun to learn has one); what the kills left unfinished; what the next runs left of it; and the largest
relative difference of the final loss, or of an F1. The exit code is
1 after any fault. Signals and moments follow from the seed; how far a process is by then depends on the machine.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import chaos_victims as victims  # noqa: E402

HARD = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
ANY = (*HARD, signal.SIGINT)
PATIENCE = 10.0  # seconds in which the workers of a killed process, and pip, must be gone
CLOSE = 1e-6  # relative difference of a loss


@dataclass(frozen=True)
class Part:
    """A kind of work: its share of all kills, and the signals that kill it."""

    name: str
    share: int
    make: Callable[[Path], victims.Victim]
    signals: Sequence[signal.Signals] = HARD


PARTS = (
    Part("training", 15, victims.chains, ANY),
    Part("cross-validation", 5, victims.cross_validation, ANY),
    Part("network", 5, victims.network, ANY),
    Part("saving", 10, victims.saving),
    Part("installing", 5, victims.installing),
    Part("compiling", 4, victims.compiling),
    Part("aligning", 6, victims.aligning),
)


@dataclass
class Row:
    """What happened to a kind of work."""

    name: str
    kills: int = 0
    whole: int = 0
    ended: int = 0
    went_on: int = 0
    left: int = 0
    litter: int = 0
    difference: float = 0.0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        cells = "".join(f"{cell:>12}" for cell in numbers(self))
        return f"{self.name:<17}{cells}{self.difference:>13.1e}"


COLUMNS = ("kills", "whole", "resumed", "checkpoint", "left", "litter")
HEADER = f"{'':17}{''.join(f'{column:>12}' for column in COLUMNS)}{'difference':>13}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="how many in all (50)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="PART", choices=[part.name for part in PARTS])
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # loading says that a model's training was interrupted
    parts = [part for part in PARTS if not options.only or part.name in options.only]
    rows, shares = [], sum(part.share for part in parts)
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        done = share = 0
        for part in parts:
            share += part.share
            kills, done = options.kills * share // shares - done, options.kills * share // shares
            row = attacked(part, kills, random.Random(f"{options.seed} {part.name}"), Path(folder) / part.name)
            print(row.line(), flush=True)
            rows.append(row)
    total = Row("all", *(sum(values) for values in zip(*(numbers(row) for row in rows), strict=True)))
    total.difference = max(row.difference for row in rows)
    print(total.line())
    faults = [f"{row.name}: {fault}" for row in rows for fault in row.faults]
    print(*faults, f"{len(faults)} faults", sep="\n")
    return 1 if faults else 0


def numbers(row: Row) -> tuple[int, ...]:
    return row.kills, row.whole, row.ended, row.went_on, row.left, row.litter


def attacked(part: Part, kills: int, moments: random.Random, folder: Path) -> Row:
    """Do the work once without a kill, and then kill it again and again, each time in a folder of its own."""
    row = Row(part.name)
    folder.mkdir(parents=True)
    try:
        victim = part.make(folder)
    except victims.Unable as reason:
        row.name = f"{part.name} (not done: {reason})"
        return row
    seconds = victim.measure()
    while row.kills < kills:
        own = folder / str(row.kills)
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        victim.prepare(own)
        how = moments.choice(part.signals)
        at = moments.uniform(0, seconds)
        if not killed(victim, own, how, at, row):
            continue
        row.kills += 1
        judged(victim, own, f"{how.name} after {at:.2f} s", row)
    return row


def killed(victim: victims.Victim, folder: Path, how: signal.Signals, at: float, row: Row) -> bool:
    """Start the work and kill it so many seconds after it has begun; whether it was still there to be killed."""
    process = subprocess.Popen(
        victim.command(folder), cwd=folder, env=victim.environment(folder), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=hearing,
    )  # fmt: skip
    while process.poll() is None and not victim.begun(folder):
        time.sleep(0.002)
    time.sleep(at)
    process.send_signal(how)
    process.wait()
    deadline = time.monotonic() + PATIENCE
    while (alive := session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for number, program in alive.items():
        row.faults.append(f"after {how.name}, {program} lives on for more than {PATIENCE:g} s")
        os.kill(number, signal.SIGKILL)
    if process.returncode not in (0, -how, 128 + how):
        row.faults.append(f"after {how.name}, the exit code is {process.returncode}")
    return process.returncode != 0 and not victim.ended(folder)


def hearing() -> None:
    """Let a process hear Ctrl-C, which those that a shell starts in the background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def session(leader: int) -> dict[int, str]:
    """The processes of a session that are not zombies: their numbers and command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            program = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if fields[3] == str(leader) and fields[0] != "Z":
            found[int(path.parent.name)] = program[:80]
    return found


def judged(victim: victims.Victim, folder: Path, what: str, row: Row) -> None:
    """Check what a kill left, and the run that follows it."""
    row.left += len(litter(folder))
    faults = victim.broken(folder)
    row.whole += not faults
    done = subprocess.run(
        victim.next_command(folder), cwd=folder, env=victim.environment(folder), capture_output=True, text=True
    )
    if done.returncode:
        faults.append(f"the next run exits with {done.returncode}: {done.stderr[-300:]}")
    else:
        different, difference = victim.difference(folder)
        row.difference = max(row.difference, difference)
        faults += different
        faults += [f"the final loss differs by {difference:.1e}"] if difference > CLOSE else []
        row.ended += not (different or difference > CLOSE)
    row.went_on += "goes on from its checkpoint" in done.stderr or "is done already" in done.stderr
    remaining = litter(folder)
    row.litter += len(remaining)
    faults += [f"the next run leaves {path.name}" for path in remaining]
    row.faults += [f"{what}: {fault}" for fault in faults]
    print(*(f"{row.name}: {what}: {fault}" for fault in faults), sep="\n", end="", file=sys.stderr, flush=True)


def litter(folder: Path) -> list[Path]:
    """Whatever is unfinished below a folder."""
    return [*folder.rglob("*.part"), *folder.glob("home/tmp/[!.]*")]


if __name__ == "__main__":
    sys.exit(main())
