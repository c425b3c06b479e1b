"""Fitting a model on what was annotated, in a process of its own: the page goes on meanwhile.

The process gets a task as a line of JSON on its standard input and writes proposals for all pairs to its standard
output. It ends when its input does, that is with the server. It always starts from the same model and trains on
all accepted pairs, so nothing but the journal decides what comes out.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..corpora._annotations import Annotations
from ..errors import JacanaError
from ..serve import Refused
from ..types import Alignment, Example, Sentence, SentencePair
from .proposals import Proposal, proposals
from .session import Session

NICE = 10  # how far it stands back for the server, if CPUs are scarce
LONGEST = 300  # characters of an error that the page shows
ENDING = ".model"


class Refit:
    """Fits a model when asked, or after every `every` pairs. `start` is the model to fine-tune, if there is one.

    The model is kept in `output`, in place of the one before.
    """

    def __init__(self, start: str | None, output: str, every: int | None = None) -> None:
        self._start, self._output, self._every = start, output, every
        self._process: Process | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._pairs = 0  # that the running one is fitted on
        self._left_out = 0  # of the one that was begun last: pairs that annotators disagree on
        self._last: tuple[str, int] | None = None
        self._tried = 0  # pairs of the last one that was begun
        self._error: str | None = None

    def resume(self, state: Annotations) -> None:
        """Go on from the model that a journal knows."""
        self._last = state.model
        self._tried = state.model[1] if state.model else 0

    def status(self) -> dict[str, Any]:
        return {
            "able": self._start is not None,
            "running": self._waiting is not None,
            "pairs": self._pairs if self._waiting is not None else self._last[1] if self._last else 0,
            "left_out": self._left_out,
            "error": self._error,
            "every": self._every,
        }

    async def perhaps(self, session: Session) -> None:
        """Start if enough pairs were accepted since the last time."""
        if self._every is None or self._start is None or self._waiting is not None:
            return
        if sum(1 for _ in session.settled(strict=False)) >= self._tried + self._every:
            await self.start(session)

    async def start(self, session: Session) -> None:
        if self._start is None:
            raise Refused(422, "there is no model to start from: name one with --model")
        if self._waiting is not None:
            raise Refused(409, "a model is being fitted already")
        done = [example for example in session.settled(strict=False) if example.gold is not None]
        if not done:
            raise Refused(422, "no pair is accepted yet, or annotators disagree on all: there is nothing to fit")
        self._pairs = self._tried = len(done)
        self._left_out, self._error = session.in_dispute(), None
        task = {
            "start": self._start,
            "output": self._output,
            "train": [
                [*_words(one), sorted(one.gold.sure), sorted(one.gold.possible)] for one in done if one.gold
            ],
            "pairs": [[*_words(one), *_links(one)] for one in session.examples],
        }
        self._waiting = asyncio.create_task(self._run(session, json.dumps(task).encode() + b"\n"))

    async def _run(self, session: Session, task: bytes) -> None:
        try:
            answer = await self._answer(task)
            if "proposals" in answer:
                found = [Proposal.of_list(one) for one in answer["proposals"]]
                session.fitted(self._output, self._pairs, found)
                self._last = (self._output, self._pairs)
            else:
                self._error = str(answer.get("error"))[:LONGEST]
        except (OSError, JacanaError, ValueError) as error:
            self._error = f"the model could not be fitted: {error}"[:LONGEST]
        finally:
            self._process = self._waiting = None

    async def _answer(self, task: bytes) -> dict[str, Any]:
        command = [sys.executable, "-m", __name__]
        self._process = process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):  # it has ended, and its output says why
            process.stdin.write(task)
            await process.stdin.drain()
        out = await process.stdout.read()
        await process.wait()
        lines = out.splitlines()
        if not lines:
            return {"error": f"the process that fits the model ended (exit code {process.returncode})"}
        answer = json.loads(lines[-1])
        return answer if isinstance(answer, dict) else {}

    def stop(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()  # it has nothing to save

    async def close(self) -> None:
        self.stop()
        if self._waiting is not None:
            self._waiting.cancel()
            with suppress(asyncio.CancelledError):
                await self._waiting


def _words(example: Example) -> list[list[str]]:
    return [list(example.pair.source.tokens), list(example.pair.target.tokens)]


def _links(example: Example) -> list[Any]:
    gold = example.gold
    return [None, None] if gold is None else [sorted(gold.sure), sorted(gold.possible)]


def _example(source: Sequence[str], target: Sequence[str], sure: Any, possible: Any) -> Example:
    pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)))
    if sure is None:
        return Example(pair)
    links = [frozenset((i, j) for i, j in some) for some in (sure, possible)]
    return Example(pair, Alignment(len(source), len(target), links[0], links[1]))


def fit(task: dict[str, Any]) -> list[Proposal]:
    """Fine-tune the model of a task on its annotated pairs, save it, and return its proposals for all pairs."""
    from ..train.api import train

    done = [_example(*one) for one in task["train"]]
    gold = [one.gold for one in done if one.gold is not None]
    model = train([one.pair for one in done], gold, start=task["start"], output=task["output"], overwrite=True)
    return proposals(model, [_example(*one) for one in task["pairs"]])


def _until_the_end_of_input() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(1)  # the server is gone: nobody waits for the model


def main() -> None:
    """Do the task that standard input gives."""
    for stop in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to both processes; the server decides
        signal.signal(stop, signal.SIG_IGN)
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(NICE)
    with os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(2, 1)  # whatever else is printed is no answer
        task = json.loads(sys.stdin.buffer.readline())
        threading.Thread(target=_until_the_end_of_input, daemon=True).start()
        try:
            answer: dict[str, Any] = {"proposals": [one.to_list() for one in fit(task)]}
        except JacanaError as error:
            answer = {"error": str(error)}
        sink.write(json.dumps(answer).encode() + b"\n")
    os._exit(0)  # the thread waits for the input


if __name__ == "__main__":
    main()
