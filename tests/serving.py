"""A server in this process, and clients that connect to its address."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

JSON = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


class Client(NamedTuple):
    host: str
    port: int

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = JSON) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            sent = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, sent, dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.request("GET", path, headers={})

    def post(self, path: str, body: Any, headers: Mapping[str, str] = JSON) -> Answer:
        return self.request("POST", path, body, headers)

    def raw(self, sent: bytes = b"") -> socket.socket:
        """Open a connection and send these bytes."""
        opened = socket.create_connection((self.host, self.port), timeout=20)
        opened.sendall(sent)
        return opened

    def sent(self, path: str, body: Any) -> socket.socket:
        """Open a connection and send this request."""
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return self.raw(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    def waiting(self) -> int:
        return self.get("/healthz").json["waiting"]


def heard(opened: socket.socket) -> bytes:
    """Read one whole response from a connection."""
    answer = b""
    while b"\r\n\r\n" not in answer or len(answer.split(b"\r\n\r\n", 1)[1]) < length_of(answer):
        piece = opened.recv(65536)
        assert piece, answer
        answer += piece
    return answer


def length_of(answer: bytes) -> int:
    found = re.search(rb"content-length: (\d+)", answer)
    assert found, answer
    return int(found[1])


def until(true: Any, seconds: float = 10.0) -> None:
    """Wait until `true()` holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.01)


@contextmanager
def served(models: Mapping[str, Any], access: Any = None, **limits: float) -> Iterator[Client]:
    """Serve models on a free port; stops at the end as after a signal, and waits for pending requests."""
    from jacana_torch.serve import Limits
    from jacana_torch.serve.app import application
    from jacana_torch.serve.server import listening, server, url
    from jacana_torch.serve.work import Models

    chosen = Limits(**limits)
    with listening("127.0.0.1", 0) as listener:
        where = urlsplit(url(listener))
        running = server(application(Models(models), chosen, access), chosen)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: running.started or not thread.is_alive())
        try:
            yield Client(str(where.hostname), int(where.port or 0))
        finally:
            running.should_exit = True
            thread.join(30)
            assert not thread.is_alive()
