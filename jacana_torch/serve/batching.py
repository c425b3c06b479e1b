"""Batching of concurrent requests: jobs that wait while the worker is busy are done together.

A job has a key and items. A function `(key, items) -> results`, with one result per item, does the work in a
thread of its own. The module does not depend on what keys and items are.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

BUDGET = 20_000  # cost of the items of one batch; a new job waits that long at least
GATHERING = 0.002  # seconds that an idle worker waits for further jobs
LONGEST_ADVICE = 60  # seconds


class Busy(Exception):
    """The queue is full, or the answer takes too long; `seconds` says when to try again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class _Job(Generic[Key, Item, Result]):
    key: Key
    items: Sequence[Item]
    answer: asyncio.Future[list[Result]]
    taken: int = 0  # items that are in a batch, or were
    results: list[Result] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return len(self.items) - self.taken


class Batcher(Generic[Key, Item, Result]):
    """A queue of jobs. Enter it with `async with`, and call `do` from any number of tasks.

    Jobs with the same key share batches, and large jobs take turns with small ones. `cost` gives the cost of an
    item in the units of BUDGET, `queue` is the number of items that may wait, and `prepare` runs once in the
    worker's thread.
    """

    def __init__(
        self,
        work: Callable[[Key, Sequence[Item]], list[Result]],
        cost: Callable[[Item], int],
        queue: int,
        prepare: Callable[[], None],
    ) -> None:
        self._work, self._cost, self._queue = work, cost, queue
        self._jobs: deque[_Job[Key, Item, Result]] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=prepare)
        self._seconds_per_item = 0.0  # a running mean
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Batcher[Key, Item, Result]:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._running is not None
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running
        self._thread.shutdown(cancel_futures=True)

    @property
    def waiting(self) -> int:
        """The number of items that are in no batch yet."""
        return sum(job.waiting for job in self._jobs)

    async def do(self, key: Key, items: Sequence[Item]) -> list[Result]:
        """Return the results of the items. Cancelling the call leaves the queue."""
        if not items:
            return []
        if self._jobs and self.waiting + len(items) > self._queue:
            raise Busy(self.advice())
        job = _Job[Key, Item, Result](key, items, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._wake.set()
        try:
            return await job.answer
        finally:
            with suppress(ValueError):  # a job leaves the queue with its last items
                self._jobs.remove(job)

    def advice(self) -> int:
        """Estimate the seconds until the queue is done."""
        return max(1, min(LONGEST_ADVICE, math.ceil(self.waiting * self._seconds_per_item)))

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if not self._jobs:
                await self._wake.wait()
                await asyncio.sleep(GATHERING)
            if batch := self._next_batch():
                await self._answer(batch)

    def _next_batch(self) -> list[tuple[_Job[Key, Item, Result], Sequence[Item]]]:
        """Take a share of every job that has the first job's key; unfinished jobs go to the end of the queue."""
        if not self._jobs:
            return []
        key = self._jobs[0].key
        jobs = [job for job in self._jobs if job.key == key]
        share, spent, batch = BUDGET / len(jobs), 0, []
        for job in jobs:
            if spent >= BUDGET:
                break
            begun, first = spent, job.taken
            while job.waiting and (job.taken == first or (spent - begun < share and spent < BUDGET)):
                spent += self._cost(job.items[job.taken])
                job.taken += 1
            self._jobs.remove(job)
            if job.waiting:
                self._jobs.append(job)
            batch.append((job, job.items[first : job.taken]))
        return batch

    async def _answer(self, batch: list[tuple[_Job[Key, Item, Result], Sequence[Item]]]) -> None:
        items = [item for _, part in batch for item in part]
        begun = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            results = await loop.run_in_executor(self._thread, self._work, batch[0][0].key, items)
            if len(results) != len(items):
                raise RuntimeError(f"{len(results)} results for {len(items)} items")
        except Exception as error:
            if len(batch) > 1:  # try each job alone, so that one job's bad items do not fail the others
                for job_and_items in batch:
                    await self._answer([job_and_items])
                return
            self._fail(batch[0][0], error)
            return
        pace = (time.monotonic() - begun) / len(items)
        self._seconds_per_item += 0.2 * (pace - self._seconds_per_item) if self._seconds_per_item else pace
        start = 0
        for job, part in batch:
            job.results += results[start : start + len(part)]
            start += len(part)
            if len(job.results) == len(job.items) and not job.answer.done():
                job.answer.set_result(job.results)

    def _fail(self, job: _Job[Key, Item, Result], error: Exception) -> None:
        if not job.answer.done():
            job.answer.set_exception(error)
        with suppress(ValueError):
            self._jobs.remove(job)
