"""The server over sockets: its answers, its refusals, and clients that do not disturb each other."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from commands import WORDS, whole
from serving import JSON, heard, served, until
from variants import variants

from jacana_torch.errors import PairError
from jacana_torch.model import persist
from jacana_torch.model.model import Model
from jacana_torch.types import Alignment

pytest.importorskip("starlette", reason="the extra serve is not installed")

QUAINT = "caf\u00e9 \u201cquoted\u201d don't <b>&amp;</b> \u2028 end", "the caf\u00e9 is \U0001f600 </script>"
TEXTS = [("Red dogs, old house.", "The old house: red dogs!"), ("", "dog"), ("book", " "), ("x", "y"), QUAINT]
TEXTS += [(f"{WORDS[k]} {WORDS[k + 1]} {WORDS[k]}", f"{WORDS[k + 1]} {WORDS[k + 3]}") for k in range(12)]


class Slow:
    """An aligner that blocks while `let` is cleared, fails on "boom" and refuses "odd"."""

    requires: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.let, self.batches = threading.Event(), []
        self.let.set()

    def align(self, pairs):
        self.batches.append([str(pair.source) for pair in pairs])
        assert self.let.wait(20)
        if any("boom" in pair.source.tokens for pair in pairs):
            raise ZeroDivisionError("in a model")
        for number, one in enumerate(pairs, start=1):
            if "odd" in one.source.tokens:
                raise PairError("an odd pair", number)
        return [Alignment(len(pair.source), len(pair.target)) for pair in pairs]


@pytest.fixture(scope="module")
def client(model):
    with served({"tiny": persist.load(model), "bag": persist.load("bag_of_words")}, body=20_000) as client:
        yield client


@pytest.fixture
def slow():
    aligner = Slow()
    yield aligner
    aligner.let.set()


def pair(text: str) -> dict:
    return {"source": text, "target": "y"}


# Answers


def same(found: list[dict], wanted: list[dict]) -> bool:
    """Compare answers; the last digits of float32 probabilities depend on the other pairs of a batch."""
    return len(found) == len(wanted) and all(map(alike, found, wanted))


def alike(one: dict, other: dict) -> bool:
    numbers = [{**item.get("confidence", {}), "score": item.get("score", 0)} for item in (one, other)]
    rest = [{k: v for k, v in item.items() if k not in ("confidence", "score")} for item in (one, other)]
    return rest[0] == rest[1] and numbers[0] == pytest.approx(numbers[1], abs=2e-6)


def printed_by_align(cli, model, *options) -> list[dict]:
    lines = "".join(f"{source}\t{target}\n" for source, target in TEXTS)
    out = whole(cli("align", "--model", model, "--to", "jsonl", *options, stdin=lines))
    return [json.loads(line) for line in out.split("\n")[:-1]]


@pytest.mark.parametrize("symmetrize", variants([None, "union", "grow-diag-final-and", "backward"], 2))
@pytest.mark.parametrize("confidence", [True, False])
def test_answers_are_those_of_align(client, cli, model, symmetrize, confidence):
    options = ["--confidence"] * confidence + ([f"--symmetrize={symmetrize}"] if symmetrize else [])
    more = {"confidence": confidence, **({"symmetrize": symmetrize} if symmetrize else {})}
    texts = [{"source": source, "target": target} for source, target in TEXTS]
    answer = client.post("/align", {"pairs": texts, **more})
    assert answer.status == 200 and answer.json["model"] == "tiny"
    wanted = printed_by_align(cli, model, *options)
    assert same(answer.json["alignments"], wanted)
    for text, one in zip(texts, wanted, strict=True):
        assert same(client.post("/align", {**text, **more}).json["alignments"], [one])


def test_lists_of_tokens_are_not_tokenised(client):
    answer = client.post("/align", {"id": "a/1", "source": ["dog.", "x y"], "target": ["x y", "dog."]}).json
    assert answer["alignments"][0]["source"] == ["dog.", "x y"]
    assert answer["alignments"][0]["id"] == "a/1"


def test_another_model(client):
    body = {"source": "old red dog", "target": "dog old", "model": "bag"}
    assert client.post("/align", body).json["alignments"][0]["sure"] == [[0, 1], [2, 0]]


def test_concurrent_clients_get_their_own_answers(client, cli, model):
    wanted = dict(zip(TEXTS, printed_by_align(cli, model, "--confidence"), strict=True))

    def ask(k: int) -> bool:
        source, target = text = TEXTS[k % len(TEXTS)]
        answers = client.post("/align", {"source": source, "target": target}).json["alignments"]
        return same(answers, [wanted[text]])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(160)))


def near(found, wanted) -> bool:
    """Compare plain data; the last digits of numbers depend on the other pairs of a batch."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(near(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(near, found, wanted))
    return found == (pytest.approx(wanted, abs=2e-6) if isinstance(wanted, float) else wanted)


