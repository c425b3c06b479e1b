"""The parallel map: order, bounds, errors, killed workers; with forked and with spawned workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback

import pytest
from variants import variants

from jacana_torch.errors import CorpusError, JacanaError
from jacana_torch.util.parallel import ALONE, PER_WORKER, WorkerDied, available, ordered

fork_only = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked only on Linux")


def squared(number: int) -> tuple[int, int]:
    time.sleep(number % 3 * 0.003)
    return number * number, os.getpid()


@fork_only
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    found = list(ordered(squared, iter(range(60)), workers, "fork"))
    assert [(task, result) for task, (result, _) in found] == [(n, n * n) for n in range(60)]
    others = {pid for _, (_, pid) in found} - {os.getpid()}
    assert len(others) == (workers if workers > 1 else 0)


def test_spawned_workers_too():
    found = list(ordered(squared, range(30), 2, "spawn"))
    assert [result for _, (result, _) in found] == [n * n for n in range(30)]
    own = [pid == os.getpid() for _, (_, pid) in found]
    assert own == [True] * ALONE["spawn"] + [False] * (30 - ALONE["spawn"])


def test_few_tasks_need_no_workers():
    slowly = [1, None, 2, None, None, 3, None, 4]
    for tasks in ([], [7], slowly):
        found = list(ordered(squared, tasks, 4))
        assert [task for task, _ in found] == [task for task in tasks if task is not None]
        assert {pid for _, (_, pid) in found} <= {os.getpid()}


@fork_only
def test_few_tasks_are_in_flight():
    taken = 0

    def tasks():
        nonlocal taken
        while True:
            taken += 1
            yield taken

    workers = 3
    results = ordered(squared, tasks(), workers, "fork")
    for given in range(1, 101):
        next(results)
        assert taken - given <= PER_WORKER * workers
    results.close()
    assert taken >= 100


@fork_only
def test_all_results_come_before_a_pause():
    out = []

    def tasks():
        for start in range(0, 60, 6):
            yield from range(start, start + 6)
            yield None
            assert out == list(range(start + 6))

    for task, _ in ordered(squared, tasks(), 3, "fork"):
        out.append(task)
    assert len(out) == 60


def echoed(data: bytes) -> bytes:
    return data[::-1]


@fork_only
def test_large_tasks_and_results_do_not_wait_for_each_other():
    big = [bytes([n]) * 3_000_000 for n in range(12)]
    assert [result for _, result in ordered(echoed, big, 2, "fork")] == big


class Odd(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class OddMistake(JacanaError):
    def __init__(self, *, why: str) -> None:
        super().__init__(f"because of {why}")


def failing(number: int) -> int:
    if number == 17:
        raise CorpusError("broken", "some.txt", 3)
    if number == 18:
        raise KeyError("no such thing")
    if number == 19:
        raise Odd(1, 2)
    if number == 20:
        raise OddMistake(why="rain")
    return number


@fork_only
@pytest.mark.parametrize(
    ("bad", "kind", "says"),
    [
        (17, CorpusError, "some.txt:3: broken"),
        (18, KeyError, "'no such thing'"),
        (19, RuntimeError, "Odd: 1 and 2"),
        (20, JacanaError, "because of rain"),
    ],
)
def test_an_error_of_a_worker_is_raised_in_its_turn(bad, kind, says):
    out = []
    with pytest.raises(kind) as raised:
        for task, _ in ordered(failing, [*range(12), bad, *range(8)], 2, "fork"):
            out.append(task)
    assert out == list(range(12)) and type(raised.value) is kind and str(raised.value) == says
    assert "in failing" in "".join(traceback.format_exception(raised.value))  # where it happened is not lost


@fork_only
def test_an_error_of_the_tasks_is_raised_after_the_results_before_it():
    def tasks():
        yield from range(25)
        raise CorpusError("broken", "some.txt", 26)

    for workers in (1, 3):
        out = []
        with pytest.raises(CorpusError, match="some.txt:26: broken"):
            for task, _ in ordered(squared, tasks(), workers, "fork"):
                out.append(task)
        assert out == list(range(25))


def dying(number: int) -> int:
    if number == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 10:
        os._exit(5)
    return number


@fork_only
@pytest.mark.parametrize(("bad", "says"), [(9, r"signal 9\), perhaps for lack of memory"), (10, "exit code 5")])
@pytest.mark.parametrize("after", variants([1, 0, 500]))
def test_a_killed_worker_is_reported(bad, says, after):
    with pytest.raises(WorkerDied, match=says):
        list(ordered(dying, [0, 1, 2, bad, *[1] * after], 2, "fork"))


def slow(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@fork_only
def test_closing_the_results_stops_the_workers():
    results = ordered(slow, [0, 0, 0, 60, 60, 60, 60], 2, "fork")
    pids = {next(results)[1] for _ in range(3)} - {os.getpid()}
    begun = time.monotonic()
    results.close()
    assert pids and time.monotonic() - begun < 5
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@fork_only
@pytest.mark.parametrize("start", ["threading.Thread(target=stop.acquire, daemon=True).start()",
                                   "_thread.start_new_thread(stop.acquire, ())"])  # fmt: skip
def test_nothing_is_forked_with_a_second_thread(start):
    """In a process of its own: parallel test runs have threads."""
    code = f"""if True:
        import _thread, threading, time
        from jacana_torch.util.parallel import usual_method
        print(usual_method())
        stop = threading.Lock()
        stop.acquire()
        {start.replace("stop.acquire", "lambda: stop.acquire()")}
        time.sleep(0.2)
        print(usual_method())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["fork", "spawn"], done.stderr


def test_there_are_cpus():
    assert 1 <= available() <= (os.cpu_count() or 1)
