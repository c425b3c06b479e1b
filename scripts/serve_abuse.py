"""Test the server under abuse: python scripts/serve_abuse.py [--seconds 6] [--model NAME] [--only SCENARIO ...]

Starts `jacana-torch serve`. In each scenario, abusive clients (serve_abusers.py) do their worst from a process of
their own, while four ordinary clients align single pairs; every answer to either is compared with the links of the
library. Prints a table: what the abusers sent, what was answered and refused, wrong answers, latencies of the
ordinary clients in milliseconds, and the largest memory of the server's processes. The exit code is 1 if an answer
was wrong, if an ordinary client was refused, or if the 99th percentile of its latencies is half a second or more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serve_abusers import JSON, Tally, answer
from serve_load import COMMAND, generated, serving

MOST = 0.5  # seconds, of the 99th percentile
CLIENTS, PAUSE = 4, 0.05  # ordinary clients, and seconds between their requests
TOKEN = "a-token-of-the-test-0123456789"
DEFAULT = ("explanations", "batches", "huge", "malformed", "greedy", "idle", "slow", "leaving")
LONG = ("--max-tokens", "2000", "--max-pairs", "4000", "--max-body", "4000000")


@dataclass(frozen=True)
class Scenario:
    """`kinds` of abusers act at the same time, for `longer` times the seconds of others."""

    name: str
    kinds: Sequence[str] = ()
    options: Sequence[str] = ()
    longer: float = 1.0


@dataclass
class Seen:
    """What ordinary clients saw."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def scenarios(token_file: str) -> list[Scenario]:
    guarded = ("--token-file", token_file, "--rate", "100")
    return [
        Scenario("alone"),
        *(Scenario(kind, [kind]) for kind in DEFAULT),
        Scenario("together", DEFAULT, longer=2),
        Scenario("long pairs", ["long"], LONG, longer=3),
        Scenario("strangers", ["strangers"], guarded),
        Scenario("greedy, --rate", ["greedy"], guarded),
    ]


# Requests, and what the library answers


