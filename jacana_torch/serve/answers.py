"""What every server of this package answers with, and what is around every answer: access, headers and errors.

User input is data and never markup: answers are JSON, pages insert it as text, and the headers forbid browsers to
run anything but a page's own files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import JacanaError
from . import Busy, Limits, Refused
from .access import CHALLENGE, Access, Unknown, network

BODIES = 64  # times the limit of a body: what all bodies may take at a time
HEADERS = (
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)  # fmt: skip


class Application:
    """An ASGI application that answers those who may ask, protects browsers and can be told to stop.

    `pages` are the paths of the page's files. `stop` is called on a signal, and may end what is under way.
    """

    def __init__(self, app: ASGIApp, access: Access, pages: Collection[str], stop: Callable[[], None]) -> None:
        self._app, self._access, self._pages, self._stop = app, access, pages, stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, add the headers that protect browsers, and ignore clients that disconnect."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        if scope["type"] == "http":
            try:
                self._access.check(client_of(scope), scope["headers"], scope["path"] in self._pages)
            except Refused as refused:
                await (await failure(None, refused))(scope, receive, send_with_headers)
                return
        with suppress(ClientDisconnect):
            await self._app(scope, receive, send_with_headers)

    def stop(self) -> None:
        """Accept no more requests. Those that were accepted are answered, if that takes no longer than `grace`."""
        self._stop()


class Bodies:
    """The bodies that requests hold at the moment, which are limited in size, together and in time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = 0  # bytes

    async def read(self, request: Request, body: bytearray) -> None:
        """Add the bytes of a request's body. Whatever happens, `release` them afterwards."""
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
                self._held += len(chunk)
                if len(body) > most:
                    raise too_large
                if self._held > BODIES * most:
                    raise Busy(1)

        try:
            await asyncio.wait_for(read(), self._limits.patience)
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, f"the body did not arrive within {self._limits.patience:g} s") from None

    def release(self, body: bytearray) -> None:
        self._held -= len(body)


def client_of(scope: Scope) -> str:
    """Return what counts as one client."""
    return network(scope["client"][0]) if scope.get("client") else ""


def file_answer(content: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    return answer


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    if not isinstance(value, bytes):
        value = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    own = {"cache-control": "no-store", **(headers or {})}
    return Response(value, status, own, "application/json")


async def failure(request: Request | None, error: Exception) -> Response:
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
    answer = json_answer({"error": {"status": status, "message": message}}, status, headers)
    if isinstance(error, Unknown):
        for challenge in ("Bearer", CHALLENGE):
            answer.headers.append("www-authenticate", challenge)
    return answer
