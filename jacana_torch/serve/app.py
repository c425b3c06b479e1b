"""The web application: models and limits in, an ASGI application out.

The page and its files are for people, the rest is JSON. What comes in is data and never markup: answers are JSON,
the page puts it into the document as text, and the headers forbid browsers to run
anything but the page's own files.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import JacanaError
from ..version import __version__
from .batching import Batcher, Busy
from .files import page_files
from .limits import Limits
from .openapi import described
from .requests import Asked, Refused, align_request, explain_request
from .work import Models, cost

log = logging.getLogger(__name__)

Parse = Callable[[bytes, Models, Limits], Asked]

SOON = 8192  # bytes of a body that are checked and tokenised at once; for more, other requests are not held up
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)  # fmt: skip


def application(models: Models, limits: Limits | None = None) -> ASGIApp:
    """An ASGI application that answers with these models."""
    desk = _Desk(models, limits or Limits())
    routes = [
        Route("/align", desk.align, methods=["POST"]),
        Route("/explain", desk.explain, methods=["POST"]),
        Route("/models", desk.models, methods=["GET"]),
        Route("/healthz", desk.health, methods=["GET"]),
        Route("/openapi.json", desk.openapi, methods=["GET"]),
        *(Route(path, _file(content, media), methods=["GET"]) for path, media, content in page_files()),
    ]
    told: dict[Any, Callable] = {
        Refused: _refused,
        Busy: _busy,
        JacanaError: _mistaken,
        HTTPException: _http,
        Exception: _broken,
    }
    app = Starlette(routes=routes, exception_handlers=told, lifespan=desk.open)
    app.router.redirect_slashes = False
    return _Guarded(app)


class _Desk:
    """What the routes share."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models, self._limits = models, limits
        self._openapi = described(models, limits)
        self._batcher: Batcher

    @asynccontextmanager
    async def open(self, app: Starlette) -> AsyncIterator[None]:
        async with Batcher(self._models, cost, self._limits.queue, prepare=_one_thread) as self._batcher:
            yield

    async def align(self, request: Request) -> Response:
        asked, answers = await self._answered(request, align_request)
        head = json.dumps({"model": asked.question.model})
        return _json(f'{head[:-1]}, "alignments": [{", ".join(answers)}]}}')

    async def explain(self, request: Request) -> Response:
        asked, (answer,) = await self._answered(request, explain_request)
        return _json({"model": asked.question.model, **answer})

    async def models(self, request: Request) -> Response:
        return _json({"models": self._models.listed(), "limits": vars(self._limits)})

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "version": __version__, "waiting": self._batcher.waiting})

    async def openapi(self, request: Request) -> Response:
        return _json(self._openapi)

    async def _answered(self, request: Request, parse: Parse) -> tuple[Asked, list[Any]]:
        """What was asked, and the answers; a client that hangs up leaves the queue."""
        body = await self._body(request)
        prompt = len(body) <= SOON
        asked = (
            parse(body, self._models, self._limits)
            if prompt
            else await asyncio.to_thread(parse, body, self._models, self._limits)
        )
        answers = asyncio.ensure_future(self._batcher.do(asked.question, asked.pairs))
        gone = asyncio.ensure_future(request.receive())  # after the body, there is nothing but the end to receive
        try:
            seconds = self._limits.seconds
            await asyncio.wait({answers, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answers.done():
                return asked, answers.result()
            if gone.done():
                raise ClientDisconnect
            raise Busy(self._batcher.advice())
        finally:
            answers.cancel()
            gone.cancel()

    async def _body(self, request: Request) -> bytes:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":  # which no page of another site can send unasked
            raise Refused(415, f"the content type should be application/json and is {media or 'not given'}")
        most = self._limits.body
        too_large = Refused(413, f"the body is larger than the {most} bytes that one request may have")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise too_large
        try:
            return await asyncio.wait_for(_read(request, most, too_large), self._limits.patience)
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, f"the body had not come after {self._limits.patience:g} s") from None


async def _read(request: Request, most: int, too_large: Refused) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_large
    return bytes(body)


def _one_thread() -> None:
    """Lattices are small: a second thread would wait more than it works. Threads have settings of their own."""
    import torch

    torch.set_num_threads(1)


def _file(content: bytes, media: str) -> Callable:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    return answer


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    own = {"cache-control": "no-store", **(headers or {})}
    return Response(text.encode(), status, own, "application/json")


def _told(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": {"status": status, "message": message}}, status, headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    # The rest of a body that came too slowly is not waited for.
    return _told(error.status, error.message, {"connection": "close"} if error.status == 408 else None)


async def _busy(request: Request, error: Exception) -> Response:
    assert isinstance(error, Busy)
    message = f"there is more to do than can be done now: try again in {error.seconds} s"
    return _told(503, message, {"retry-after": str(error.seconds)})


async def _mistaken(request: Request, error: Exception) -> Response:
    return _told(422, str(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    told = {
        404: f"there is nothing at {path[:80]}: see /docs",
        405: f"{path} does not take {request.method}: see /docs",
    }
    return _told(error.status_code, told.get(error.status_code, error.detail), dict(error.headers or {}))


async def _broken(request: Request, error: Exception) -> Response:
    return _told(500, "something went wrong here, and it is not your fault: the server's log says more")


class _Guarded:
    """Every answer has the headers that protect browsers; a client that is gone is nobody's error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        with suppress(ClientDisconnect):
            await self._app(scope, receive, guarded)
