"""A map over many tasks by several processes: in order, with few tasks under way, and stopped at once.

A function and tasks in, tasks with their results out. Knows nothing of what the tasks are.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from ..errors import JacanaError

Task = TypeVar("Task")
Result = TypeVar("Result")

PER_WORKER = 3  # tasks under way: one that is worked at, one to go on with, one that waits for an earlier one
# How many tasks in a row are done in this process before there are others: a spawned one takes seconds to start.
ALONE = {"fork": 1, "spawn": 8}


class WorkerDied(JacanaError):
    """A process that vanished with work of ours."""


def available() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usual_method() -> str:
    """fork shares what is loaded; it is not safe beside threads, nor with the libraries of other systems."""
    alone = len(sys._current_frames()) == 1  # threading.active_count() misses threads that it did not start
    return "fork" if sys.platform == "linux" and alone else "spawn"


def ordered(
    function: Callable[[Task], Result], tasks: Iterable[Task | None], workers: int, method: str | None = None
) -> Iterator[tuple[Task, Result]]:
    """Each task with `function(task)`, in order. A None among the tasks says that the next may be long in coming:
    all results are given out before it is asked for.

    The first task is done in this process, and so are tasks with a None after each: whoever has one task needs no
    workers, and those that are forked find what it loaded. An error of `function`, or of the tasks themselves, is
    raised after everything before it was given out. `function` must pickle where `method` is spawn.
    """
    method = method or usual_method()
    remaining, in_a_row = iter(tasks), 0
    for task in remaining:
        in_a_row = in_a_row + 1 if task is not None else 0
        if task is None:
            continue
        if workers > 1 and in_a_row > ALONE[method]:
            yield from _shared(function, chain([task], remaining), workers, method)
            return
        yield task, function(task)


def _shared(
    function: Callable[[Task], Result], tasks: Iterator[Task | None], workers: int, method: str
) -> Iterator[tuple[Task, Result]]:
    failure: Exception | None = None
    with _team(function, workers, method) as team:
        while failure is None:
            try:
                task = next(tasks)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            if task is not None:
                team.give(task)
            yield from team.finished(0 if task is None else PER_WORKER * workers - 1)
        yield from team.finished(0)
    if failure is not None:
        raise failure


@dataclass
class _Order(Generic[Task]):
    """A task that was given to someone; `outcome` is what came back."""

    task: Task
    outcome: _Outcome | None = None


@dataclass
class _Outcome:
    """A result, or an error and where it happened in the worker."""

    result: Any = None
    error: Exception | None = None
    trace: str = ""


class _RemoteTrace(Exception):
    """The cause of an error that a worker raised, for tracebacks to show."""


@dataclass
class _Worker:
    process: BaseProcess
    todo: Connection
    done: Connection
    orders: deque[_Order] = field(default_factory=deque)  # in the order in which it does them


@dataclass
class _Team(Generic[Task]):
    """The workers, and the tasks under way in the order in which they came."""

    workers: list[_Worker] = field(default_factory=list)
    under_way: deque[_Order[Task]] = field(default_factory=deque)

    def give(self, task: Task) -> None:
        """To whoever has least to do."""
        worker = min(self.workers, key=lambda worker: len(worker.orders))
        order = _Order(task)
        try:
            worker.todo.send(task)
        except OSError:  # not to be taken for the reader of our output going away
            raise _died(worker) from None
        worker.orders.append(order)
        self.under_way.append(order)

    def finished(self, most: int) -> Iterator[tuple[Task, Any]]:
        """What is done and whose turn it is; waits until at most `most` tasks are under way."""
        while self.under_way:
            order = self.under_way[0]
            if order.outcome is None:
                self._collect(block=len(self.under_way) > most)
            if order.outcome is not None:
                self.under_way.popleft()
                if order.outcome.error is not None:
                    raise order.outcome.error from _RemoteTrace(order.outcome.trace)
                yield order.task, order.outcome.result
            elif len(self.under_way) <= most:
                return

    def _collect(self, block: bool) -> None:
        by_connection: dict[Any, _Worker] = {worker.done: worker for worker in self.workers}
        for connection in wait(list(by_connection), None if block else 0):
            worker = by_connection[connection]
            try:
                outcome = worker.done.recv()
            except (EOFError, OSError):
                raise _died(worker) from None
            worker.orders.popleft().outcome = outcome

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.kill()  # it has nothing to lose and may be in the middle of a long task
        for worker in self.workers:
            worker.process.join()
            worker.todo.close()
            worker.done.close()


@contextmanager
def _team(function: Callable, workers: int, method: str) -> Iterator[_Team]:
    team: _Team = _Team()
    try:
        with _interrupts_held():
            for _ in range(workers):
                team.workers.append(_hired(function, method, team.workers))
        yield team
    finally:
        team.stop()


def _hired(function: Callable, method: str, others: list[_Worker]) -> _Worker:
    (their_todo, todo), (done, their_done) = Pipe(duplex=False), Pipe(duplex=False)
    # A forked worker has copies of our ends; while it holds them nobody would see that we are gone.
    ours = [todo, done, *(end for worker in others for end in (worker.todo, worker.done))]
    arguments = (function, their_todo, their_done, ours if method == "fork" else [])
    process = multiprocessing.get_context(method).Process(  # type: ignore[attr-defined]
        target=_serve, args=arguments, daemon=True
    )
    try:
        process.start()
    except OSError as error:
        raise JacanaError(f"a worker process cannot be started ({error}): use fewer, or --workers 1") from None
    finally:
        their_todo.close()
        their_done.close()
    return _Worker(process, todo, done)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the workers are there, and they never see it: it goes to all processes of a terminal."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _died(worker: _Worker) -> WorkerDied:
    worker.process.join(1)
    code = worker.process.exitcode
    if code is not None and code < 0:
        how = f"was killed (signal {-code})" + (", perhaps for want of memory" if code == -9 else "")
    else:
        how = f"ended (exit code {code})"
    return WorkerDied(f"a worker process {how}: try again with fewer (--workers) or a smaller --batch-size")


def _serve(function: Callable, todo: Connection, done: Connection, not_ours: Iterable[Connection]) -> None:
    """A worker's life: tasks in, outcomes out, until whoever gave the tasks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for connection in not_ours:
        connection.close()
    gc.freeze()  # what was forked is shared with the others as long as nobody, the collector included, touches it
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(todo, tasks), daemon=True).start()
    while True:
        outcome = _done(function, tasks.get())
        try:
            done.send(outcome)
        except OSError:
            os._exit(0)


def _listen(todo: Connection, tasks: queue.SimpleQueue) -> None:
    """Takes tasks in while one is worked at: otherwise a giver and a worker could wait for each other to read."""
    while True:
        try:
            tasks.put(todo.recv())
        except (EOFError, OSError):
            os._exit(0)


def _done(function: Callable, task: Any) -> _Outcome:
    try:
        return _Outcome(function(task))
    except Exception as error:
        trace = f"\n{traceback.format_exc()}"
        try:
            again = pickle.loads(pickle.dumps(error))
            travels = type(again) is type(error) and str(again) == str(error)
        except Exception:  # whatever it is made of
            travels = False
        if not travels:
            kind = JacanaError if isinstance(error, JacanaError) else RuntimeError
            error = kind(str(error) if kind is JacanaError else f"{type(error).__name__}: {error}")
        return _Outcome(error=error, trace=trace)
