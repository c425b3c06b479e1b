"""Clients that abuse a server, for serve_abuse.py: serve_abusers.py KIND HOST PORT SECONDS FILE AUTHORIZATION

Each function of KINDS is one kind of client. FILE holds requests and the answers that the library gives, and
AUTHORIZATION is a header or empty. Prints the tally as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

ELSEWHERE = "127.0.0.2"  # another client's address, on systems that have it
LONGEST = 60.0  # seconds without an answer, which is then wrong
JSON = "Content-Type: application/json\r\n"


@dataclass
class Tally:
    """`wrong` says what should not have been answered so."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Attack:
    """What the clients of a kind share."""

    host: str
    port: int
    seconds: float
    known: dict  # name -> list of {"path", "body", "wanted"}
    authorization: str  # a header, or nothing
    tally: Tally = field(default_factory=Tally)
    end: float = 0.0

    async def connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_connection(
                self.host, self.port, limit=1 << 20, local_addr=(ELSEWHERE, 0) if "." in self.host else None
            )
        except OSError as error:
            if error.errno is None or "assign" not in str(error):
                raise
            return await asyncio.open_connection(self.host, self.port, limit=1 << 20)

    def head(self, path: str, length: int, more: str = JSON, host: str = "localhost") -> bytes:
        return f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{more}Content-Length: {length}\r\n\r\n".encode()

    def allowed(self, path: str, length: int) -> bytes:
        """The head of a request with the server's token, if it has one."""
        return self.head(path, length, JSON + self.authorization)

    async def ask(self, sent: bytes, wanted: Callable[[int, bytes], str | None]) -> None:
        """Send a request over a connection of its own. `wanted` says what is wrong with the answer."""
        self.tally.requests += 1
        writer = None
        try:
            reader, writer = await self.connection()
            writer.write(sent)
            status, body = await asyncio.wait_for(answer(reader), LONGEST)
        except (OSError, asyncio.IncompleteReadError):
            self.tally.refused += 1  # the server has closed the connection
            return
        except asyncio.TimeoutError:
            self.tally.wrong.append(f"no answer in {LONGEST:g} s to {sent[:200]!r}")
            return
        finally:
            if writer is not None:
                writer.close()
        if status >= 400:
            self.tally.refused += 1
        else:
            self.tally.answered += 1
        if wrong := wanted(status, body):
            self.tally.wrong.append(f"{wrong}: {status} {body[:200]!r} to {sent[:200]!r}")
        elif status in (429, 503):
            await asyncio.sleep(0.2)  # sooner than it was told

    async def keep(self, what: Callable[[random.Random], Awaitable[None]], clients: int) -> None:
        """Let clients do something again and again until the end."""
        self.end = time.monotonic() + self.seconds

        async def client(number: int) -> None:
            draw = random.Random(number)
            while time.monotonic() < self.end:
                with suppress(OSError, asyncio.IncompleteReadError):
                    await what(draw)

        tasks = [asyncio.create_task(client(number)) for number in range(clients)]
        await asyncio.wait(tasks, timeout=self.seconds + 2)
        for task in tasks:
            task.cancel()

    def valid(self, name: str) -> Callable[[random.Random], Awaitable[None]]:
        """A client that sends heavy requests which are answered as the library does, or refused."""

        async def send(draw: random.Random) -> None:
            one = draw.choice(self.known[name])
            body = json.dumps(one["body"]).encode()
            await self.ask(self.head(one["path"], len(body)) + body, right(one["wanted"]))

        return send


def right(wanted: list) -> Callable[[int, bytes], str | None]:
    """Judge an answer: the library's links, or a refusal that says when to try again."""

    def judged(status: int, body: bytes) -> str | None:
        if status in (413, 429, 503):
            return None if b'"message"' in body else "a refusal without a message"
        if status != 200:
            return "neither answered nor refused"
        found = json.loads(body)
        if "alignments" in found:
            return None if [one["sure"] for one in found["alignments"]] == wanted else "other links"
        links = sorted([one["source"], one["target"]] for one in found["links"])
        return None if links == wanted[0] else "other links"

    return judged


