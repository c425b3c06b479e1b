"""`jacana-torch serve` as a process: how it starts, what it prints, how it stops."""

from __future__ import annotations

import re
import signal
import socket
import sys
from urllib.parse import urlsplit

import pytest
from commands import started
from serving import Client
from variants import variants

pytest.importorskip("starlette", reason="the extra serve is not installed")


@pytest.fixture
def command(model):
    """Start the command: its process, a client for the address that it prints, its first lines on stderr."""
    processes = []

    def start(*options: str):
        process = started("serve", "--port", "0", "--model", model, *options)
        processes.append(process)
        said = ""
        while "http://" not in said:
            line = process.stderr.readline().decode()
            assert line, said
            said += line
        where = urlsplit(re.search(r"http://\S+", said)[0])
        return process, Client(where.hostname, where.port), said

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("stop", variants([signal.SIGTERM, signal.SIGINT]))
def test_a_signal_stops_it_with_exit_code_0(command, stop):
    process, client, said = command("--max-tokens", "3")
    assert "tiny at http://127.0.0.1:" in said and "nothing is encrypted" not in said
    kept = client.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert kept.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert client.post("/align", {"source": "a b c d", "target": "a"}).status == 413
    process.send_signal(stop)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_it_warns_if_other_machines_can_connect(command):
    _, client, said = command("--host", "0.0.0.0")
    assert "0.0.0.0 is not this machine alone" in said and client.get("/healthz").status == 200


def test_a_token_and_other_hosts(command, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("a-secret-of-a-test\n")
    _, client, said = command("--token-file", str(secret), "--allow-host", "align.example")
    assert "a-secret" not in said and client.get("/").status == 401
    allowed = {"Authorization": "Bearer a-secret-of-a-test"}
    for host, status in (("align.example:80", 200), ("localhost", 200), ("evil.example", 403)):
        assert client.request("GET", "/", headers={**allowed, "Host": host}).status == status


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "is not a port"),
        (["--port", "-1"], "is not a port"),
        (["--host", "no such host"], "cannot listen on no such host:8765 ("),
        (["--max-tokens", "0"], "not a whole number above 0"),
        (["--max-queue", "5"], "a queue of 5 cells has no room for a request of 5000000"),
        (["--rate", "0"], "'0' is not a number above 0"),
        (["--rate", "many"], "'many' is not a number above 0"),
        (["--token-file", "no_such_file"], "no_such_file: cannot read a token"),
        (["--allow-host", " "], "is not the name of a host"),
        (["--port", "0", "--model", "no_such"], "there is no model 'no_such'"),
        (["--port", "0", "--model", "bag_of_words", "bag_of_words"], "two models are called bag_of_words"),
    ],
)
def test_mistakes_are_reported_before_it_starts(cli, options, message):
    code, out, err = cli("serve", *options)
    assert (code, out) == (2, "") and message in err and "Traceback" not in err


def test_a_port_that_is_taken(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = cli("serve", "--port", str(port))
    assert code == 2 and f"cannot listen on 127.0.0.1:{port} (" in err and "--port" in err


def test_without_the_extra_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = cli("serve")
    assert code == 2 and "serving needs uvicorn: pip install 'jacana-torch[serve]'" in err