def test_explanations_are_the_models_own(client, model):
    source, target = "red dog house", "house red"
    loaded = persist.load(model)
    body = {"source": source, "target": target}
    answer = client.post("/explain", {**body, "top": 3}).json
    wanted = loaded.explain((source, target))
    assert near(answer["links"], [link.to_dict(3) for link in wanted.links()]) and answer["links"]
    assert answer["source"] == source.split() and answer["model"] == "tiny"
    unlinked = client.post("/explain", {**body, "link": [1, 1], "symmetrize": "union"}).json
    assert near(unlinked["links"], [loaded.explain((source, target), "union").link(1, 1).to_dict()])
    assert unlinked["symmetrize"] == "union" and not unlinked["links"][0]["linked"]


def test_the_rest_of_the_api(client):
    listed = client.get("/models").json
    tiny, bag = listed["models"]
    assert (tiny["name"], tiny["symmetrize"], tiny["explains"]) == ("tiny", "intersection", True)
    assert "grow-diag" in tiny["symmetrizers"] and (bag["symmetrizers"], bag["symmetrize"]) == ([], None)
    assert listed["limits"]["body"] == 20_000
    assert client.get("/healthz").json["status"] == "ok"
    described = client.get("/openapi.json").json
    assert set(described["paths"]) == {"/align", "/explain", "/models", "/healthz"}
    references = re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(described))
    for reference in references:
        place = described
        for step in reference.split("/"):
            place = place[step]
    assert len(references) > 10


def test_the_examples_of_the_description_work(client):
    described = client.get("/openapi.json").json
    tried = 0
    for path in ("/align", "/explain"):
        method = described["paths"][path]["post"]
        gives = method["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        schema = described["components"]["schemas"][gives.split("/")[-1]]
        for example in method["requestBody"]["content"]["application/json"]["examples"].values():
            answer = client.post(path, example["value"])
            assert answer.status == 200, answer.message
            assert set(schema["required"]) <= set(answer.json) <= set(schema["properties"])
            tried += 1
    assert tried == 4


# Refusals


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "message"),
    [
        ("POST", "/align", b"{", JSON, 400, "not JSON"),
        ("POST", "/align", {"source": 1, "target": "a"}, JSON, 422, "source should be"),
        ("POST", "/align", {"source": ["x"] * 3000, "target": "a"}, JSON, 413, "source has 3000 tokens"),
        ("POST", "/align", b"x" * 20_001, JSON, 413, "larger than 20000 bytes"),
        ("POST", "/align", {"source": "a", "target": "b"}, {}, 415, "application/json and is missing"),
        ("POST", "/align", b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "x-www-form"),
        ("POST", "/explain", {"source": "a", "target": "b", "link": [0, 9]}, JSON, 422, "out of range"),
        ("GET", "/align", None, {}, 405, "/align does not accept GET"),
        ("GET", "/page/../../x", None, {}, 404, "there is nothing at /page"),
        ("GET", "/index.html%00<script>", None, {}, 404, "nothing at"),
        ("POST", "/align/", {"source": "a", "target": "b"}, JSON, 404, "nothing at"),
    ],
)
def test_refusals_are_json_with_a_message(client, method, path, body, headers, status, message):
    answer = client.request(method, path, body, headers)
    assert answer.status == status and message in answer.message
    assert answer.json["error"]["status"] == status
    assert answer.headers["content-type"] == "application/json"


