"""The second process of a server: it answers heavy requests, so that light ones do not wait for them.

It reads requests from standard input and writes responses to standard output. A message is a line of JSON, its
head, and as many bytes as the head's `size` says. It ends when its input does, that is with the server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, BinaryIO

from ..errors import JacanaError
from . import Limits, Refused
from .desk import Desk
from .work import Models

log = logging.getLogger(__name__)

Head = dict[str, Any]
NICE = 10  # how far it stands back for the server, if CPUs are scarce


def message(head: Head, content: bytes = b"") -> bytes:
    """Write a message as bytes."""
    return json.dumps({**head, "size": len(content)}).encode() + b"\n" + content


def messages(source: BinaryIO) -> Iterator[tuple[Head, bytes]]:
    """Read messages until the input ends."""
    while line := source.readline():
        head = json.loads(line)
        content = source.read(head["size"])
        if len(content) < head["size"]:
            return
        yield head, content


def run(models: Models, limits: Limits) -> None:
    """Answer requests until standard input ends."""
    for stop in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to both processes; the server decides
        signal.signal(stop, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(NICE)
    with os.fdopen(os.dup(1), "wb", buffering=0) as sink:
        os.dup2(2, 1)  # whatever else is printed is no message
        asyncio.run(_Worker(models, limits, sys.stdin.buffer, sink).work())


class _Worker:
    def __init__(self, models: Models, limits: Limits, source: BinaryIO, sink: BinaryIO) -> None:
        self._desk = Desk(models, limits)
        self._source, self._sink = source, sink
        self._writing = ThreadPoolExecutor(1)  # writing waits for the server to read
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def work(self) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        async with self._desk:
            await asyncio.Event().wait()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for head, content in messages(self._source):
            loop.call_soon_threadsafe(self._received, head, content)
        os._exit(0)  # the server is gone: nobody waits for what is under way

    def _received(self, head: Head, content: bytes) -> None:
        number = head["id"]
        if head["do"] == "drop":
            if task := self._tasks.get(number):
                task.cancel()
            return
        task = asyncio.create_task(self._answer(head, content))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number))

    async def _answer(self, head: Head, content: bytes) -> None:
        number = head["id"]
        try:
            asked = await self._desk.parsed(head["do"], content)
            self._say({"id": number, "pairs": len(asked.pairs), "cost": asked.cost})
            answer = await self._desk.answer(asked, head["client"])
        except Refused as error:
            about = {"status": error.status, "message": error.message, "seconds": error.seconds}
            self._say({"id": number, **about})
        except JacanaError as error:
            self._say({"id": number, "status": 422, "message": str(error)})
        except Exception:
            log.exception("a heavy request failed")
            self._say({"id": number, "status": 500})
        else:
            self._say({"id": number, "status": 200}, answer)

    def _say(self, head: Mapping[str, Any], content: bytes = b"") -> None:
        self._writing.submit(self._write, message(dict(head), content))

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        try:
            while left:
                left = left[self._sink.write(left) :]
        except OSError:
            os._exit(0)
