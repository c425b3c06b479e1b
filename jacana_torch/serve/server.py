"""Running the application with uvicorn: bind an address, serve until a signal, then finish pending requests."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ..errors import ConfigError
from . import Limits
from .answers import Application
from .connections import Connections, Protocol

IDLE = 15  # seconds that a connection may be idle between two requests
WAITING = 1024  # connections that the system holds until they are accepted
AT_ONCE = 32  # connections that are accepted before anything else is done
SPARE = 64  # files besides connections: models, resources, pipes
STOPS = (signal.SIGINT, signal.SIGTERM)


def listening(host: str, port: int) -> socket.socket:
    """Bind a socket to the address; port 0 picks any free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=WAITING)
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


def address(listener: socket.socket) -> str:
    """The address that the socket is bound to."""
    return str(listener.getsockname()[0]).partition("%")[0]


def is_private(listener: socket.socket) -> bool:
    """Whether only this machine can connect."""
    return ipaddress.ip_address(address(listener)).is_loopback


def server(app: Application, limits: Limits) -> uvicorn.Server:
    """Make a server. Its `run(sockets=[...])` serves until SIGINT, SIGTERM or `should_exit`."""
    _allow_files(2 * limits.connections + SPARE)  # those that leave count too
    shared = {"patience": limits.patience, "all": Connections(limits.connections)}
    config = uvicorn.Config(
        app,
        http=type("ServedProtocol", (Protocol,), shared),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",  # bad requests would fill the log
        access_log=False,
        backlog=AT_ONCE,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=math.ceil(limits.grace) + 1,
    )
    return _Server(config, app)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes the number of connections that it accepts at once for the length of the queue."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and give what was accepted a few seconds; who does not read by then is dropped."""
        self._app.stop()
        seconds = (self.config.timeout_graceful_shutdown or 1) - 0.5
        drop = asyncio.get_running_loop().call_later(seconds, self._drop)
        await super().shutdown(sockets)
        drop.cancel()

    def _drop(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()

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


def _allow_files(needed: int) -> None:
    """Raise this process's limit of open files, of which every connection is one."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard < needed and hard != resource.RLIM_INFINITY:
        raise ConfigError(
            f"{needed} open files are needed for the connections, and this process may have {hard}: "
            "raise the limit (ulimit -n), or use a smaller --max-connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
