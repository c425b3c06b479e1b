"""Running the application: an address in; served until told to stop, and everything under way finished first."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import ConfigError
from .limits import Limits

KEPT_ALIVE = 15  # seconds that a connection may be idle between two requests
STOPS = (signal.SIGINT, signal.SIGTERM)


def listening(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 is any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{host}:{port} cannot be served at ({why}): choose another --port (0 is any free one) or --host"
        ) from None


def url(listener: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def is_private(listener: socket.socket) -> bool:
    """Whether nobody but this machine reaches it."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def server(app: ASGIApp, limits: Limits) -> uvicorn.Server:
    """Its `run(sockets=[...])` serves until SIGINT, SIGTERM or `should_exit`, answering what was asked."""
    config = uvicorn.Config(
        app,
        http=_protocol(limits.patience),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=KEPT_ALIVE,
        timeout_graceful_shutdown=max(1, round(limits.seconds)),
    )
    return _Server(config)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises the signal again when it has stopped; for us, to stop when asked to is to succeed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {stop: signal.signal(stop, self.handle_exit) for stop in STOPS}
        try:
            yield
        finally:
            for stop, handler in before.items():
                signal.signal(stop, handler)


def _protocol(patience: float) -> type[H11Protocol]:
    return type("Patient", (_Patient,), {"patience": patience})


class _Patient(H11Protocol):
    """HTTP with clients that may take their time, but not ours: to send a request's head, the rest of a request
    that is answered already, or to take an answer. (The application gives bodies the same time.)"""

    patience: float

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._asking: asyncio.TimerHandle | None = None
        self._listening: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._asking = self._later()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            _stop(self._asking)
            self._asking = None
        elif self._asking is None:  # not set anew by each byte
            self._asking = self._later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._later()  # what it has not taken by then is lost

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._later()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._listening = self._listening or self._later()

    def resume_writing(self) -> None:
        super().resume_writing()
        _stop(self._listening)
        self._listening = None

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._asking)
        _stop(self._listening)
        super().connection_lost(exc)

    def _later(self) -> asyncio.TimerHandle:
        abort: Callable[[], None] = self.transport.abort
        return self.loop.call_later(self.patience, abort)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
