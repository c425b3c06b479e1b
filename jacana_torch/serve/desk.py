"""Answers to the bodies of requests: parse, wait for a turn, ask a model, write JSON.

A server has a desk for light requests, and its second process one for heavy requests.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from ..errors import PairError
from . import Limits
from .batching import Batcher
from .requests import Asked, align_request, explain_request
from .work import Answer, Models, Question, cost, joined

PARSERS: Mapping[str, Callable[[bytes, Models, Limits], Asked]] = {
    "align": align_request,
    "explain": explain_request,
}
OFF_LOOP = 8192  # bytes; larger bodies are parsed in a thread, so that other requests are not held up


class Desk:
    """Enter it with `async with`. Then `parsed` checks a body, and `answer` waits for the answer."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models, self._limits = models, limits
        self._batcher: Batcher[Question, Any, Answer] = Batcher(
            models, cost, limits.queue, limits.seconds, prepare=_one_thread
        )
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Desk:
        await self._open.enter_async_context(self._batcher)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def parsed(self, kind: str, body: bytes) -> Asked:
        """Parse the body of a request to `align` or `explain`; raises `Refused`."""
        parse = PARSERS[kind]
        if len(body) <= OFF_LOOP:
            return parse(body, self._models, self._limits)
        return await asyncio.to_thread(parse, body, self._models, self._limits)

    async def answer(self, asked: Asked, client: str) -> bytes:
        """Return the body of the response; raises `Refused`. Cancelling the call leaves the queue."""
        lines: list[str] = []
        for number, found in enumerate(await self._batcher.do(asked.question, asked.pairs, client)):
            if isinstance(found, PairError):
                raise asked.refusal(number, found)
            lines.append(found)
        return joined(asked.question, lines)

    def advice(self) -> int:
        """Estimate the seconds until the queue is done."""
        return self._batcher.advice()

    def waiting(self) -> dict[str, int]:
        """Say what is in the queue, without what a model works on."""
        queue = self._batcher
        return {"requests": queue.waiting_jobs, "pairs": queue.waiting, "cost": queue.waiting_cost}


def _one_thread() -> None:
    """Restrict torch to one thread in the calling thread: grids are too small to be worth splitting."""
    if "torch" in sys.modules:  # most models do without
        sys.modules["torch"].set_num_threads(1)