def sentence(draw: random.Random, length: int, pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Join generated paraphrases to two sides of this many tokens."""
    source: list[str] = []
    target: list[str] = []
    while min(len(source), len(target)) < length:
        for side, text in zip((source, target), draw.choice(pairs), strict=True):
            side += text.split()
    return source[:length], target[:length]


def known(model_name: str, names: set[str]) -> dict[str, list[dict]]:
    """Make requests of each kind and their answers."""
    import jacana_torch

    model, draw, pairs = jacana_torch.load(model_name), random.Random(5), generated(400)

    def align(texts: list) -> dict:
        found = [sorted(map(list, alignment.sure)) for alignment in model.align(texts)]
        return {
            "path": "/align",
            "body": {"pairs": [dict(zip(SIDES, pair, strict=True)) for pair in texts]},
            "wanted": found,
        }

    made: dict[str, list[dict]] = {"small": []}
    for pair in pairs[:200]:
        body = {**dict(zip(SIDES, pair, strict=True))}
        made["small"].append({**align([pair]), "body": body})
    made["medium"] = [align([sentence(draw, 65, pairs)]) for _ in range(100)]
    made["explain"] = []
    for _ in range(4):
        pair = sentence(draw, 200, pairs)
        found = align([pair])
        made["explain"].append(
            {"path": "/explain", "body": dict(zip(SIDES, pair, strict=True)), "wanted": found["wanted"]}
        )
    made["batch"] = [align([draw.choice(pairs) for _ in range(1000)]) for _ in range(2)]
    made["batch"].append(align([sentence(draw, 200, pairs) for _ in range(40)]))
    if "long" in names:
        made["long"] = [align([draw.choice(pairs) for _ in range(4000)]), align([sentence(draw, 2000, pairs)])]
    return made


SIDES = ("source", "target")


# Ordinary clients


async def ordinary(
    number: int, where: tuple[str, int], asked: list[dict], head: str, end: float, seen: Seen
) -> None:
    draw, streams = random.Random(number), None
    while time.monotonic() < end:
        one = draw.choice(asked)
        body = json.dumps(one["body"]).encode()
        sent = (
            f"POST /align HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        begun = time.monotonic()
        for attempt in (1, 2, 3):  # a server may close a connection between two requests
            try:
                streams = streams or await asyncio.open_connection(*where)
                streams[1].write(sent)
                status, found = await answer(streams[0])
                break
            except (OSError, asyncio.IncompleteReadError) as error:
                streams = None
                if attempt == 3:
                    seen.wrong.append(f"an ordinary client: {error!r}")
        else:
            continue
        seen.seconds.append(time.monotonic() - begun)
        if status != 200:
            seen.wrong.append(f"an ordinary client was refused: {status} {found[:200]!r}")
        elif json.loads(found)["alignments"][0]["sure"] != one["wanted"][0]:
            seen.wrong.append(f"other links: {found[:300]!r}")
        if streams and draw.random() < 0.1:
            streams[1].close()
            streams = None
        await asyncio.sleep(PAUSE)
    if streams:
        streams[1].close()


def watched(where: tuple[str, int], asked: list[dict], head: str, seconds: float) -> Seen:
    seen = Seen()

    async def all_of_them() -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(ordinary(k, where, asked, head, end, seen) for k in range(CLIENTS)))

    asyncio.run(all_of_them())
    return seen


# Scenarios


def memory(process: int) -> float:
    """Megabytes of a process and its children, where the system says so; the largest they ever had."""
    total = 0
    with contextlib.suppress(OSError, ValueError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for one in (process, *map(int, children)):
            said = Path(f"/proc/{one}/status").read_text()
            total += int(said.split("VmHWM:")[1].split()[0])
    return total / 1024


@contextlib.contextmanager
def abused(
    kinds: Sequence[str], where: tuple[str, int], seconds: float, more: list[str], tally: Tally
) -> Iterator[None]:
    """Let the abusers act, and add up what they report."""
    script = str(Path(__file__).with_name("serve_abusers.py"))
    command = [sys.executable, script]
    running = [
        subprocess.Popen([*command, kind, where[0], str(where[1]), str(seconds), *more], stdout=subprocess.PIPE)
        for kind in kinds
    ]
    yield
    for kind, process in zip(kinds, running, strict=True):
        out, _ = process.communicate(timeout=seconds + 120)
        if process.returncode:
            tally.wrong.append(f"the abuser {kind} failed")
            continue
        told = json.loads(out)
        tally.requests += told["requests"]
        tally.answered += told["answered"]
        tally.refused += told["refused"]
        tally.wrong += [f"{kind}: {wrong}" for wrong in told["wrong"]]


def quantile(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def run(
    scenario: Scenario, where: tuple[str, int], process: int, made: dict, file: str, seconds: float
) -> list[str]:
    """Run a scenario, print its line, and return what was wrong."""
    secret = f"Authorization: Bearer {TOKEN}\r\n" if "--token-file" in scenario.options else ""
    head = JSON + secret
    watched(where, made["small"], head, 0.5)  # to warm up
    tally = Tally()
    with abused(scenario.kinds, where, seconds * scenario.longer, [file, secret], tally):
        if scenario.kinds:
            time.sleep(1)  # they start
        seen = watched(where, made["small"], head, seconds * scenario.longer)
    p99 = quantile(seen.seconds, 0.99)
    wrong = tally.wrong + seen.wrong
    if not p99 < MOST:
        wrong.append(f"the 99th percentile of ordinary clients is {p99:.3f} s")
    times = " ".join(f"{1000 * quantile(seen.seconds, share):5.0f}" for share in (0.5, 0.99, 1))
    counts = f"{tally.requests:8} {tally.answered:8} {tally.refused:8} {len(tally.wrong + seen.wrong):5}"
    load = f"{os.getloadavg()[0]:5.1f}" if sys.platform != "win32" else ""
    print(f"{scenario.name:15} {counts} {len(seen.seconds):8} {times} {memory(process):7.0f} {load}", flush=True)
    return [f"{scenario.name}: {one}" for one in wrong]


def stopped(model: str, made: dict) -> list[str]:
    """SIGTERM while heavy requests run: everyone gets a whole answer, and the server ends in a few seconds."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--model", model], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if "http://" in line)
    port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
    one = made["explain"][0]
    body = json.dumps(one["body"]).encode()
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: {len(body)}\r\n\r\n"

    async def ask() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + body)
        return (await answer(reader))[0]

    async def clients() -> tuple[list, float]:
        tasks = [asyncio.create_task(ask()) for _ in range(8)]
        await asyncio.sleep(2)
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(process.wait, 60)
        return found, time.monotonic() - begun

    found, seconds = asyncio.run(clients())
    said = process.stderr.read()
    answered = sum(status == 200 for status in found)
    print(f"SIGTERM: {answered} of {len(found)} answered, exit code {process.returncode} after {seconds:.1f} s")
    wrong = [f"SIGTERM: {one!r}" for one in found if one not in (200, 503)]
    if process.returncode or seconds > 10 or said:
        wrong.append(f"SIGTERM: exit code {process.returncode} after {seconds:.1f} s: {said}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--model", default="core")
    parser.add_argument("--only", nargs="+", metavar="SCENARIO", help="scenarios by name")
    arguments = parser.parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        token, file = Path(folder) / "token", Path(folder) / "known.json"
        token.write_text(TOKEN)
        chosen = [s for s in scenarios(str(token)) if not arguments.only or s.name in arguments.only]
        made = known(arguments.model, {kind for scenario in chosen for kind in scenario.kinds})
        file.write_text(json.dumps(made))
        print("                          abusers                      ordinary      ms, percentile")
        print("scenario        requests answered  refused wrong requests    50    99   100  MB RSS  load")
        for options in dict.fromkeys(tuple(scenario.options) for scenario in chosen):
            with serving(arguments.model, *options) as (process, where):
                for scenario in chosen:
                    if tuple(scenario.options) == options:
                        wrong += run(scenario, where, process, made, str(file), arguments.seconds)
        if not arguments.only:
            wrong += stopped(arguments.model, made)
    for one, times in Counter(one[:300] for one in wrong).most_common(20):
        print(f"  {times} x {one}")
    print(f"{len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
