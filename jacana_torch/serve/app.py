"""The web application: an ASGI application around models.

User input is data and never markup: answers are JSON, the page inserts them as text, and the headers forbid
browsers to run anything but the page's own files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ..errors import JacanaError
from ..version import __version__
from . import Busy, Limits, Refused
from .access import CHALLENGE, Access, Unknown, network
from .desk import OFF_LOOP, Desk
from .heavy import LIGHT, Failed, Heavy
from .openapi import description
from .work import Models

BODIES = 64  # times the limit of a body: what all bodies may take at a time
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


PAGES = frozenset(path for path, *_ in FILES)


def application(
    models: Models, limits: Limits | None = None, access: Access | None = None, heavy: Sequence[str] | None = None
) -> Application:
    """Make the ASGI application that serves these models.

    `heavy` is the command of a process with the same models and limits, which answers heavy requests (`worker`).
    Without it, they take turns with the others in this process.
    """
    endpoints = _Endpoints(models, limits or Limits(), Heavy(heavy) if heavy else None)
    routes = [
        Route("/align", endpoints.align, methods=["POST"]),
        Route("/explain", endpoints.explain, methods=["POST"]),
        Route("/models", endpoints.models, methods=["GET"]),
        Route("/healthz", endpoints.health, methods=["GET"]),
        Route("/openapi.json", endpoints.openapi, methods=["GET"]),
    ]
    for path, media, package, name in FILES:
        routes.append(Route(path, _file(files(package).joinpath(name).read_bytes(), media), methods=["GET"]))
    handled = (Refused, JacanaError, HTTPException, Failed, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, _failure), lifespan=endpoints.open)
    app.router.redirect_slashes = False
    return Application(app, access or Access(hosts=None), endpoints)


class Application:
    """An ASGI application that answers those who may ask, protects browsers and can be told to stop."""

    def __init__(self, app: Starlette, access: Access, endpoints: _Endpoints) -> None:
        self._app, self._access, self._endpoints = app, access, endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, add the headers that protect browsers, and ignore clients that disconnect."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        if scope["type"] == "http":
            try:
                self._access.check(_client(scope), scope["headers"], scope["path"] in PAGES)
            except Refused as refused:
                await (await _failure(None, refused))(scope, receive, send_with_headers)
                return
        with suppress(ClientDisconnect):
            await self._app(scope, receive, send_with_headers)

    def stop(self) -> None:
        """Accept no more requests. Those that were accepted are answered, if that takes no longer than `grace`."""
        self._endpoints.stop()


class _Endpoints:
    """The endpoints of the API, and the desks that they share."""

    def __init__(self, models: Models, limits: Limits, heavy: Heavy | None) -> None:
        self._models, self._limits, self._heavy = models, limits, heavy
        self._description = description(models, limits)
        self._desk: Desk
        self._bodies = 0  # bytes that all requests hold
        self._answers: set[asyncio.Task[bytes]] = set()
        self._stopping = False

    @asynccontextmanager
    async def open(self, app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            self._desk = await stack.enter_async_context(Desk(self._models, self._limits))
            if self._heavy is not None:
                await stack.enter_async_context(self._heavy)
            yield

    def stop(self) -> None:
        self._stopping = True
        asyncio.get_running_loop().call_later(self._limits.grace, self._give_up)

    def _give_up(self) -> None:
        for task in self._answers:
            task.cancel()

    async def align(self, request: Request) -> Response:
        return await self._answered(request, "align")

    async def explain(self, request: Request) -> Response:
        return await self._answered(request, "explain")

    async def models(self, request: Request) -> Response:
        return _json({"models": self._models.listed(), "limits": vars(self._limits)})

    async def health(self, request: Request) -> Response:
        lanes = {"light": self._desk.waiting()}
        if self._heavy is not None:
            lanes["heavy"] = self._heavy.waiting()
        status = "stopping" if self._stopping else "ok"
        waiting = sum(lane["pairs"] for lane in lanes.values())
        return _json({"status": status, "version": __version__, "waiting": waiting, "lanes": lanes})

    async def openapi(self, request: Request) -> Response:
        return _json(self._description)

    async def _answered(self, request: Request, kind: str) -> Response:
        """Wait for the answer to a request. A client that disconnects leaves the queue."""
        if self._stopping:
            raise _stopping()
        body = bytearray()
        try:
            await self._read(request, body)
            answer = asyncio.create_task(self._answer(kind, bytes(body), _client(request.scope)))
            gone = asyncio.ensure_future(request.receive())  # after the body, only a disconnect can be received
            self._answers.add(answer)
            try:
                await asyncio.wait(
                    (answer, gone), timeout=self._limits.seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if answer.cancelled():
                    raise _stopping()
                if answer.done():
                    return _json(answer.result())
                if gone.done():
                    raise ClientDisconnect
                raise Busy(self._desk.advice())
            finally:
                self._answers.remove(answer)
                answer.cancel()
                gone.cancel()
        finally:
            self._bodies -= len(body)

    async def _answer(self, kind: str, body: bytes, client: str) -> bytes:
        """Answer light requests here, and heavy ones in the other process; large bodies are heavy unread."""
        if self._heavy is not None and len(body) > OFF_LOOP:
            return await self._heavy.answer(kind, body, client)
        asked = await self._desk.parsed(kind, body)
        if self._heavy is not None and asked.cost > LIGHT:
            return await self._heavy.answer(kind, body, client)
        return await self._desk.answer(asked, client)

    async def _read(self, request: Request, body: bytearray) -> None:
        """Add the bytes of a request's body, and count them among those of all requests."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":  # a page of another site cannot send this without asking first
            raise Refused(415, f"the content type should be application/json and is {media or 'missing'}")
        most = self._limits.body
        too_large = Refused(413, f"the body is larger than {most} bytes, the limit of a request")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise too_large

        async def read() -> None:
            async for chunk in request.stream():
                body.extend(chunk)
                self._bodies += len(chunk)
                if len(body) > most:
                    raise too_large
                if self._bodies > BODIES * most:
                    raise Busy(1)

        try:
            await asyncio.wait_for(read(), self._limits.patience)
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, f"the body did not arrive within {self._limits.patience:g} s") from None


def _client(scope: Scope) -> str:
    """Return what counts as one client."""
    return network(scope["client"][0]) if scope.get("client") else ""


def _stopping() -> Refused:
    return Refused(503, "the server is stopping: try again in 5 s", 5)


def _file(content: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    return answer


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    if not isinstance(value, bytes):
        value = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    own = {"cache-control": "no-store", **(headers or {})}
    return Response(value, status, own, "application/json")


async def _failure(request: Request | None, error: Exception) -> Response:
    """Turn any exception into a JSON response with a status and a message."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        status, message = error.status, error.message
        if status == 408:
            headers = {"connection": "close"}  # do not wait for the rest of the body
        if error.seconds is not None:
            headers["retry-after"] = str(error.seconds)
    elif isinstance(error, JacanaError):
        status, message = 422, str(error)
    elif isinstance(error, HTTPException) and request is not None:
        status, headers, path = error.status_code, dict(error.headers or {}), request.url.path
        message = {
            404: f"there is nothing at {path[:80]}: see /docs",
            405: f"{path} does not accept {request.method}: see /docs",
        }.get(status, error.detail)
    else:
        status, message = 500, "internal error: the request is not at fault, and the server's log has details"
    answer = _json({"error": {"status": status, "message": message}}, status, headers)
    if isinstance(error, Unknown):
        for challenge in ("Bearer", CHALLENGE):
            answer.headers.append("www-authenticate", challenge)
    return answer
