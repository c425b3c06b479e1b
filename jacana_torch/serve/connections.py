"""Connections that cannot starve others: those that wait for their client are limited in time and number."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MALFORMED = "this is not an HTTP/1.1 request"
LINGER = 1.0  # seconds that a refused client has to read why
FULL = "every connection of the server has a request that is worked on: try again in 1 s"


class Connections:
    """All connections of a server, at most `most`.

    A new connection takes the place of the one that has waited longest for its client: first of those that never
    sent a whole request, then of the others. Connections with a request in work keep their place.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._working: set[Protocol] = set()
        # In the order of waiting.
        self._strangers: dict[Protocol, None] = {}
        self._known: dict[Protocol, None] = {}
        self._leaving: set[Protocol] = set()

    def admit(self, protocol: Protocol) -> bool:
        """Add a connection if there is room, or if room can be made."""
        if len(self._working) + len(self._strangers) + len(self._known) >= self._most:
            longest = next(iter(self._strangers or self._known), None)
            if longest is None:
                return False
            self.remove(longest)
            longest.transport.abort()
        self._strangers[protocol] = None
        return True

    def waits(self, protocol: Protocol) -> None:
        """Note that nothing happens until the client sends or reads something."""
        if protocol in self._working:
            self._working.remove(protocol)
            self._known[protocol] = None

    def works(self, protocol: Protocol) -> None:
        """Note that the client waits for the server."""
        if protocol in self._strangers or protocol in self._known:
            self.remove(protocol)
            self._working.add(protocol)

    def leaves(self, protocol: Protocol) -> bool:
        """Note that a connection was refused; it may stay for a moment if few others do."""
        self.remove(protocol)
        if len(self._leaving) >= self._most:
            return False
        self._leaving.add(protocol)
        return True

    def remove(self, protocol: Protocol) -> None:
        self._leaving.discard(protocol)
        self._working.discard(protocol)
        self._strangers.pop(protocol, None)
        self._known.pop(protocol, None)


class Protocol(H11Protocol):
    """HTTP that drops clients that are slow to send a request's head, to send the rest of a request that is
    answered already, or to read a response. (The application limits the time for bodies.)"""

    patience: float
    all: Connections

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._sending: asyncio.TimerHandle | None = None  # the client sends a request
        self._reading: asyncio.TimerHandle | None = None  # the client reads a response
        self._closing: asyncio.TimerHandle | None = None  # the client is to close
        self._refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.all.admit(self):
            self._sending = self._abort_later()
        else:
            self._refuse(503, FULL, (b"retry-after", b"1"))

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        super().data_received(data)
        self._note()
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._sending)
            self._sending = None
        elif self._sending is None:  # a byte now and then does not extend the time
            self._sending = self._abort_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()
        if self.transport.is_closing():
            self._close_soon()  # unread data is lost then

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._close_soon()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self._reading or self._abort_later()
        self._note()

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reading)
        self._reading = None
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        self.all.remove(self)
        for timer in (self._sending, self._reading, self._closing):
            _cancel(timer)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Finish the request in work, if there is one, and close."""
        if self.cycle is not None and not self.cycle.response_complete and self.cycle.more_body:
            self.transport.abort()
        elif not self._refused and not self.transport.is_closing():
            super().shutdown()
            self._close_soon()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. The request in work, if there is one, is given up."""
        cycle, answering = self.cycle, False
        if cycle is not None and not cycle.response_complete:
            answering = cycle.response_started
            cycle.disconnected = True
            cycle.message_event.set()
        if answering:
            self.transport.close()
            self._close_soon()
        else:
            self._refuse(400, MALFORMED)

    def _refuse(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        """Send an answer that belongs to no request, and close when the client had time to read it."""
        self._refused = True
        content = json.dumps({"error": {"status": status, "message": text}}).encode()
        lines = [
            b"HTTP/1.1 %d %s" % (status, b"Bad Request" if status == 400 else b"Service Unavailable"),
            b"content-type: application/json",
            b"content-length: %d" % len(content),
            b"connection: close",
            *(name + b": " + value for name, value in headers),
        ]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + content)
        if self.all.leaves(self):  # to close with unread data would lose the answer
            with suppress(OSError):  # the client has reset the connection
                self.transport.write_eof()
            self._closing = self._closing or self.loop.call_later(LINGER, self.transport.abort)
        else:
            self.transport.close()
            self._close_soon()

    def _note(self) -> None:
        """Tell who waits for whom."""
        cycle = self.cycle
        answering = cycle is not None and not cycle.response_complete and not cycle.more_body
        if answering and self._reading is None:
            self.all.works(self)
        else:
            self.all.waits(self)

    def _close_soon(self) -> None:
        self._closing = self._closing or self._abort_later()

    def _abort_later(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.patience, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