def test_a_body_of_unknown_length_is_cut_off(client):
    endless = (
        b"POST /align HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with client.raw(endless) as opened:
        for _ in range(10):
            opened.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
        assert opened.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_headers_restrict_browsers(client):
    for path in ("/", "/docs", "/page.js", "/draw.js", "/align", "/nowhere"):
        answer = client.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_other_hosts(client, path):
    answer = client.get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.body.decode()
    used = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert len(used) > 4 and all(client.get(one).status == 200 for one in used)
    assert not re.search(r"<script>|style=|\son\w+=", page)


# Clients do not disturb each other


def test_a_client_that_disconnects_leaves_the_queue(slow):
    with served({"slow": Model(slow)}) as client:
        slow.let.clear()
        first = client.sent("/align", pair("first"))
        until(lambda: slow.batches)
        gone, stays = client.sent("/align", pair("gone")), client.sent("/align", pair("stays"))
        until(lambda: client.waiting() == 2)
        gone.close()
        first.close()
        until(lambda: client.waiting() == 1)
        slow.let.set()
        assert stays.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert slow.batches == [["first"], ["stays"]]
        stays.close()


def test_a_failing_request_does_not_fail_others_in_its_batch(slow, caplog):
    with served({"slow": Model(slow)}) as client:
        slow.let.clear()
        busy = client.sent("/align", pair("busy"))
        until(lambda: slow.batches)
        others = [client.sent("/align", pair(text)) for text in ("one", "boom", "two")]
        until(lambda: client.waiting() == 3)
        slow.let.set()
        answers = [heard(one) for one in others]
        assert [answer[:13] for answer in answers] == [b"HTTP/1.1 200 ", b"HTTP/1.1 500 ", b"HTTP/1.1 200 "]
        assert b"internal error" in answers[1] and b"ZeroDivision" not in answers[1]
        assert "in a model" in caplog.text  # in the server's log
        for one in (busy, *others):
            one.close()


def test_a_pair_that_a_model_refuses_is_named_by_its_place_in_the_request(slow):
    with served({"slow": Model(slow)}) as client:
        slow.let.clear()
        busy = client.sent("/align", pair("busy"))
        until(lambda: slow.batches)
        other = client.sent("/align", pair("one"))
        odd = client.sent("/align", {"pairs": [pair("two"), pair("three"), pair("odd")]})
        until(lambda: client.waiting() == 4)
        slow.let.set()
        answer = heard(odd)
        assert answer.startswith(b"HTTP/1.1 422 ") and b'"pairs[2]: an odd pair"' in answer
        assert heard(other).startswith(b"HTTP/1.1 200 ")
        for one in (busy, other, odd):
            one.close()


def test_a_full_queue_says_when_to_try_again(slow):
    with served({"slow": Model(slow)}, queue=210, cost=210) as client:  # two pairs of 1 x 1 tokens
        slow.let.clear()
        opened = [client.sent("/align", pair("busy"))]
        until(lambda: slow.batches)
        opened.append(client.sent("/align", {"pairs": [pair("a"), pair("b")]}))
        until(lambda: client.waiting() == 2)
        answer = client.post("/align", pair("c"))
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert "try again in" in answer.message
        slow.let.set()
        assert all(one.recv(4096).startswith(b"HTTP/1.1 200 ") for one in opened)


def test_a_late_answer_is_a_503(slow):
    with served({"slow": Model(slow)}, seconds=0.3) as client:
        slow.let.clear()
        answer = client.post("/align", pair("a"))
        assert answer.status == 503 and "retry-after" in answer.headers
        slow.let.set()
        assert client.post("/align", pair("a")).status == 200


HEAD = b"POST /align HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "answer"),
    variants(
        [
            (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b""),
            (HEAD + b'{"source": ', b"HTTP/1.1 408 "),
            (HEAD.replace(b": 30", b": 9999999") + b"x", b"HTTP/1.1 413 "),
            (b"", b""),
            (HEAD, b"HTTP/1.1 408 "),
        ],
        always=3,
    ),
    ids=["half a head", "half a body", "a refused body", "silent", "no body"],
)
def test_slow_clients_are_dropped(slow, sent, answer):
    with served({"slow": Model(slow)}, patience=0.4) as client, client.raw(sent) as opened:
        begun, heard = time.monotonic(), b""
        while True:
            try:
                opened.sendall(b"x" if sent else b"")  # a byte now and then does not extend the time
                opened.settimeout(0.05)
                piece = opened.recv(4096)
            except TimeoutError:
                assert time.monotonic() - begun < 5
                continue
            except OSError:
                break
            if not piece:
                break
            heard += piece
        assert heard.startswith(answer) and (heard or not answer)
        assert (b"connection: close" in heard) == (b" 408 " in answer)
        assert 0.2 < time.monotonic() - begun < 4
        assert client.get("/healthz").status == 200


@pytest.mark.slow
def test_clients_that_do_not_read_are_dropped(slow):
    content = json.dumps({"pairs": [{"source": ["x" * 1000] * 10, "target": ["y"]}] * 800}).encode()
    with served({"slow": Model(slow)}, patience=1, body=20_000_000) as client:
        with client.raw(HEAD.replace(b": 30", f": {len(content)}".encode()) + content) as deaf:
            until(lambda: sum(map(len, slow.batches)) == 800)
            time.sleep(2.5)
            taken = 0
            with suppress(ConnectionResetError):
                while piece := deaf.recv(1 << 20):
                    taken += len(piece)
            assert taken < len(content)  # what had left the server by then, and no more
        assert client.get("/healthz").status == 200


def test_pending_requests_are_answered_before_the_server_stops(slow):
    with served({"slow": Model(slow)}) as client:
        slow.let.clear()
        opened = client.sent("/align", pair("under way"))
        until(lambda: slow.batches)
        waits = client.sent("/align", pair("waits"))
        idle = client.raw()
        until(lambda: client.waiting() == 1)
        threading.Timer(0.5, slow.let.set).start()
    assert opened.recv(4096).startswith(b"HTTP/1.1 200 ") and waits.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert idle.recv(10) == b""
    with pytest.raises(OSError):
        client.get("/healthz")
