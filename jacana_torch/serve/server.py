"""Running the application with uvicorn: bind an address, serve until a signal, then finish pending requests."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import ConfigError
from . import Limits

IDLE = 15  # seconds that a connection may be idle between two requests
STOPS = (signal.SIGINT, signal.SIGTERM)


def listening(host: str, port: int) -> socket.socket:
    """Bind a socket to the address; port 0 picks any free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ConfigError(
            f"cannot listen on {host}:{port} ({why}): choose another --port (0 for any free one) or --host"
        ) from None


def url(listener: socket.socket) -> str:
    """The address for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def is_private(listener: socket.socket) -> bool:
    """Whether only this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def server(app: ASGIApp, limits: Limits) -> uvicorn.Server:
    """Make a server. Its `run(sockets=[...])` serves until SIGINT, SIGTERM or `should_exit`."""
    config = uvicorn.Config(
        app,
        http=type("Protocol", (_ImpatientProtocol,), {"patience": limits.patience}),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=max(1, round(limits.seconds)),
    )
    return _Server(config)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal. uvicorn would raise it again afterwards; here, stopping on request is success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {stop: signal.signal(stop, self.handle_exit) for stop in STOPS}
        try:
            yield
        finally:
            for stop, handler in before.items():
                signal.signal(stop, handler)


class _ImpatientProtocol(H11Protocol):
    """HTTP that drops clients that are slow to send a request's head, to send the rest of a request that is
    answered already, or to read a response. (The application limits the time for bodies.)"""

    patience: float

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._sending: asyncio.TimerHandle | None = None  # the client sends a request
        self._reading: asyncio.TimerHandle | None = None  # the client reads a response

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._sending = self._abort_later()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._sending)
            self._sending = None
        elif self._sending is None:  # a byte now and then does not extend the time
            self._sending = self._abort_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()  # unread data is lost then

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self._reading or self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reading)
        self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._sending)
        _cancel(self._reading)
        super().connection_lost(exc)

    def _abort_later(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.patience, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
