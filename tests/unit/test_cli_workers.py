"""Several processes at the command line: the output is the same, and workers end with the main process."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from random import Random

import pytest
from commands import WORDS, started, whole
from variants import variants

from jacana_torch import corpora
from jacana_torch.cli.align import _outcomes
from jacana_torch.cli.loading import Aligning


def many_pairs(folder: Path, lines: int, bad: int | None = None) -> Path:
    rng, path = Random(3), folder / "pairs.txt"
    with open(path, "w") as out:
        for number in range(lines):
            left, right = (" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(2))
            out.write("no tab here\n" if number == bad else f"{left}, isn't it?\t{right}\n")
    return path


def apart(*arguments: str) -> tuple[int, str, str]:
    """As the fixture cli, but in a process without threads, so that workers are forked as usual."""
    process = started(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out.decode(), err.decode()


def test_workers_are_as_confident(cli, model, tmp_path):
    given = ["align", str(many_pairs(tmp_path, 300)), "--from", "text", "--model", model, "--batch-size", "16"]
    given += ["--to", "jsonl", "--confidence"]
    outputs = whole(cli(*given, "--workers", "1")), whole(apart(*given, "--workers", "3"))
    for alone, shared in zip(*(map(json.loads, out.splitlines()) for out in outputs), strict=True):
        for field in ("confidence", "score"):  # the last bit depends on which words came before
            assert shared.pop(field, {}) == pytest.approx(alone.pop(field, {}), abs=1e-12)
        assert alone == shared


@pytest.mark.parametrize("options", variants([[], ["--to", "jsonl"], ["--pretokenized"], ["--skip-bad"]], 2))
def test_results_do_not_depend_on_workers(cli, model, tmp_path, options):
    path = many_pairs(tmp_path, 300, bad=211 if "--skip-bad" in options else None)
    given = ["align", str(path), "--from", "text", "--model", model, "--batch-size", "16", *options]
    code, alone, messages = cli(*given, "--workers", "1")
    assert (code, alone.count("\n")) == (0, 300)
    assert apart(*given, "--workers", "3") == (code, alone, messages)
    assert ("2 bad" in messages or "1 bad" in messages) == ("--skip-bad" in options)


def test_spawned_workers_load_the_model_for_themselves(cli, model, tmp_path, monkeypatch):
    given = ["align", str(many_pairs(tmp_path, 300)), "--from", "text", "--model", model, "--batch-size", "16"]
    alone = whole(cli(*given, "--workers", "1"))
    monkeypatch.setattr("jacana_torch.util.parallel.usual_method", lambda: "spawn")
    assert whole(cli(*given, "--workers", "2")) == alone


def test_workers_annotate_for_a_device_that_has_one_process(model, tmp_path):
    """The path of all devices except the CPU, taken by a CPU."""
    pairs = [e.pair for e in corpora.read(many_pairs(tmp_path, 300), "text")]
    batches = [pairs[k : k + 16] for k in range(0, 300, 16)]
    plain = Aligning(model)
    assert plain.model and len(pickle.dumps(plain)) < 1000  # it is pickled without the model
    other = Aligning(model, device="cpu:0")
    expected = list(_outcomes(plain, batches, 1))
    assert list(_outcomes(other, batches, 2)) == expected
    assert any(pair is not None for _, found in expected for pair, _ in found)  # tokenised anew


def test_a_bad_line_ends_the_run_of_workers_after_the_lines_before_it(cli, model, tmp_path):
    path = many_pairs(tmp_path, 200, bad=150)
    code, out, err = apart(
        "align", str(path), "--from", "text", "--model", model, "--batch-size", "8", "--workers", "2"
    )
    assert (code, out.count("\n")) == (2, 150) and f"{path}:151:" in err


def children(process: subprocess.Popen) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not path.exists():
        pytest.skip("needs Linux's /proc")
    return [int(number) for number in path.read_text().split()]


def working(model: str, *options: str) -> tuple[subprocess.Popen, list[int]]:
    """Start a run and return it with its workers, at work."""
    given = ["align", "/dev/stdin", "--from", "text", "--model", model, "--batch-size", "4", "--workers", "2"]
    process = started(*given, *options)
    feed = threading.Thread(target=_feed, args=(process.stdin,), daemon=True)
    feed.start()
    begun = time.monotonic()
    while len(found := children(process)) < 2 and time.monotonic() - begun < 60:
        time.sleep(0.01)
    assert len(found) == 2
    return process, found


def _feed(stream) -> None:
    try:
        while True:
            stream.write(b"red dog\tdog\n" * 1000)
    except (OSError, ValueError):  # the reader is gone
        pass


def gone(numbers: list[int]) -> bool:
    begun = time.monotonic()
    while time.monotonic() - begun < 10:
        if not any(Path(f"/proc/{number}").exists() for number in numbers):
            return True
        time.sleep(0.01)
    return False


def test_a_closed_pipe_stops_the_workers(model):
    process, workers = working(model)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert (process.wait(timeout=60), err) == (141, b"") and gone(workers)


def test_ctrl_c_stops_the_workers(model):
    process, workers = working(model)
    process.stdout.readline()
    threading.Thread(target=process.stdout.read, daemon=True).start()
    for number in workers:  # a terminal sends it to all processes, and workers should print nothing
        os.kill(number, signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    assert (process.wait(timeout=60), err) == (130, b"jacana-torch: interrupted\n") and gone(workers)


@pytest.mark.parametrize("blow", variants([signal.SIGKILL, signal.SIGTERM]))
def test_workers_end_with_the_main_process(model, blow):
    process, workers = working(model)
    process.send_signal(blow)
    assert process.wait(timeout=60) == -blow and gone(workers)
    process.stdout.close(), process.stderr.close()


def held(pipe) -> int:
    size = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return int.from_bytes(size, sys.byteorder)


def unfinished(folder: Path) -> list[str]:
    begun = time.monotonic()
    while not (found := os.listdir(folder)) and time.monotonic() - begun < 60:
        time.sleep(0.01)
    return found


def test_sigterm_leaves_nothing(model, tmp_path):
    process, workers = working(model, "--output", str(tmp_path / "links"))
    assert len(unfinished(tmp_path)) == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == -signal.SIGTERM and not any(Path(f"/proc/{n}").exists() for n in workers)
    assert os.listdir(tmp_path) == [] and process.stderr.read() == b""


def test_sigterm_does_not_wait_for_a_reader(model):
    process, workers = working(model)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    while held(process.stdout) < 4096:
        time.sleep(0.01)
    time.sleep(0.1)  # it is writing, and nobody reads
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == -signal.SIGTERM and gone(workers)
    process.stdout.close(), process.stderr.close()


def test_what_a_killed_run_left_is_removed_by_the_next(cli, model, tmp_path):
    out = tmp_path / "links"
    process, workers = working(model, "--output", str(out))
    assert len(unfinished(tmp_path)) == 1
    process.kill()
    process.wait()
    assert gone(workers) and len(os.listdir(tmp_path)) == 1
    assert cli("align", "--model", model, "--output", str(out), stdin="red\tred\n")[0] == 0
    assert os.listdir(tmp_path) == ["links"] and out.read_text() == "0-0\n"


def test_a_killed_worker_is_reported(model, tmp_path):
    process, workers = working(model, "--output", str(tmp_path / "links"))
    os.kill(workers[1], signal.SIGKILL)
    err = process.stderr.read().decode()
    assert process.wait(timeout=60) == 2 and "signal 9" in err and "--workers" in err and "Traceback" not in err
    assert gone(workers) and os.listdir(tmp_path) == []


def test_slow_lines_are_answered_at_once(model):
    """Without --batch-size 1 and without waiting for a full batch; also after workers have started."""
    process = started("align", "--model", model, "--workers", "2", "--batch-size", "8")
    alarm = threading.Timer(60, process.kill)  # an answer that never comes is a failure, not a hang
    alarm.start()
    try:
        for number in range(4):
            process.stdin.write(b"red dog\tdog\nbook\tbook\n")
            process.stdin.flush()
            assert [process.stdout.readline() for _ in range(2)] == [b"1-0\n", b"0-0\n"]
            if number == 1:
                assert children(process) == []
                process.stdin.write(b"red dog\tdog\n" * 100)
                process.stdin.flush()
                assert [process.stdout.readline() for _ in range(100)] == [b"1-0\n"] * 100
                assert len(children(process)) == 2
        process.stdin.write(b"red\tre")  # half a line is no line yet
        process.stdin.flush()
        time.sleep(0.1)
        process.stdin.write(b"d")
        out, err = process.communicate(timeout=60)
    finally:
        alarm.cancel()
        process.kill()
    assert (process.returncode, out, err) == (0, b"0-0\n", b"")


def test_sigterm_leaves_what_nobody_reads_in_the_buffer():
    script = """
import os, sys, time
from jacana_torch.cli import ending_on_sigterm
from jacana_torch.corpora._files import write_chunks
os.set_blocking(1, False)
try:
    while os.write(1, b"x" * 4096): pass
except BlockingIOError:
    os.set_blocking(1, True)
def chunks():
    yield "one line\\n"
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(60)
with ending_on_sigterm(by_signal=True):
    write_chunks(chunks(), "-")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    assert process.stderr.readline() == b"waiting\n"
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(timeout=10) == -signal.SIGTERM
    finally:
        process.kill()
        process.stdout.close(), process.stderr.close()
