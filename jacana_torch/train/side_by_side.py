"""Work on the folds of a cross-validation, several side by side: each in a process of one thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import ConfigError, JacanaError
from ..util import parallel, ranks

Result = TypeVar("Result")
Task = tuple[int, str]  # the number of a fold, and which part of the work on it


def workers_of(config: Mapping[str, Any]) -> int:
    """Return how many processes a config asks for: on a CPU one for each, by default, on other devices one.

    Under torchrun, the processes share each training instead.
    """
    if ranks.world > 1:
        return 1
    asked, device = config["workers"], config["trainer"]["device"]
    return asked or (parallel.available() if device == "cpu" else 1)


def side_by_side(
    work: Callable[[Task], Result], tasks: Iterable[Task | None], folds: int, workers: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with `work(task)`, as soon as it is done; None among the tasks waits for the next result.

    An error names its fold. With one worker, this process does the tasks in their order. Others log what they have
    to say when their task is done.
    """
    if workers < 2:
        for task in filter(None, tasks):
            with_name = _Named(work, folds)
            yield task, with_name(task)
        return
    remote = _Remote(_Named(work, folds), logging.getLogger().getEffectiveLevel())
    try:
        for task, (result, records) in parallel.as_done(remote, tasks, workers, _method()):
            for record in records:
                record.msg = f"fold {task[0]}: {record.msg}"
                logging.getLogger(record.name).handle(record)
            yield task, result
    except parallel.WorkerDied as error:
        what = str(error).partition(": ")[0]
        raise JacanaError(
            f"{what}: try again with fewer (workers=1); what is done is kept: resume=FOLDER"
        ) from None


def _method() -> str:
    """Return how processes start: CUDA and its threads do not survive a fork."""
    import torch  # here, and not in each fork

    return "spawn" if torch.cuda.is_available() else parallel.usual_method()


@dataclass
class _Named(Generic[Result]):
    """Does a task, and names its fold in errors."""

    work: Callable[[Task], Result]
    folds: int

    def __call__(self, task: Task) -> Result:
        try:
            return self.work(task)
        except JacanaError as error:
            kind = ConfigError if isinstance(error, ConfigError) else JacanaError
            raise kind(f"fold {task[0]} of {self.folds}: {error}") from error


@dataclass
class _Remote(Generic[Result]):
    """Does a task in a worker, and returns what was logged with the result."""

    work: Callable[[Task], Result]
    level: int

    def __call__(self, task: Task) -> tuple[Result, list[logging.LogRecord]]:
        import torch

        torch.set_num_threads(1)  # each CPU has a worker
        root, kept = logging.getLogger(), _Kept()
        root.handlers[:], handlers = [kept], root.handlers[:]
        root.setLevel(self.level)
        try:
            return self.work(task), kept.records
        except Exception:
            for record in kept.records:
                for handler in handlers:
                    handler.handle(record)
            raise
        finally:
            root.handlers[:] = handlers


class _Kept(logging.Handler):
    """Keeps records in a form that pickles."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        self.records.append(record)
