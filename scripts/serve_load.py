"""Test the server under load: python scripts/serve_load.py [--clients 64] [--seconds 30] [--model NAME] [--data
FILE]

Starts `jacana-torch serve`. Each client sends pair after pair over its own connection, and every answer is
compared with the output of `jacana-torch align`: the same tokens and links, and probabilities to 2e-6 (the last
digits depend on the other pairs of a batch). Prints requests, errors, pairs per second and latencies. The exit
code is 1 after an error or a different answer. With --hang-up N, N more clients disconnect in the middle of their
requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

TOLERANCE = 2e-6
COMMAND = [sys.executable, "-m", "jacana_torch"]

WHO = (
    "the teacher|a doctor|our neighbour|the old sailor|my sister|the committee|an engineer|the young baker".split(
        "|"
    )
)
DID = (
    ("bought", "purchased"),
    ("repaired", "fixed"),
    ("found", "discovered"),
    ("sold", "sold"),
    ("saw", "noticed"),
)
WHAT = (
    ("a used car", "a second-hand car"), ("the broken clock", "the clock that was broken"),
    ("two maps", "a pair of maps"), ("a cheap lamp", "an inexpensive lamp"),
    ("the green boat", "the boat, which is green"), ("many books", "a lot of books"),
)  # fmt: skip
WHEN = (
    ("last week", "a week ago"),
    ("in 1998", "in 1998"),
    ("before noon", "in the morning"),
    ("again", "once more"),
)


def generated(count: int) -> list[tuple[str, str]]:
    """Generate paraphrases of 6 to 20 words."""
    draw = random.Random(7)
    pairs = []
    for _ in range(count):
        parts = [(draw.choice(WHO), *draw.choice(DID), *draw.choice(WHAT)) for _ in range(draw.choice((1, 1, 2)))]
        when = draw.choice(WHEN)
        source = " and ".join(f"{who} {did} {what}" for who, did, _, what, _ in parts)
        target = " while ".join(f"{other} was {did} by {who}" for who, _, did, _, other in parts)
        pairs.append((f"{source} {when[0]}.", f"{when[1].capitalize()}, {target}."))
    return pairs


def read(path: str, most: int) -> list[tuple[str, str]]:
    from jacana_torch import corpora

    pairs = [example.pair for _, example in zip(range(most), corpora.read(path), strict=False)]
    return [tuple(side.text or str(side) for side in (pair.source, pair.target)) for pair in pairs]  # type: ignore


def printed_by_align(pairs: list[tuple[str, str]], model: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.txt"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        options = ["--from", "text", "--to", "jsonl", "--confidence", "--model", model, "--workers", "1"]
        done = subprocess.run([*COMMAND, "align", str(path), *options], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]


@contextmanager
def serving(model: str, *options: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """Start a server; yields its process id and its address."""
    command = [*COMMAND, "serve", "--port", "0", "--model", model, *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "http://" in line), "")
        where = urlsplit(re.findall(r"http://\S+", said)[0])
        later: list[str] = []  # a server that nobody reads would wait to be read
        reader = threading.Thread(target=later.extend, args=(server.stderr,), daemon=True)
        reader.start()
        yield server.pid, (str(where.hostname), int(where.port or 80))
    finally:
        server.terminate()
        code = server.wait(60)
    reader.join(10)
    print(f"server: exit code {code}, {len(later)} lines on stderr")
    if later:
        raise SystemExit(f"the server said: {''.join(later[:40])}")


def cpu_seconds(process: int) -> float | None:
    """CPU seconds that a process has used so far, if the system reports them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Tally:
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # answers that differ from align's
    hung_up: int = 0
    busy: float | None = None  # CPU seconds of the server


def alike(one: dict, other: dict) -> bool:
    if {k: v for k, v in one.items() if type(v) is list} != {k: v for k, v in other.items() if type(v) is list}:
        return False
    left, right = ({**item.get("confidence", {}), "score": item["score"]} for item in (one, other))
    return left.keys() == right.keys() and all(math.isclose(left[k], right[k], abs_tol=TOLERANCE) for k in left)


def request(pair: tuple[str, str]) -> bytes:
    body = json.dumps({"source": pair[0], "target": pair[1]}).encode()
    head = (
        f"POST /align HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


async def client(number: int, where: tuple[str, int], asked: list, end: float, tally: Tally) -> None:
    reader, writer = await asyncio.open_connection(*where)
    k = number * 37
    while time.monotonic() < end:
        sent, wanted = asked[k % len(asked)]
        k += 1
        begun = time.monotonic()
        try:
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.errors.append(repr(error))
            reader, writer = await asyncio.open_connection(*where)
            continue
        tally.seconds.append(time.monotonic() - begun)
        if not head.startswith(b"HTTP/1.1 200 "):
            tally.errors.append(f"{head[:16].decode()}: {body[:200].decode()}")
        elif not alike(json.loads(body)["alignments"][0], wanted):
            tally.others.append(body.decode())
    writer.close()


async def rude(where: tuple[str, int], asked: list, end: float, tally: Tally) -> None:
    draw = random.Random(3)
    while time.monotonic() < end:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(*where)
            sent, _ = draw.choice(asked)
            writer.write(sent[: draw.randrange(1, 2 * len(sent))])
            await writer.drain()
            await asyncio.sleep(draw.random() * 0.05)
            writer.transport.abort()
            tally.hung_up += 1


async def load(where: tuple[str, int], asked: list, arguments: argparse.Namespace) -> Tally:
    tally, end = Tally(), time.monotonic() + arguments.seconds
    asking = [client(number, where, asked, end, tally) for number in range(arguments.clients)]
    hanging = [rude(where, asked, end, tally) for _ in range(arguments.hang_up)]
    await asyncio.gather(*asking, *hanging)
    return tally


def report(tally: Tally, arguments: argparse.Namespace) -> None:
    times, rate = sorted(tally.seconds), len(tally.seconds) / arguments.seconds
    quantiles = [
        (share, 1000 * times[min(int(share * len(times)), len(times) - 1)]) for share in (0.5, 0.9, 0.99, 1)
    ]
    how = f"{arguments.clients} clients for {arguments.seconds:g} s, {tally.hung_up} hang-ups"
    print(f"model {arguments.model}, {how}")
    print(f"{len(times)} answers, {len(tally.errors)} errors, {len(tally.others)} different from align's")
    if tally.busy is not None and times:
        print(f"{1000 * tally.busy / len(times):.2f} ms of CPU time per answer")
    print(f"{rate:.0f} pairs/s; ms: {', '.join(f'p{100 * share:g} {ms:.0f}' for share, ms in quantiles)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--hang-up", type=int, default=0)
    parser.add_argument("--model", default="core")
    parser.add_argument("--data", help="sentence pairs in any format (default: generated ones)")
    arguments = parser.parse_args()
    pairs = read(arguments.data, 2000) if arguments.data else generated(1000)
    asked = list(zip(map(request, pairs), printed_by_align(pairs, arguments.model), strict=True))
    with serving(arguments.model) as (process, where):
        asyncio.run(client(0, where, asked, time.monotonic() + 0.5, Tally()))  # the first requests load modules
        before = cpu_seconds(process)
        tally = asyncio.run(load(where, asked, arguments))
        after = cpu_seconds(process)
        tally.busy = None if before is None or after is None else after - before
    report(tally, arguments)
    for wrong in [*tally.errors, *tally.others][:5]:
        print(f"  {wrong}")
    return 1 if tally.errors or tally.others else 0


if __name__ == "__main__":
    sys.exit(main())
