"""The process that answers heavy requests: `jacana-torch serve` with a small model, whose worker is stopped,
killed and outdated."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import WORDS, started
from serving import Client, heard, until

from jacana_torch.model import persist
from jacana_torch.serve import Refused
from jacana_torch.serve import heavy as heavy_module
from jacana_torch.serve.heavy import Heavy

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds and stops processes")

DRAW = random.Random(3)
SMALL = {"source": "red dog", "target": "dog house"}
LARGE = {side: [DRAW.choice(WORDS) for _ in range(60)] for side in ("source", "target")}
MANY = {"pairs": [{side: [DRAW.choice(WORDS) for _ in range(12)] for side in LARGE} for _ in range(120)]}


@contextmanager
def serving(model, *options: str):
    """Start the command; yields its process, and a client."""
    process = started("serve", "--port", "0", "--model", str(model), *options)
    try:
        line = process.stderr.readline().decode()
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert port, line + process.stderr.read().decode()
        yield process, Client("127.0.0.1", int(port[1]))
    finally:
        process.kill()
        process.communicate()


def children_of(process: subprocess.Popen) -> list[int]:
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def worker_of(process: subprocess.Popen) -> int:
    """The process id of the server's worker."""
    (worker,) = children_of(process)  # 0 would be this process and all of its group
    return worker


@pytest.fixture(scope="module")
def server(model):
    with serving(model, "--max-seconds", "20") as both:
        yield both


def test_heavy_answers_are_those_of_the_library(server, model):
    process, client = server
    loaded = persist.load(model)
    texts = [(pair["source"], pair["target"]) for pair in MANY["pairs"]]
    assert not children_of(process)
    found = client.post("/align", MANY).json["alignments"]
    assert children_of(process)
    assert [one["sure"] for one in found] == [sorted(map(list, one.sure)) for one in loaded.align(texts)]
    links = client.post("/explain", {**LARGE, "top": 1}).json["links"]
    (wanted,) = loaded.align([(LARGE["source"], LARGE["target"])])
    assert sorted((one["source"], one["target"]) for one in links) == sorted(wanted.sure)


def test_refusals_come_from_the_worker_too(server):
    _, client = server
    answer = client.post("/align", {"pairs": [*MANY["pairs"], {"source": "\ud800", "target": "a"}]})
    assert answer.status == 400 and "pairs[120].source has half a surrogate pair" in answer.message
    answer = client.post("/align", {"pairs": MANY["pairs"] * 10})
    assert answer.status == 413 and "1200 pairs" in answer.message


def test_light_requests_do_not_wait_for_heavy_ones(server):
    process, client = server
    client.post("/explain", LARGE)
    os.kill(worker_of(process), signal.SIGSTOP)
    heavy = client.sent("/explain", LARGE)
    try:
        until(lambda: client.get("/healthz").json["lanes"]["heavy"]["requests"] == 1)
        for _ in range(5):
            begun = time.monotonic()
            assert client.post("/align", SMALL).status == 200
            assert time.monotonic() - begun < 10
    finally:
        os.kill(worker_of(process), signal.SIGCONT)
    assert heard(heavy).startswith(b"HTTP/1.1 200 ")
    heavy.close()


def test_few_heavy_requests_of_a_client_may_wait(server):
    process, client = server
    client.post("/explain", LARGE)
    os.kill(worker_of(process), signal.SIGSTOP)
    opened = [client.sent("/explain", LARGE) for _ in range(32)]
    try:
        until(lambda: client.get("/healthz").json["lanes"]["heavy"]["requests"] == 32)
        answer = client.post("/explain", LARGE)
        assert answer.status == 429 and "32 large requests of this client wait" in answer.message
        assert answer.headers["retry-after"] == "1"
        for one in opened[1:]:
            one.close()
        until(lambda: client.get("/healthz").json["lanes"]["heavy"]["requests"] == 1)
    finally:
        os.kill(worker_of(process), signal.SIGCONT)
    assert heard(opened[0]).startswith(b"HTTP/1.1 200 ")
    opened[0].close()


def test_a_worker_that_dies_is_replaced(server):
    process, client = server
    client.post("/explain", LARGE)
    first = worker_of(process)
    os.kill(first, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(client.post, "/explain", LARGE)
        until(lambda: client.get("/healthz").json["lanes"]["heavy"]["requests"] == 1)
        os.kill(first, signal.SIGKILL)
        answer = waits.result()
    assert answer.status == 503 and "ended: try again in 1 s" in answer.message
    assert client.post("/explain", LARGE).status == 200 and worker_of(process) != first


def test_it_stops_in_a_few_seconds_whatever_runs(model):
    with serving(model, "--max-grace", "1") as (process, client):
        client.post("/explain", LARGE)
        worker = worker_of(process)
        os.kill(worker, signal.SIGSTOP)
        opened = [client.sent("/explain", LARGE), client.raw(), client.raw(b"POST /align HTTP/1.1\r\nHost: ")]
        until(lambda: client.get("/healthz").json["lanes"]["heavy"]["requests"] == 1)
        begun = time.monotonic()
        process.terminate()
        answer = heard(opened[0])
        assert answer.startswith(b"HTTP/1.1 503 ") and b"the server is stopping" in answer
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, b"", b"")
        assert time.monotonic() - begun < 10
        until(lambda: not Path(f"/proc/{worker}").exists())
        for one in opened:
            one.close()


def test_a_model_that_changed_is_not_mixed_with_the_old(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    with serving(copy) as (process, client):
        for path in copy.iterdir():
            os.utime(path, (1, 1))
        answer = client.post("/explain", LARGE)
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert client.post("/align", SMALL).status == 200
        said = []
        threading.Thread(target=lambda: said.append(process.stderr.readline()), daemon=True).start()
        until(lambda: said)
        assert b"files have changed since the server started" in said[0]


def test_a_worker_that_cannot_start_is_a_503():
    async def ask() -> None:
        async with Heavy(["/no/such/command"]) as heavy:
            for message in (
                "cannot start a process",
                "the process for large requests ended",
            ):  # it waits for a while
                with pytest.raises(Refused, match=message) as refused:
                    await heavy.answer("align", b"{}", "")
                assert (refused.value.status, refused.value.seconds) == (503, heavy_module.PAUSE)
            assert heavy.waiting() == {"requests": 0, "pairs": 0, "cost": 0}

    with ThreadPoolExecutor(1) as pool:  # browser tests leave an event loop running in this thread
        pool.submit(asyncio.run, ask()).result()


@pytest.mark.slow
def test_the_worker_ends_with_a_server_that_is_killed(server):  # the last test of this server
    process, client = server
    client.post("/explain", LARGE)
    worker = worker_of(process)
    process.kill()
    until(lambda: not Path(f"/proc/{worker}").exists())