def refused(*statuses: int) -> Callable[[int, bytes], str | None]:
    def judged(status: int, body: bytes) -> str | None:
        busy = status in (429, 503)
        return None if status in statuses or busy else f"not refused with {' or '.join(map(str, statuses))}"

    return judged


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return int(head.split()[1]), body


async def explanations(attack: Attack) -> None:
    """Six clients ask for explanations of 200 x 200 tokens."""
    await attack.keep(attack.valid("explain"), 6)


async def batches(attack: Attack) -> None:
    """Six clients send 1,000 pairs, or 40 pairs of 200 x 200 tokens."""
    await attack.keep(attack.valid("batch"), 6)


async def long(attack: Attack) -> None:
    """Three clients send 4,000 pairs, or one pair of 2,000 x 2,000 tokens."""
    await attack.keep(attack.valid("long"), 3)


async def huge(attack: Attack) -> None:
    """Requests above every limit, and bodies that never end."""
    words = " ".join(["word"] * 190)
    bodies = [
        {"pairs": [{"source": "a", "target": "b"}] * 5000},
        {"source": words * 12, "target": words * 12},
        {"pairs": [{"source": words[:900], "target": words[:900]}] * 500},
    ]

    async def send(draw: random.Random) -> None:
        if draw.random() < 0.3:
            await attack.ask(attack.head("/align", 10**9), refused(413))
        elif draw.random() < 0.3:
            await endless(attack)
        else:
            body = json.dumps(draw.choice(bodies)).encode()
            await attack.ask(attack.head("/align", len(body)) + body, refused(413))

    async def endless(attack: Attack) -> None:
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        head = (
            b"POST /align HTTP/1.1\r\nHost: localhost\r\n" + JSON.encode() + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        await attack.ask(head + chunk * 200, refused(413))

    await attack.keep(send, 8)


async def malformed(attack: Attack) -> None:
    """Bytes that are no HTTP or no JSON, half surrogates, NaN, deep nesting, other fields."""
    valid = json.dumps({"source": "the old dog sat", "target": "a dog was sitting"}).encode()
    bad = [
        b"", b"{", b"\xff\xfe", b"[" * 90_000, b"1" * 5000, b'{"source": NaN}', b"[1e999]",
        b'{"source": "\\ud800", "target": "a"}', b'{"source": 1e999, "target": []}',
        b'{"pairs": [{"source": "a", "target": "b"}, {"source": "\\udfff", "target": "b"}]}',
        b'{"a": ' * 3000 + b"1" + b"}" * 3000, b'{"source": "a", "target": "b", "symmetrise": "union"}',
        b'"' + b"x" * 100_000,
        b'{"source": "\x00", "target": 3}', b'{"source": ["a", ""], "target": "b"}',
    ]  # fmt: skip

    async def send(draw: random.Random) -> None:
        kind = draw.random()
        path = draw.choice(("/align", "/explain"))
        if kind < 0.4:
            body = draw.choice(bad)
            await attack.ask(attack.head(path, len(body)) + body, refused(400, 413, 422))
        elif kind < 0.7:  # a request with some bytes changed; it may still be valid
            sent = bytearray(attack.head(path, len(valid)) + valid + b"\r\n\r\n")
            for _ in range(draw.randrange(1, 5)):
                sent[draw.randrange(len(sent))] = draw.randrange(256)
            await attack.ask(bytes(sent), lambda status, _: "an error of the server" if status == 500 else None)
        else:
            sent = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 3000))) + b"\r\n\r\n"
            await attack.ask(sent, refused(400, 403, 404, 405))

    await attack.keep(send, 6)


