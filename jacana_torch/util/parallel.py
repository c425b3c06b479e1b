"""Map a function over a stream of tasks in several processes.

Results come in order, few tasks are in flight, and the workers stop as soon as the results are no longer wanted.
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

PER_WORKER = 3  # tasks in flight: one in work, one to continue with, one that waits for an earlier task
# How many tasks in a row this process does before it starts workers: to spawn one takes seconds.
ALONE = {"fork": 1, "spawn": 8}


class WorkerDied(JacanaError):
    """A worker process ended before its tasks were done."""


def available() -> int:
    """Return the number of CPUs that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usual_method() -> str:
    """Return fork, which shares what is loaded, if it is safe: on Linux, and without other threads."""
    alone = len(sys._current_frames()) == 1  # threading.active_count() misses threads of other libraries
    return "fork" if sys.platform == "linux" and alone else "spawn"


def ordered(
    function: Callable[[Task], Result],
    tasks: Iterable[Task | None],
    workers: int,
    method: str | None = None,
    alone: int | None = None,
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with `function(task)`, in order.

    A None among the tasks is a pause: all results are yielded before the next task is taken. The first task is
    done in this process, and so are tasks with a pause after each: a single task needs no workers, and forked
    workers share what it loaded. An error of `function` or of the tasks is raised after all results before it. For
    `spawn`, `function` must pickle. `alone` is how many tasks in a row this process does before it starts workers.
    """
    method = method or usual_method()
    alone = ALONE[method] if alone is None else alone
    remaining, in_a_row = iter(tasks), 0
    for task in remaining:
        in_a_row = in_a_row + 1 if task is not None else 0
        if task is None:
            continue
        if workers > 1 and in_a_row > alone:
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


def as_done(
    function: Callable[[Task], Result], tasks: Iterable[Task | None], workers: int, method: str | None = None
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with `function(task)` as soon as it is done: for few and long tasks.

    A task is taken when a worker is free, so tasks may depend on results that were yielded. A None among them
    waits for the next result. An error of `function` is raised at once, and stops the workers.
    """
    remaining = iter(tasks)
    with _team(function, workers, method or usual_method()) as team:
        more = True
        while more or team.in_flight:
            while more and len(team.in_flight) < workers:
                try:
                    task = next(remaining)
                except StopIteration:
                    more = False
                    break
                if task is None:
                    break
                team.give(task)
            yield from team.ended()


@dataclass(eq=False)
class _Order(Generic[Task]):
    """A task that a worker got; `outcome` is its answer."""

    task: Task
    outcome: _Outcome | None = None


@dataclass
class _Outcome:
    """A result, or an error with the traceback of the worker."""

    result: Any = None
    error: Exception | None = None
    trace: str = ""

    def value(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error from _RemoteTrace(self.trace)
        return self.result


class _RemoteTrace(Exception):
    """The cause of a worker's error, so that tracebacks show it."""


@dataclass
class _Worker:
    process: BaseProcess
    todo: Connection
    done: Connection
    orders: deque[_Order[Any]] = field(default_factory=deque)  # in the order of work


@dataclass
class _Team(Generic[Task]):
    """The workers, and the tasks in flight in their order."""

    workers: list[_Worker] = field(default_factory=list)
    in_flight: deque[_Order[Task]] = field(default_factory=deque)

    def give(self, task: Task) -> None:
        """Send the task to the worker with the fewest."""
        worker = min(self.workers, key=lambda worker: len(worker.orders))
        order = _Order(task)
        try:
            worker.todo.send(task)
        except OSError:  # a broken pipe, but not that of our output
            raise _died(worker) from None
        worker.orders.append(order)
        self.in_flight.append(order)

    def finished(self, most: int) -> Iterator[tuple[Task, Any]]:
        """Yield the results that are due; wait until at most `most` tasks are in flight."""
        while self.in_flight:
            order = self.in_flight[0]
            if order.outcome is None:
                self._collect(block=len(self.in_flight) > most)
            if order.outcome is not None:
                self.in_flight.popleft()
                yield order.task, order.outcome.value()
            elif len(self.in_flight) <= most:
                return

    def ended(self) -> Iterator[tuple[Task, Any]]:
        """Wait until a task in flight is done; yield all that are, in any order."""
        if self.in_flight:
            self._collect(block=True)
        for order in list(self.in_flight):
            if order.outcome is not None:
                self.in_flight.remove(order)
                yield order.task, order.outcome.value()

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
            worker.process.kill()  # it has nothing to save, and its task may be long
        for worker in self.workers:
            worker.process.join()
            worker.todo.close()
            worker.done.close()


@contextmanager
def _team(function: Callable[[Task], Any], workers: int, method: str) -> Iterator[_Team[Task]]:
    team: _Team[Task] = _Team()
    try:
        with _interrupts_held():
            for _ in range(workers):
                team.workers.append(_hired(function, method, team.workers))
        yield team
    finally:
        team.stop()


def _hired(function: Callable[[Any], Any], method: str, others: list[_Worker]) -> _Worker:
    (their_todo, todo), (done, their_done) = Pipe(duplex=False), Pipe(duplex=False)
    # A forked worker has copies of our ends, and would keep them open after we are gone.
    ours = [todo, done, *(end for worker in others for end in (worker.todo, worker.done))]
    arguments = (function, their_todo, their_done, ours if method == "fork" else [])
    process = multiprocessing.get_context(method).Process(  # type: ignore[attr-defined]
        target=_serve, args=arguments, daemon=True
    )
    try:
        process.start()
    except OSError as error:
        raise JacanaError(f"cannot start a worker process ({error}): use fewer, or --workers 1") from None
    finally:
        their_todo.close()
        their_done.close()
    return _Worker(process, todo, done)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the workers have started: then all are known, and can be stopped.

    A terminal sends Ctrl-C to all processes, and workers ignore it.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _died(worker: _Worker) -> WorkerDied:
    worker.process.join(1)
    code = worker.process.exitcode
    if code is not None and code < 0:
        how = f"was killed (signal {-code})" + (", perhaps for lack of memory" if code == -9 else "")
    else:
        how = f"ended (exit code {code})"
    return WorkerDied(f"a worker process {how}: try again with fewer (--workers) or a smaller --batch-size")


def _serve(
    function: Callable[[Any], Any], todo: Connection, done: Connection, not_ours: Iterable[Connection]
) -> None:
    """Work until the other end of the connections is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for connection in not_ours:
        connection.close()
    gc.freeze()  # forked memory is shared as long as nobody, the garbage collector included, touches it
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(todo, tasks), daemon=True).start()
    while True:
        outcome = _done(function, tasks.get())
        try:
            done.send(outcome)
        except OSError:
            os._exit(0)


def _listen(todo: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    """Receive tasks during work: otherwise both ends could wait for each other to read."""
    while True:
        try:
            tasks.put(todo.recv())
        except (EOFError, OSError):
            os._exit(0)


def _done(function: Callable[[Any], Any], task: Any) -> _Outcome:
    try:
        return _Outcome(function(task))
    except Exception as error:
        trace = f"\n{traceback.format_exc()}"
        try:
            again = pickle.loads(pickle.dumps(error))
            travels = type(again) is type(error) and str(again) == str(error)
        except Exception:  # an error can hold anything
            travels = False
        if not travels:
            kind = JacanaError if isinstance(error, JacanaError) else RuntimeError
            error = kind(str(error) if kind is JacanaError else f"{type(error).__name__}: {error}")
        return _Outcome(error=error, trace=trace)
