"""Who may ask a server: hosts, tokens, and requests per second."""

from __future__ import annotations

import base64

import pytest
from serving import served

from jacana_torch.errors import ConfigError
from jacana_torch.model.model import Model
from jacana_torch.serve import Refused, access
from jacana_torch.serve.access import Access, allowed_hosts, network, read_token
from jacana_torch.types import Alignment

pytest.importorskip("starlette", reason="the extra serve is not installed")

TOKEN = "0123456789abcdef-secret"
PAIR = {"source": "a", "target": "b"}


class Quick:
    requires: tuple[str, ...] = ()

    def align(self, pairs):
        return [Alignment(len(pair.source), len(pair.target)) for pair in pairs]


def status(given: Access, client: str = "1.2.3.4", page: bool = False, **headers: str) -> int:
    try:
        given.check(client, [(name.encode(), value.encode()) for name, value in headers.items()], page)
    except Refused as refused:
        return refused.status
    return 200


@pytest.mark.parametrize(
    ("host", "also", "good", "bad"),
    [
        ("127.0.0.1", [], ["localhost", "LOCALHOST:8765", "127.0.0.1:80", "[::1]:8765", "localhost."],
         ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.7", "", "[::2]"]),
        ("box", ["Align.Example.org", "b\u00fccher.example"],
         ["box:1", "align.example.org", "xn--bcher-kva.example", "localhost"], ["example.org", "box.example"]),
        ("0.0.0.0", [], ["192.168.0.7:8765", "[fe80::1]", "localhost"], ["evil.example", "1.2.3.4.example"]),
        ("::", [], ["10.0.0.1"], ["evil.example"]),
        ("127.0.0.1", ["*"], ["evil.example"], []),
    ],
)  # fmt: skip
def test_hosts(host, also, good, bad):
    given = Access(allowed_hosts(host, also))
    assert [name for name in good if status(given, host=name) != 200] == []
    assert [name for name in bad if status(given, host=name) != 403] == []
    assert status(given) == 200  # without a host it is no browser


def test_a_host_that_cannot_be():
    with pytest.raises(ConfigError, match="is not the name of a host"):
        allowed_hosts("localhost", [" "])


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


def test_tokens():
    given = Access(None, TOKEN)
    good = [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)]
    bad = ["", TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \u00e9", basic(""), "Basic !!",
           "Basic \u00e9", f"Digest {TOKEN}", basic(TOKEN)[:-4]]  # fmt: skip
    assert [header for header in good if status(given, authorization=header) != 200] == []
    assert [header for header in bad if status(given, authorization=header) != 401] == []
    assert status(given) == 401


@pytest.mark.parametrize(
    "content", ["", "short", "two words of sixteen", "line\nline of a token x", "\u00e9" * 20]
)
def test_tokens_that_are_none(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"token: a token is one line of 16"):
        read_token(str(path))
    path.write_text(f"{TOKEN}\n")
    assert read_token(str(path)) == TOKEN
    with pytest.raises(ConfigError, match="cannot read a token"):
        read_token(str(tmp_path))


def test_a_rate_is_per_client(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(access.time, "monotonic", lambda: now[0])
    given = Access(None, rate=4)
    assert [status(given) for _ in range(6)] == [200, 200, 200, 200, 429, 429]
    assert status(given, "5.6.7.8") == 200
    now[0] += 0.25
    assert [status(given) for _ in range(2)] == [200, 429]
    now[0] += 1000
    assert [status(given) for _ in range(5)] == [200] * 4 + [429]
    now[0] += 1.0
    assert [status(given, page=True) for _ in range(33)] == [200] * 32 + [429]  # files of the page count less
    slow = Access(None, rate=0.1)
    assert [status(slow) for _ in range(2)] == [200, 200]
    with pytest.raises(Refused) as refused:
        slow.check("1.2.3.4", [], False)
    assert refused.value.seconds == 10 and "0.1 requests per second" in refused.value.message


def test_few_clients_are_remembered(monkeypatch):
    monkeypatch.setattr(access, "REMEMBERED", 3)
    given = Access(None, rate=2)
    assert {status(given, str(k)) for k in range(50)} == {200}
    assert len(given._left) == 3


def test_what_counts_as_one_client():
    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:ffff::1") != network("2001:db8:1:3::4")
    assert network("::ffff:1.2.3.4") == network("1.2.3.4") != network("1.2.3.5")
    assert network("testclient") == "testclient"


def test_every_path_is_guarded():
    given = Access(allowed_hosts("127.0.0.1"), TOKEN, rate=50)
    allowed = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with served({"quick": Model(Quick())}, given) as client:
        for path in ("/", "/docs", "/page.js", "/models", "/healthz", "/openapi.json", "/nowhere"):
            answer = client.get(path)
            assert answer.status == 401 and "needs its token" in answer.message
            assert "Basic realm=" in answer.headers["www-authenticate"]
            assert answer.headers["content-security-policy"]
        assert client.post("/align", PAIR).status == 401
        assert client.post("/align", PAIR, allowed).status == 200
        answer = client.post("/align", PAIR, {**allowed, "Host": "evil.example"})
        assert answer.status == 403 and "the host 'evil.example': --allow-host" in answer.message
        answers = [client.post("/align", PAIR, allowed) for _ in range(100)]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused and all(answer.headers["retry-after"] == "1" for answer in refused)
