"""Batching of concurrent requests: jobs that wait while the worker is busy are done together.

A job has a key and items. A function `(key, items) -> results`, with one result per item, does the work in a
thread of its own. The module does not depend on what keys and items are.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Generic, TypeVar

from . import Busy

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")

BUDGET = 20_000  # cost of the items of one batch at most
LEAST = 5_000  # cost that a batch may have however slow the work is
SLICE = 0.15  # seconds that a batch between the two may take: so long a new job waits
GATHERING = 0.002  # seconds that an idle worker waits for further jobs
LONGEST_ADVICE = 60  # seconds
MEMORY = 0.8  # of the pace of earlier batches


@dataclass(eq=False)
class _Job(Generic[Key, Item, Result]):
    """`costs` are those of the items, `taken` of which were in a batch; `cost` is that of the rest."""

    key: Key
    items: Sequence[Item]
    costs: Sequence[int]
    client: str
    answer: asyncio.Future[list[Result]]
    cost: int
    taken: int = 0
    results: list[Result] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return len(self.items) - self.taken

    def take(self, share: float) -> _Part[Key, Item, Result]:
        """Take items, one at least, until their cost reaches the share."""
        first, spent = self.taken, 0
        while self.waiting and (self.taken == first or spent < share):
            spent += self.costs[self.taken]
            self.taken += 1
        self.cost -= spent
        return _Part(self, self.items[first : self.taken], spent)


@dataclass
class _Part(Generic[Key, Item, Result]):
    """The share of a batch that belongs to a job."""

    job: _Job[Key, Item, Result]
    items: Sequence[Item]
    cost: int


class Batcher(Generic[Key, Item, Result]):
    """A queue of jobs. Enter it with `async with`, and call `do` from any number of tasks.

    Jobs with the same key are done together. A batch begins with the job that has waited longest; then come the
    cheapest jobs, of each client in turn. So a cheap job waits for one batch or two whatever else waits, and
    large jobs are done a slice at a time. `cost` gives the cost of an item in the units of BUDGET, `queue` is the
    cost that may wait, `seconds` the time it may take, and `prepare` runs once in the worker's thread.
    """

    def __init__(
        self,
        work: Callable[[Key, Sequence[Item]], list[Result]],
        cost: Callable[[Key, Item], int],
        queue: int,
        seconds: float,
        prepare: Callable[[], None],
    ) -> None:
        self._work, self._cost, self._queue, self._seconds = work, cost, queue, seconds
        self._jobs: deque[_Job[Key, Item, Result]] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model", initializer=prepare)
        self._spent, self._done = 0.0, 0.0  # seconds, and the cost that took them; old batches fade
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

    @property
    def waiting_cost(self) -> int:
        """The cost of the items that are in no batch yet."""
        return sum(job.cost for job in self._jobs)

    @property
    def waiting_jobs(self) -> int:
        return len(self._jobs)

    async def do(self, key: Key, items: Sequence[Item], client: str = "") -> list[Result]:
        """Return the results of the items. Cancelling the call leaves the queue."""
        if not items:
            return []
        costs = [self._cost(key, item) for item in items]
        total, waiting = sum(costs), self.waiting_cost
        if self._jobs and (waiting + total > self._queue or waiting * self._pace > self._seconds):
            raise Busy(self.advice())
        answer = asyncio.get_running_loop().create_future()
        job = _Job[Key, Item, Result](key, items, costs, client, answer, total)
        self._jobs.append(job)
        self._wake.set()
        try:
            return await job.answer
        finally:
            with suppress(ValueError):  # a job leaves the queue with its last items
                self._jobs.remove(job)

    @property
    def _pace(self) -> float:
        """Seconds per cost."""
        return self._spent / self._done if self._done else 0.0

    def advice(self) -> int:
        """Estimate the seconds until the queue is done."""
        return max(1, min(LONGEST_ADVICE, math.ceil(self.waiting_cost * self._pace)))

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if not self._jobs:
                await self._wake.wait()
                await asyncio.sleep(GATHERING)
            for parts in self._next_batch():
                await self._answer(parts)

    def _next_batch(self) -> list[list[_Part[Key, Item, Result]]]:
        """Take jobs up to the budget; return those of each key, the smallest first.

        Half of the budget belongs to the first job, half or more to the others, which do not wait for an item
        that is above it. Unfinished jobs go to the end of the queue.
        """
        budget = min(BUDGET, max(LEAST, SLICE / self._pace)) if self._pace else BUDGET
        spent, left = 0, budget / 2 if len(self._jobs) > 1 else budget
        batch: defaultdict[tuple[Key, bool], list[_Part[Key, Item, Result]]] = defaultdict(list)
        for job in self._in_order():
            if batch and job.costs[job.taken] > left:
                continue  # it is the first of a later batch
            part = job.take(left)
            spent += part.cost
            left = max(budget - spent, budget / 2) if len(batch) == 0 else left - part.cost
            self._jobs.remove(job)
            if job.waiting:
                self._jobs.append(job)
            batch[job.key, part.cost > budget].append(part)
        return sorted(batch.values(), key=lambda parts: max(part.cost for part in parts))

    def _in_order(self) -> Iterator[_Job[Key, Item, Result]]:
        """Yield the job that waits longest, and then the cheapest of each client in turn."""
        jobs = list(self._jobs)
        yield from jobs[:1]
        by_client: defaultdict[str, list[_Job[Key, Item, Result]]] = defaultdict(list)
        for job in sorted(jobs[1:], key=lambda job: job.cost):
            by_client[job.client].append(job)
        yield from (job for job in chain.from_iterable(zip_longest(*by_client.values())) if job is not None)

    async def _answer(self, parts: list[_Part[Key, Item, Result]]) -> None:
        items = [item for part in parts for item in part.items]
        begun = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            results = await loop.run_in_executor(self._thread, self._work, parts[0].job.key, items)
            if len(results) != len(items):
                raise RuntimeError(f"{len(results)} results for {len(items)} items")
        except Exception as error:
            if len(parts) > 1:  # try each job alone, so that one job's bad items do not fail the others
                for part in parts:
                    await self._answer([part])
                return
            self._fail(parts[0].job, error)
            return
        self._spent = MEMORY * self._spent + time.monotonic() - begun
        self._done = MEMORY * self._done + sum(part.cost for part in parts)
        start = 0
        for part in parts:
            job, end = part.job, start + len(part.items)
            job.results += results[start:end]
            start = end
            if len(job.results) == len(job.items) and not job.answer.done():
                job.answer.set_result(job.results)

    def _fail(self, job: _Job[Key, Item, Result], error: Exception) -> None:
        if not job.answer.done():
            job.answer.set_exception(error)
        with suppress(ValueError):
            self._jobs.remove(job)
