"""Connections that wait for their client, close early, or send what is no HTTP."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from asyncio.selector_events import _SelectorSocketTransport

import pytest
from serving import heard, served, until

from jacana_torch.model.model import Model
from jacana_torch.serve import answers, connections
from jacana_torch.types import Alignment

pytest.importorskip("starlette", reason="the extra serve is not installed")

HEAD = b"POST /align HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
PAIR = {"source": "a", "target": "b"}


class Slow:
    """An aligner that blocks while `let` is cleared."""

    requires: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.let = threading.Event()
        self.let.set()

    def align(self, pairs):
        assert self.let.wait(20)
        return [Alignment(len(pair.source), len(pair.target)) for pair in pairs]


@pytest.fixture
def slow():
    aligner = Slow()
    yield aligner
    aligner.let.set()


def everything(opened: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    answer = b""
    while piece := opened.recv(1 << 16):
        answer += piece
    return answer


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: ", HEAD + b"Content-Length: 9\r\n\r\n{"])
def test_connections_that_wait_for_their_client_make_room(slow, sent):
    with served({"slow": Model(slow)}, connections=20) as client:
        known = client.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert heard(known).startswith(b"HTTP/1.1 200 ")
        opened = [client.raw(sent) for _ in range(60)]
        begun = time.monotonic()
        assert all(client.get("/healthz").status == 200 for _ in range(20))
        assert time.monotonic() - begun < 5
        known.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # strangers go before it
        assert heard(known).startswith(b"HTTP/1.1 200 ")
        for one in (known, *opened):
            one.close()


def test_connections_with_a_request_in_work_stay(slow):
    with served({"slow": Model(slow)}, connections=4) as client:
        slow.let.clear()
        working = [client.sent("/align", PAIR) for _ in range(4)]
        time.sleep(0.2)
        with client.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as refused:
            answer = everything(refused)
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n") and b"retry-after: 1" in answer
        assert b"try again in 1 s" in answer
        slow.let.set()
        for one in working:
            assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
            one.close()
        until(lambda: client.get("/healthz").status == 200)


def test_large_answers_before_a_close_leave_no_traceback(slow, caplog):
    """A connection that closes itself after its last bytes is not closed again."""
    content = json.dumps({"pairs": [{"source": ["x" * 500] * 20, "target": ["y"]}] * 900}).encode()
    head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(content)
    with served({"slow": Model(slow)}, patience=0.6, body=20_000_000) as client:
        with client.raw(head + content) as opened:
            time.sleep(0.3)  # the answer does not fit into the system's buffers
            answer = everything(opened)
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"}]}") and len(answer) > len(content)
        time.sleep(0.8)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /align HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD.replace(b"json", b"xml") + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzz\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=[
        "TLS",
        "no host",
        "two hosts",
        "a negative length",
        "no chunk",
        "refused twice",
        "two lengths",
        "a long path",
    ],
)
def test_what_is_no_http_is_refused(slow, sent, caplog):
    caplog.set_level(logging.INFO)
    with served({"slow": Model(slow)}) as client:
        with client.raw(sent) as opened:
            answer = opened.recv(4096)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n") or b'"status": 4' in answer
        assert client.get("/healthz").status == 200
    assert "Traceback" not in caplog.text and "Invalid" not in caplog.text


def test_clients_that_are_gone_before_a_refusal_raise_no_error(slow, monkeypatch):
    """What a client sends is no HTTP, and the system resets the connection before the answer is complete."""
    ended, refuse, faults = _SelectorSocketTransport.write_eof, connections.Protocol._refuse, []

    def late(self) -> None:
        time.sleep(0.05)  # the reset arrives
        ended(self)

    def noted(self, *arguments) -> None:
        try:
            refuse(self, *arguments)
        except OSError as error:
            faults.append(error)
            raise

    monkeypatch.setattr(_SelectorSocketTransport, "write_eof", late)
    monkeypatch.setattr(connections.Protocol, "_refuse", noted)
    with served({"slow": Model(slow)}) as client:
        with client.raw(b"\x16\x03\r\n\r\n"):
            pass
        assert client.get("/healthz").status == 200
    assert faults == []


def test_bodies_take_bounded_memory(slow, monkeypatch):
    monkeypatch.setattr(answers, "BODIES", 2)
    with served({"slow": Model(slow)}, body=10_000, patience=1) as client:
        half = [client.raw(HEAD + b"Content-Length: 9999\r\n\r\n" + b" " * 9000) for _ in range(3)]
        until(lambda: client.post("/align", {"source": "a " * 50, "target": "b " * 4000}).status == 503)
        for one in half:
            one.close()
        until(lambda: client.post("/align", PAIR).status == 200)
