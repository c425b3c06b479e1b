"""The web application of `annotate`: it shows pairs, and writes down what annotators ask for."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .. import corpora
from ..corpora._annotations import STATUSES
from ..errors import JacanaError
from ..serve import Limits, Refused
from ..serve.access import Access
from ..serve.answers import Application, Bodies, failure, json_answer
from ..serve.pages import page_routes
from ..util.json_values import parse_object, shown
from .refit import Refit
from .session import ALL, Session

FILES = {
    "/": ("jacana_torch.annotation", "page/index.html"),
    "/annotate.css": ("jacana_torch.annotation", "page/annotate.css"),
    "/editor.js": ("jacana_torch.annotation", "page/editor.js"),
    "/annotate.js": ("jacana_torch.annotation", "page/annotate.js"),
}
CHANGES = {"edit": ("cells",), "status": ("status", "note"), "undo": (), "redo": ()}


@dataclass(frozen=True)
class Settings:
    """What the page gets once, and the format of exports."""

    file: str
    guidelines: str
    to: str = "jsonl"


def application(
    session: Session, settings: Settings, refit: Refit, limits: Limits | None = None, access: Access | None = None
) -> Application:
    """Make the ASGI application of a session. `refit` fits models on what was annotated."""
    endpoints = _Endpoints(session, settings, refit, limits or Limits())
    pages = page_routes(FILES)
    routes = [
        *pages,
        Route("/state", endpoints.state, methods=["GET"]),
        Route("/pair", endpoints.pair, methods=["GET"]),
        Route("/change", endpoints.change, methods=["POST"]),
        Route("/fit", endpoints.fit, methods=["POST"]),
        Route("/export", endpoints.export, methods=["GET"]),
    ]
    handled = (Refused, JacanaError, HTTPException, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, failure), lifespan=endpoints.open)
    app.router.redirect_slashes = False
    return Application(app, access or Access(hosts=None), {page.path for page in pages}, refit.stop)


class _Endpoints:
    """The endpoints. Changes are made one at a time: nothing waits between the check of a change and its line."""

    def __init__(self, session: Session, settings: Settings, refit: Refit, limits: Limits) -> None:
        self._session, self._settings, self._refit = session, settings, refit
        self._bodies = Bodies(limits)

    @asynccontextmanager
    async def open(self, app: Starlette) -> AsyncIterator[None]:
        yield
        await self._refit.close()

    async def state(self, request: Request) -> Response:
        """What belongs to no pair: names, agreement, training."""
        by = self._name(request.query_params.get("by"))
        session = self._session
        return json_answer(
            {
                "file": self._settings.file,
                "guidelines": self._settings.guidelines,
                "to": self._settings.to,
                "by": by,
                "names": session.names,
                "comparing": session.comparing,
                "first": session.first(by),
                "progress": session.progress(by),
                "agreement": session.agreement(),
                "fit": self._refit.status(),
            }
        )

    async def pair(self, request: Request) -> Response:
        query = request.query_params
        show = query.get("show", ALL)
        if show not in (ALL, *STATUSES):
            raise Refused(422, f"show should be {ALL} or one of {', '.join(STATUSES)} and is {shown(show)}")
        by = self._name(query.get("by"))
        return json_answer(self._session.view(by, self._number(query.get("number")), show))

    async def change(self, request: Request) -> Response:
        """Write a change down, and answer with the pair as it is then."""
        body = await self._object(request)
        by, number, do = self._name(body.get("by")), self._number(body.get("pair")), body.get("do")
        version, show = body.get("version"), body.get("show", ALL)
        if not isinstance(do, str) or do not in CHANGES:
            raise Refused(422, f"do should be one of {', '.join(CHANGES)} and is {shown(do)}")
        if not isinstance(version, str) or show not in (ALL, *STATUSES):
            raise Refused(422, "version should be that of the pair as it was shown, and show as in /pair")
        event = {"do": do, **{key: body[key] for key in CHANGES[do] if key in body}}
        changed = self._session.act(by, version, number, event)
        if do == "status":
            await self._refit.perhaps(self._session)
        return json_answer(self._session.view(by, changed, show))

    async def fit(self, request: Request) -> Response:
        await self._object(request)
        await self._refit.start(self._session)
        return json_answer({"fit": self._refit.status()})

    async def export(self, request: Request) -> Response:
        """The accepted pairs as a file: those of one annotator, or without `by` what all agree on."""
        by = request.query_params.get("by")
        to = self._settings.to
        examples = list(self._session.settled(None if by is None else self._name(by)))
        stream = io.BytesIO()
        corpora.write(examples, stream, to)
        headers = {"content-disposition": f'attachment; filename="annotated.{to}"', "cache-control": "no-store"}
        return Response(stream.getvalue(), 200, headers, "application/octet-stream")

    async def _object(self, request: Request) -> dict[str, Any]:
        body = bytearray()
        try:
            await self._bodies.read(request, body)
            found: dict[str, Any] = parse_object(bytes(body).decode("utf-8"))
            return found
        except ValueError as error:
            raise Refused(400, f"the body is not a JSON object in UTF-8: {error}") from None
        finally:
            self._bodies.release(body)

    def _name(self, given: Any) -> str:
        if given is None:
            return self._session.names[0]
        if given not in self._session.names:
            raise Refused(422, f"there is no annotator {shown(given)}: there are {', '.join(self._session.names)}")
        return str(given)

    def _number(self, given: Any) -> int:
        most = len(self._session.examples)
        number = int(given) if isinstance(given, str) and given.isdecimal() and len(given) < 10 else given
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < most:
            raise Refused(422, f"a pair has a number from 0 to {most - 1}, and not {shown(given)}")
        return number
