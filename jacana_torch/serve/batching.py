"""Many askers, one worker: what waits while the worker is busy is done together.

Jobs of a key and items in, their results out, in order; a function (key, items) -> results does the work, in a
thread of its own. Knows nothing of what the items are.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger(__name__)

Work = Callable[[Any, list[Any]], list[Any]]

BUDGET = 20_000  # what the items of one batch may cost; whoever comes next waits for as long as that takes
GATHERING = 0.002  # seconds that an idle worker waits for company
LONGEST_ADVICE = 60  # seconds


class Busy(Exception):
    """Too much waits already; `seconds` is when to try again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class _Job:
    key: Hashable
    items: Sequence[Any]
    answer: asyncio.Future[list[Any]]
    taken: int = 0
    results: list[Any] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return len(self.items) - self.taken

    def deliver(self, results: Sequence[Any]) -> None:
        self.results += results
        if len(self.results) == len(self.items) and not self.answer.done():
            self.answer.set_result(self.results)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


_Part = tuple[_Job, Sequence[Any]]


class Batcher:
    """Use as `async with`; `do` from as many tasks as there are.

    Jobs of the same key share a batch, and large ones take turns with small ones. `cost` is of an item, in the
    units of BUDGET; `queue` is how many items may wait.
    """

    def __init__(self, work: Work, cost: Callable[[Any], int], queue: int, prepare: Callable[[], None]) -> None:
        self._work, self._cost, self._queue = work, cost, queue
        self._jobs: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=prepare)
        self._seconds_an_item = 0.0  # a running mean
        self._running: asyncio.Task | None = None

    async def __aenter__(self) -> Batcher:
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
        """Items that nobody works at yet."""
        return sum(job.waiting for job in self._jobs)

    async def do(self, key: Hashable, items: Sequence[Any]) -> list[Any]:
        """The results of the items. To cancel this is to leave the queue."""
        if not items:
            return []
        if self._jobs and self.waiting + len(items) > self._queue:
            raise Busy(self.advice())
        job = _Job(key, items, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._wake.set()
        try:
            return await job.answer
        finally:
            with suppress(ValueError):  # it is gone when its last items are taken
                self._jobs.remove(job)

    def advice(self) -> int:
        """Seconds until what waits now will be done, as far as one can tell."""
        return max(1, min(LONGEST_ADVICE, math.ceil(self.waiting * self._seconds_an_item)))

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if not self._jobs:
                await self._wake.wait()
                await asyncio.sleep(GATHERING)
            if parts := self._next_batch():
                await self._answer(parts)

    def _next_batch(self) -> list[_Part]:
        """Of the jobs with the first one's key, each its share; who has more goes to the back of the queue."""
        if not self._jobs:
            return []
        key = self._jobs[0].key
        askers = [job for job in self._jobs if job.key == key]
        share, spent, parts = BUDGET / len(askers), 0, []
        for job in askers:
            if spent >= BUDGET:
                break
            begun, first = spent, job.taken
            while job.waiting and (job.taken == first or (spent - begun < share and spent < BUDGET)):
                spent += self._cost(job.items[job.taken])
                job.taken += 1
            self._jobs.remove(job)
            if job.waiting:
                self._jobs.append(job)
            parts.append((job, job.items[first : job.taken]))
        return parts

    async def _answer(self, parts: list[_Part]) -> None:
        items = [item for _, its in parts for item in its]
        begun = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            results = await loop.run_in_executor(self._thread, self._work, parts[0][0].key, items)
            if len(results) != len(items):
                raise RuntimeError(f"{len(results)} results for {len(items)} items")
        except Exception as error:
            await self._blame(parts, error)
            return
        pace = (time.monotonic() - begun) / len(items)
        self._seconds_an_item += 0.2 * (pace - self._seconds_an_item) if self._seconds_an_item else pace
        at = 0
        for job, its in parts:
            job.deliver(results[at : at + len(its)])
            at += len(its)

    async def _blame(self, parts: list[_Part], error: Exception) -> None:
        """One job's bad items are nobody else's: each is tried alone."""
        if len(parts) > 1:
            for part in parts:
                await self._answer([part])
            return
        job = parts[0][0]
        job.fail(error)
        with suppress(ValueError):
            self._jobs.remove(job)