async def greedy(attack: Attack) -> None:
    """64 connections that ask for small alignments, or for the largest light ones, without a pause."""
    asked = [*attack.known["small"], *attack.known["medium"]]

    async def stay(draw: random.Random) -> None:
        reader, writer = await attack.connection()
        try:
            while time.monotonic() < attack.end:
                one = draw.choice(asked)
                body = json.dumps(one["body"]).encode()
                attack.tally.requests += 1
                writer.write(attack.allowed(one["path"], len(body)) + body)
                status, found = await answer(reader)
                attack.tally.answered += status == 200
                attack.tally.refused += status != 200
                if wrong := right(one["wanted"])(status, found):
                    attack.tally.wrong.append(f"{wrong}: {status} {found[:200]!r}")
        finally:
            writer.close()

    await attack.keep(stay, 64)


async def idle(attack: Attack) -> None:
    """1,000 connections that send nothing, and connect again when they are closed."""

    async def wait(draw: random.Random) -> None:
        reader, writer = await attack.connection()
        attack.tally.requests += 1
        try:
            await reader.read(1)
            attack.tally.refused += 1
        finally:
            writer.close()
        await asyncio.sleep(draw.random())

    await attack.keep(wait, 1000)


async def slow(attack: Attack) -> None:
    """300 clients that send heads and bodies a byte at a time, or read answers so."""
    one = attack.known["explain"][0]
    large = json.dumps(one["body"]).encode()

    async def drip(draw: random.Random) -> None:
        reader, writer = await attack.connection()
        attack.tally.requests += 1
        body = json.dumps(attack.known["small"][0]["body"]).encode()
        try:
            if draw.random() < 0.05:
                writer.write(attack.head("/explain", len(large)) + large)
                while await reader.read(100):
                    await asyncio.sleep(0.3)
            else:
                sent = attack.head("/align", len(body)) + body
                start = draw.choice((1, len(sent) - len(body) + 2))
                writer.write(sent[:start])
                for byte in sent[start:]:
                    await asyncio.sleep(0.5)
                    writer.write(bytes([byte]))
                    await writer.drain()
            attack.tally.refused += 1
        finally:
            writer.close()

    await attack.keep(drip, 300)


async def leaving(attack: Attack) -> None:
    """Clients that disconnect in the middle of a request, large or small."""
    everything = [one for name in ("small", "explain", "batch") for one in attack.known[name]]

    async def leave(draw: random.Random) -> None:
        one = draw.choice(everything)
        body = json.dumps(one["body"]).encode()
        sent = attack.head(one["path"], len(body)) + body
        reader, writer = await attack.connection()
        attack.tally.requests += 1
        writer.write(sent[: draw.randrange(1, 2 * len(sent))])
        await asyncio.sleep(draw.random() * 0.1)
        writer.transport.abort()

    await attack.keep(leave, 12)


async def strangers(attack: Attack) -> None:
    """Names of other hosts, tokens that are wrong or missing, and requests that pages of other sites can send."""
    body = json.dumps(attack.known["small"][0]["body"]).encode()
    heads = [
        (attack.head("/align", len(body), host="evil.example"), 403),
        (attack.head("/align", len(body), host="127.0.0.1.evil.example:80"), 403),
        (attack.head("/align", len(body)), 401),
        (attack.head("/align", len(body), JSON + "Authorization: Bearer 0123456789abcdef\r\n"), 401),
        (attack.head("/align", len(body), JSON + "Authorization: Basic !!!\r\n"), 401),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 401),
    ]

    async def send(draw: random.Random) -> None:
        head, status = draw.choice(heads)
        await attack.ask(head + body, refused(status))

    await attack.keep(send, 4)


KINDS = {
    function.__name__: function
    for function in (explanations, batches, long, huge, malformed, greedy, idle, slow, leaving, strangers)
}


def main() -> None:
    kind, host, port, seconds, file, authorization = sys.argv[1:]
    if sys.platform != "win32":
        os.nice(15)  # real clients have computers of their own
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    known = json.loads(Path(file).read_text(encoding="utf-8"))
    attack = Attack(host, int(port), float(seconds), known, authorization)
    asyncio.run(KINDS[kind](attack))
    print(json.dumps(asdict(attack.tally)))


if __name__ == "__main__":
    main()
