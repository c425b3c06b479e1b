"""The web application: an ASGI application around models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import JacanaError
from ..version import __version__
from . import Busy, Limits, Refused
from .access import Access
from .answers import Application, Bodies, client_of, failure, json_answer
from .desk import OFF_LOOP, Desk
from .heavy import LIGHT, Failed, Heavy
from .openapi import description
from .pages import page_routes
from .work import Models

FILES = {
    "/": ("jacana_torch.serve", "page/index.html"),
    "/docs": ("jacana_torch.serve", "page/docs.html"),
    "/page.css": ("jacana_torch.serve", "page/page.css"),
    "/page.js": ("jacana_torch.serve", "page/page.js"),
    "/why.js": ("jacana_torch.serve", "page/why.js"),
    "/docs.js": ("jacana_torch.serve", "page/docs.js"),
    "/matrix.js": ("jacana_torch.view", "assets/matrix.js"),
}


def application(
    models: Models, limits: Limits | None = None, access: Access | None = None, heavy: Sequence[str] | None = None
) -> Application:
    """Make the ASGI application that serves these models.

    `heavy` is the command of a process with the same models and limits, which answers heavy requests (`worker`).
    Without it, they take turns with the others in this process.
    """
    endpoints = _Endpoints(models, limits or Limits(), Heavy(heavy) if heavy else None)
    pages = page_routes(FILES)
    routes = [
        *pages,
        Route("/align", endpoints.align, methods=["POST"]),
        Route("/explain", endpoints.explain, methods=["POST"]),
        Route("/models", endpoints.models, methods=["GET"]),
        Route("/healthz", endpoints.health, methods=["GET"]),
        Route("/openapi.json", endpoints.openapi, methods=["GET"]),
    ]
    handled = (Refused, JacanaError, HTTPException, Failed, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, failure), lifespan=endpoints.open)
    app.router.redirect_slashes = False
    return Application(app, access or Access(hosts=None), {page.path for page in pages}, endpoints.stop)


class _Endpoints:
    """The endpoints of the API, and the desks that they share."""

    def __init__(self, models: Models, limits: Limits, heavy: Heavy | None) -> None:
        self._models, self._limits, self._heavy = models, limits, heavy
        self._description = description(models, limits)
        self._desk: Desk
        self._bodies = Bodies(limits)
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
        return json_answer({"models": self._models.listed(), "limits": vars(self._limits)})

    async def health(self, request: Request) -> Response:
        lanes = {"light": self._desk.waiting()}
        if self._heavy is not None:
            lanes["heavy"] = self._heavy.waiting()
        status = "stopping" if self._stopping else "ok"
        waiting = sum(lane["pairs"] for lane in lanes.values())
        return json_answer({"status": status, "version": __version__, "waiting": waiting, "lanes": lanes})

    async def openapi(self, request: Request) -> Response:
        return json_answer(self._description)

    async def _answered(self, request: Request, kind: str) -> Response:
        """Wait for the answer to a request. A client that disconnects leaves the queue."""
        if self._stopping:
            raise _stopping()
        body = bytearray()
        try:
            await self._bodies.read(request, body)
            answer = asyncio.create_task(self._answer(kind, bytes(body), client_of(request.scope)))
            gone = asyncio.ensure_future(request.receive())  # after the body, only a disconnect can be received
            self._answers.add(answer)
            try:
                await asyncio.wait(
                    (answer, gone), timeout=self._limits.seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if answer.cancelled():
                    raise _stopping()
                if answer.done():
                    return json_answer(answer.result())
                if gone.done():
                    raise ClientDisconnect
                raise Busy(self._desk.advice())
            finally:
                self._answers.remove(answer)
                answer.cancel()
                gone.cancel()
        finally:
            self._bodies.release(body)

    async def _answer(self, kind: str, body: bytes, client: str) -> bytes:
        """Answer light requests here, and heavy ones in the other process; large bodies are heavy unread."""
        if self._heavy is not None and len(body) > OFF_LOOP:
            return await self._heavy.answer(kind, body, client)
        asked = await self._desk.parsed(kind, body)
        if self._heavy is not None and asked.cost > LIGHT:
            return await self._heavy.answer(kind, body, client)
        return await self._desk.answer(asked, client)


def _stopping() -> Refused:
    return Refused(503, "the server is stopping: try again in 5 s", 5)
