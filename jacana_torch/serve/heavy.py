"""The server's end of the process that answers heavy requests (`worker`).

The process starts with the first heavy request, and again after it has died, perhaps for lack of memory: light
requests never notice.
"""

from __future__ import annotations

import asyncio
import json
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from . import Busy, Refused
from .worker import Head, message

LIGHT = 5_000  # cost; requests up to it are answered by the server itself, some hundredths of a second each
MOST = 64  # heavy requests that may wait
MOST_OF_A_CLIENT = 32
PAUSE = 5  # seconds between a process that cannot start and the next attempt


class Failed(Exception):
    """The process could not answer a request, and its log says why."""


@dataclass(eq=False)
class _Request:
    client: str
    answer: asyncio.Future[bytes]
    pairs: int = 1
    cost: int = LIGHT  # until the process has parsed it


class Heavy:
    """Answers heavy requests in a process of its own. Enter it with `async with`.

    `command` starts the process; it has the server's models and limits.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._died = -float("inf")
        self._requests: dict[int, _Request] = {}
        self._number = 0
        self._closed = False

    async def __aenter__(self) -> Heavy:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._closed = True
        if self._process is None or self._listening is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()  # it has nothing to save
        await self._listening

    async def answer(self, kind: str, body: bytes, client: str) -> bytes:
        """Return the body of the response; raises `Refused` and `Busy`. Cancelling the call gives it up."""
        clients = Counter(request.client for request in self._requests.values())
        if clients[client] >= MOST_OF_A_CLIENT:
            text = f"{clients[client]} large requests of this client wait: send the next after an answer"
            raise Refused(429, text, 1)
        if len(self._requests) >= MOST:
            raise Busy(1)
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._requests[number] = _Request(client, future)
        try:
            process = await self._running()
            self._send(process, {"id": number, "do": kind, "client": client}, body)
            return await future
        except asyncio.CancelledError:
            if self._process is not None:
                self._send(self._process, {"id": number, "do": "drop"})
            raise
        finally:
            del self._requests[number]

    def waiting(self) -> dict[str, int]:
        """Say what waits and what is worked on."""
        some = self._requests.values()
        return {
            "requests": len(some),
            "pairs": sum(one.pairs for one in some),
            "cost": sum(one.cost for one in some),
        }

    async def _running(self) -> Process:
        async with self._starting:
            if self._process is None:
                if time.monotonic() < self._died + PAUSE or self._closed:
                    raise _ended(PAUSE)
                try:
                    self._process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE)
                except OSError as error:
                    self._died = time.monotonic()
                    text = f"cannot start a process for large requests ({error}): try again in {PAUSE} s"
                    raise Refused(503, text, PAUSE) from None
                self._listening = asyncio.create_task(self._listen(self._process))
            return self._process

    def _send(self, process: Process, head: Head, content: bytes = b"") -> None:
        if process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(message(head, content))

    async def _listen(self, process: Process) -> None:
        """Pass answers on until the process ends."""
        assert process.stdout is not None
        answered = False
        with suppress(asyncio.IncompleteReadError, OSError):
            while line := await process.stdout.readline():
                head = json.loads(line)
                self._received(head, await process.stdout.readexactly(head["size"]))
                answered = True
        await process.wait()
        self._process = None
        if not answered:
            self._died = time.monotonic()
        for request in self._requests.values():
            if not request.answer.done():
                request.answer.set_exception(_ended(1 if answered else PAUSE))

    def _received(self, head: Head, content: bytes) -> None:
        request = self._requests.get(head["id"])
        if request is None or request.answer.done():
            return
        status = head.get("status")
        if status is None:
            request.pairs, request.cost = head["pairs"], head["cost"]
        elif status == 200:
            request.answer.set_result(content)
        elif status == 500:
            request.answer.set_exception(Failed("in the process for large requests"))
        else:
            request.answer.set_exception(Refused(status, head["message"], head.get("seconds")))


def _ended(seconds: int) -> Refused:
    return Refused(503, f"the process for large requests ended: try again in {seconds} s", seconds)
