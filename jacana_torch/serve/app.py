"""The web application: an ASGI application around models.

User input is data and never markup: answers are JSON, the page inserts them as text, and the headers forbid
browsers to run anything but the page's own files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import JacanaError
from ..version import __version__
from . import Limits
from .batching import Batcher, Busy
from .openapi import description
from .requests import Asked, Refused, align_request, explain_request
from .work import Models, Question, cost

OFF_LOOP = 8192  # bytes; larger bodies are parsed in a thread, so that other requests are not held up
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)  # fmt: skip
FILES = (
    ("/", "text/html", "jacana_torch.serve", "page/index.html"),
    ("/docs", "text/html", "jacana_torch.serve", "page/docs.html"),
    ("/page.css", "text/css", "jacana_torch.serve", "page/page.css"),
    ("/page.js", "text/javascript", "jacana_torch.serve", "page/page.js"),
    ("/why.js", "text/javascript", "jacana_torch.serve", "page/why.js"),
    ("/docs.js", "text/javascript", "jacana_torch.serve", "page/docs.js"),
    ("/icon.svg", "image/svg+xml", "jacana_torch.serve", "page/icon.svg"),
    ("/view.css", "text/css", "jacana_torch.view", "assets/page.css"),  # shared with the pages of `view`
    ("/draw.js", "text/javascript", "jacana_torch.view", "assets/draw.js"),
)


def application(models: Models, limits: Limits | None = None) -> ASGIApp:
    """Make the ASGI application that serves these models."""
    endpoints = _Endpoints(models, limits or Limits())
    routes = [
        Route("/align", endpoints.align, methods=["POST"]),
        Route("/explain", endpoints.explain, methods=["POST"]),
        Route("/models", endpoints.models, methods=["GET"]),
        Route("/healthz", endpoints.health, methods=["GET"]),
        Route("/openapi.json", endpoints.openapi, methods=["GET"]),
    ]
    for path, media, package, name in FILES:
        routes.append(Route(path, _file(files(package).joinpath(name).read_bytes(), media), methods=["GET"]))
    handled = (Refused, Busy, JacanaError, HTTPException, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, _failure), lifespan=endpoints.open)
    app.router.redirect_slashes = False
    return _guarded(app)


class _Endpoints:
    """The endpoints of the API, and the batcher that they share."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self._models, self._limits = models, limits
        self._description = description(models, limits)
        self._batcher: Batcher[Question, Any, Any]

    @asynccontextmanager
    async def open(self, app: Starlette) -> AsyncIterator[None]:
        async with Batcher(self._models, cost, self._limits.queue, prepare=_one_thread) as self._batcher:
            yield

    async def align(self, request: Request) -> Response:
        asked, lines = await self._answers(request, align_request)
        head = json.dumps({"model": asked.question.model})
        return _json(f'{head[:-1]}, "alignments": [{", ".join(lines)}]}}')

    async def explain(self, request: Request) -> Response:
        asked, (explanation,) = await self._answers(request, explain_request)
        return _json({"model": asked.question.model, **explanation})

    async def models(self, request: Request) -> Response:
        return _json({"models": self._models.listed(), "limits": vars(self._limits)})

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "version": __version__, "waiting": self._batcher.waiting})

    async def openapi(self, request: Request) -> Response:
        return _json(self._description)

    async def _answers(
        self, request: Request, parse: Callable[[bytes, Models, Limits], Asked]
    ) -> tuple[Asked, list[Any]]:
        """Parse a request and wait for its answers. A client that disconnects leaves the queue."""
        body = await self._body(request)
        if len(body) <= OFF_LOOP:
            asked = parse(body, self._models, self._limits)
        else:
            asked = await asyncio.to_thread(parse, body, self._models, self._limits)
        answers = asyncio.ensure_future(self._batcher.do(asked.question, asked.pairs))
        gone = asyncio.ensure_future(request.receive())  # after the body, only a disconnect can be received
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
        if media != "application/json":  # a page of another site cannot send this without asking first
            raise Refused(415, f"the content type should be application/json and is {media or 'missing'}")
        most = self._limits.body
        too_large = Refused(413, f"the body is larger than {most} bytes, the limit of a request")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise too_large

        async def read() -> bytes:
            body = bytearray()
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large
            return bytes(body)

        try:
            return await asyncio.wait_for(read(), self._limits.patience)
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, f"the body did not arrive within {self._limits.patience:g} s") from None


def _one_thread() -> None:
    """Restrict torch to one thread in the calling thread: grids are too small to be worth splitting."""
    import torch

    torch.set_num_threads(1)


def _file(content: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    return answer


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    own = {"cache-control": "no-store", **(headers or {})}
    return Response(text.encode(), status, own, "application/json")


async def _failure(request: Request, error: Exception) -> Response:
    """Turn any exception into a JSON response with a status and a message."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        status, message = error.status, error.message
        if status == 408:
            headers = {"connection": "close"}  # do not wait for the rest of the body
    elif isinstance(error, Busy):
        status, message = 503, f"the server is busy: try again in {error.seconds} s"
        headers = {"retry-after": str(error.seconds)}
    elif isinstance(error, JacanaError):
        status, message = 422, str(error)
    elif isinstance(error, HTTPException):
        status, headers, path = error.status_code, dict(error.headers or {}), request.url.path
        message = {
            404: f"there is nothing at {path[:80]}: see /docs",
            405: f"{path} does not accept {request.method}: see /docs",
        }.get(status, error.detail)
    else:
        status, message = 500, "internal error: the request is not at fault, and the server's log has details"
    return _json({"error": {"status": status, "message": message}}, status, headers)


def _guarded(app: ASGIApp) -> ASGIApp:
    """Add the headers that protect browsers to every response, and ignore clients that disconnect."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        with suppress(ClientDisconnect):
            await app(scope, receive, send_with_headers)

    return guarded
