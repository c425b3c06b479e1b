"""Batching of concurrent jobs: which share a batch, which wait, and which fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.serve import batching
from jacana_torch.serve.batching import Batcher, Busy


class Worker:
    """Doubles numbers and records its batches; blocks while `let` is cleared."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[int]]] = []
        self.let = threading.Event()
        self.let.set()
        self.seconds_per_item = 0.0

    def __call__(self, key: str, items: list[int]) -> list[int]:
        self.batches.append((key, items))
        assert self.let.wait(10)
        time.sleep(self.seconds_per_item * len(items))
        if -1 in items:
            raise ValueError("minus one")
        return [2 * item for item in items]


def run(
    what: Callable[[Batcher, Worker], Coroutine],
    queue: int = 10**6,
    seconds: float = 60.0,
    cost: Callable[[str, int], int] = lambda *_: 1,
) -> Any:
    async def main() -> Any:
        worker = Worker()
        async with Batcher(worker, cost, queue, seconds, prepare=lambda: None) as batcher:
            return await asyncio.wait_for(what(batcher, worker), 10)

    return completed(main())


def completed(work: Coroutine) -> Any:
    """Run in another thread: browser tests leave an event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def under_way(worker: Worker, batches: int = 1) -> None:
    while len(worker.batches) < batches:
        await asyncio.sleep(0.001)


async def queued(batcher: Batcher, worker: Worker, *jobs: tuple[str, list[int]]) -> list[asyncio.Task]:
    """Tasks of jobs that wait in this order while the worker is busy."""
    worker.let.clear()
    tasks = [asyncio.create_task(batcher.do("busy", [0]))]
    await under_way(worker)
    for key, items in jobs:
        tasks.append(asyncio.create_task(batcher.do(key, items)))
        await asyncio.sleep(0)
    return tasks


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 99), max_size=30)), max_size=12),
    st.integers(1, 40),
)
def test_every_job_gets_its_own_results(jobs, budget):
    before, batching.BUDGET = batching.BUDGET, budget
    try:

        async def what(batcher, worker):
            return await asyncio.gather(*(batcher.do(key, items) for key, items in jobs)), worker.batches

        answers, batches = run(what, cost=lambda key, item: item % 7 + 1)
    finally:
        batching.BUDGET = before
    assert answers == [[2 * item for item in items] for _, items in jobs]
    assert sorted((key, item) for key, items in batches for item in items) == sorted(
        (key, item) for key, items in jobs for item in items
    )


def test_waiting_jobs_with_the_same_key_share_a_batch():
    async def what(batcher, worker):
        tasks = await queued(batcher, worker, ("a", [1, 2]), ("b", [3]), ("a", [4]), ("b", [5]))
        assert batcher.waiting == 5
        worker.let.set()
        await asyncio.gather(*tasks)
        assert batcher.waiting == 0
        return worker.batches

    assert run(what) == [("busy", [0]), ("b", [3, 5]), ("a", [1, 2, 4])]


def test_large_jobs_take_turns_with_small_ones(monkeypatch):
    monkeypatch.setattr(batching, "BUDGET", 10)

    async def what(batcher, worker):
        tasks = await queued(batcher, worker, ("a", list(range(100))), ("a", [1000]), ("b", [2000]))
        worker.let.set()
        await asyncio.gather(*tasks)
        return worker.batches

    batches = run(what)
    assert batches[1:3] == [("b", [2000]), ("a", [*range(5), 1000])]  # half of the budget, and the small ones
    assert batches[3] == ("a", list(range(5, 15)))  # alone, all of it
    assert [item for key, items in batches[1:] if key == "a" for item in items if item < 1000] == list(range(100))


def test_a_batch_keeps_to_its_budget(monkeypatch):
    monkeypatch.setattr(batching, "BUDGET", 10)

    async def what(batcher, worker):
        tasks = await queued(batcher, worker, *(("a", [4]) for _ in range(7)), ("a", [50]), ("a", [4]))
        worker.let.set()
        await asyncio.gather(*tasks)
        return [items for _, items in worker.batches[1:]]

    assert run(what, cost=lambda key, item: item) == [[4, 4], [4, 4], [4, 4], [4, 4], [50]]


@pytest.mark.parametrize(
    ("large", "wanted"),
    [
        (9, [[2, 2], [9], [2, 2], [9], [2, 2], [9], [2, 2], [9]]),
        (4, [[2, 2, 2], [4], [2, 2, 2], [4], [2, 2], [4], [4]]),
    ],
)
def test_cheap_jobs_overtake_expensive_ones_that_are_done_all_the_same(monkeypatch, large, wanted):
    """Each batch has the longest waiting job, and cheap ones for the rest of the budget or half of it."""
    monkeypatch.setattr(batching, "BUDGET", 10)

    async def what(batcher, worker):
        tasks = await queued(batcher, worker, *(("a", [large]) for _ in range(4)), *(("b", [2]) for _ in range(8)))
        worker.let.set()
        await asyncio.gather(*tasks)
        return [items for _, items in worker.batches[1:]]

    assert run(what, cost=lambda key, item: item) == wanted


def test_clients_take_turns(monkeypatch):
    monkeypatch.setattr(batching, "BUDGET", 10)

    async def what(batcher, worker):
        tasks = await queued(batcher, worker)
        for client, items in [("greedy", [k]) for k in range(50)] + [("other", [100])]:
            tasks.append(asyncio.create_task(batcher.do("a", items, client)))
        await asyncio.sleep(0)
        worker.let.set()
        await asyncio.gather(*tasks)
        return worker.batches[1]

    key, items = run(what)
    assert items[:3] == [0, 1, 100]


def test_a_failing_job_does_not_fail_others():
    async def what(batcher, worker):
        tasks = await queued(batcher, worker, ("a", [1]), ("a", [2, -1]), ("a", [3]))
        worker.let.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = run(what)
    assert [answers[k] for k in (0, 1, 3)] == [[0], [2], [6]]
    assert isinstance(answers[2], ValueError)


def test_a_failed_job_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(batching, "BUDGET", 2)

    async def what(batcher, worker):
        with pytest.raises(ValueError, match="minus one"):
            await batcher.do("a", [-1, *range(50)])
        assert await batcher.do("a", [7]) == [14] and batcher.waiting == 0
        return worker.batches

    assert run(what) == [("a", [-1, 0]), ("a", [7])]


def test_a_cancelled_job_is_not_done():
    async def what(batcher, worker):
        tasks = await queued(batcher, worker, ("a", [1]), ("a", [2]), ("a", [3]))
        tasks[2].cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 2
        tasks[0].cancel()  # a running batch is finished and its result dropped
        worker.let.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [answers[k] for k in (1, 3)] == [[2], [6]]
        assert all(isinstance(answers[k], asyncio.CancelledError) for k in (0, 2))
        return worker.batches

    assert run(what)[1:] == [("a", [1, 3])]


def test_a_full_queue_refuses_jobs_and_says_when_to_try_again():
    async def what(batcher, worker):
        tasks = await queued(batcher, worker, ("a", [1, 2, 3]))
        with pytest.raises(Busy) as busy:
            await batcher.do("a", [4, 5])
        assert 1 <= busy.value.seconds <= batching.LONGEST_ADVICE
        tasks.append(asyncio.create_task(batcher.do("a", [6])))  # there is room for one
        worker.let.set()
        assert await asyncio.gather(*tasks) == [[0], [2, 4, 6], [12]]
        assert await batcher.do("a", [7, 8, 9, 10]) == [14, 16, 18, 20]

    run(what, queue=4)


def test_the_advice_estimates_the_time_that_the_queue_takes():
    async def what(batcher, worker):
        worker.seconds_per_item = 0.02
        await batcher.do("a", range(10))
        tasks = await queued(batcher, worker, ("a", range(200)))
        assert 4 <= batcher.advice() <= 20  # 200 items of 0.02 s, on a machine that may be slow
        tasks.append(asyncio.create_task(batcher.do("b", range(10**5))))
        await asyncio.sleep(0)
        assert batcher.advice() == batching.LONGEST_ADVICE
        worker.seconds_per_item = 0.0
        worker.let.set()
        for task in tasks:
            task.cancel()

    run(what)


def test_a_queue_that_takes_too_long_refuses_jobs():
    async def what(batcher, worker):
        worker.seconds_per_item = 0.02
        await batcher.do("a", range(10))
        tasks = await queued(batcher, worker, ("a", range(100)))
        with pytest.raises(Busy):
            await batcher.do("a", [1])
        worker.seconds_per_item = 0.0
        worker.let.set()
        await asyncio.gather(*tasks)
        return await batcher.do("a", [4])

    assert run(what, seconds=0.5) == [8]


def test_missing_results_are_an_error():
    async def main():
        async with Batcher(lambda key, items: items[1:], lambda *_: 1, 10, 60.0, prepare=lambda: None) as batcher:
            with pytest.raises(RuntimeError, match="1 results for 2 items"):
                await batcher.do("a", [1, 2])

    completed(main())
