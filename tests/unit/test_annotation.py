"""Annotation: the order of pairs, what annotators see, the application's answers, the command."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from annotating import corpus, session_served
from serving import JSON, Client, until

from jacana_torch import corpora
from jacana_torch.annotation.journal import Journal, header_of, read
from jacana_torch.annotation.order import expected_mistakes
from jacana_torch.annotation.proposals import Proposal, ordered, proposals
from jacana_torch.annotation.refit import Refit
from jacana_torch.annotation.session import Session
from jacana_torch.cli.texts import readable
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.serve import Refused
from jacana_torch.serve.access import Access
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

TEXT = "Rain fell all night\tIt rained at night\nMia sang\tThe song was hers\nOne door\tOne gate\n"


# ---- which pair comes next


def test_expected_mistakes_are_those_of_every_possible_truth():
    posterior = np.array([[0.9, 0.2], [0.4, 0.05], [0.5, 0.5]])
    proposed = Alignment(3, 2, frozenset({(0, 0), (1, 0)}))
    cells = list(itertools.product(range(3), range(2)))
    total = 0.0
    for truth in itertools.product((0, 1), repeat=6):
        chance = np.prod(
            [posterior[c] if linked else 1 - posterior[c] for c, linked in zip(cells, truth, strict=True)]
        )
        total += chance * sum((c in proposed.sure) != bool(linked) for c, linked in zip(cells, truth, strict=True))
    assert expected_mistakes(posterior, proposed) == pytest.approx(total)


def test_orders(model):
    found = [Proposal(frozenset(), mistakes=value) for value in (0.5, 2.0, 0.5, 1.0)]
    assert ordered(found, "confidence", "x") == [1, 3, 0, 2] and ordered(found, "file", "x") == [0, 1, 2, 3]
    assert sorted(ordered(found, "random", "x")) == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match="--order confidence needs a model that gives probabilities"):
        ordered([Proposal(frozenset())], "confidence", "x")
    from jacana_torch.model import persist

    words = "red old bridge".split()
    example = Example(SentencePair(Sentence(tuple(words)), Sentence(tuple(words[::-1]))))
    empty = Example(SentencePair(Sentence(()), Sentence(("red",))))
    first, second = proposals(persist.load(model), [example, empty])
    posterior = {(i, j): p for i, j, p in first.likely}
    assert first.sure and all(posterior[link] > 0.5 for link in first.sure) and first.mistakes > 0
    assert second == Proposal(frozenset())
    assert Proposal.of_list(json.loads(json.dumps(first.to_list()))) == first
    given_links = Example(example.pair, Alignment(3, 3, frozenset({(0, 0)}), frozenset({(1, 1)})))
    start = proposals(persist.load(model), [given_links])[0]
    assert (start.sure, start.possible) == ({(0, 0)}, {(1, 1)}) and start.mistakes > first.mistakes


# ---- what annotators see


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(TEXT)
    examples = list(corpora.read(str(path)))
    journal = Journal(tmp_path / "journal", header_of("pairs.txt", [example.pair for example in examples]))
    found = [Proposal(frozenset({(0, 0)}), mistakes=value) for value in (0.1, 3.0, 1.0)]
    yield Session(examples, journal, found, names=["ann", "ben"])
    journal.close()


def act(session: Session, by: str, number: int, do: str, **more) -> int:
    return session.act(by, session.version(by, number), number, {"do": do, **more})


def test_the_way_through_a_file(session):
    assert session.first("ann") == 1
    view = session.view("ann", 1)
    assert (view["place"], view["previous"], view["next"], view["next_open"]) == (0, None, 2, 2)
    act(session, "ann", 1, "edit", cells=[[1, 3, "possible"]])
    act(session, "ann", 1, "status", status="accepted", note="sure of it")
    view = session.view("ann", 1, "open")
    assert (view["place"], view["of"], view["next_open"], view["note"]) == (None, 2, 2, "sure of it")
    assert view["progress"] == {"open": 2, "accepted": 1, "skipped": 0, "flagged": 0, "pairs": 3}
    assert session.view("ben", 1)["sure"] == [(0, 0)] and session.view("ben", 1)["possible"] == []
    assert act(session, "ann", 0, "undo") == 1, "undo says which pair it was"
    assert session.view("ann", 1)["status"] == "open" and session.view("ann", 1)["redo"] == 1


def test_a_page_that_is_out_of_date_changes_nothing(session):
    old = session.version("ann", 1)
    act(session, "ann", 1, "edit", cells=[[1, 3, "sure"]])
    with pytest.raises(Refused, match="out of date") as refused:
        session.act("ann", old, 1, {"do": "edit", "cells": [[0, 0, "none"]]})
    assert refused.value.status == 409 and session.work("ann", 1).sure == {(0, 0), (1, 3)}
    seen = session.version("ann", 2)  # and then a model is fitted
    session.fitted("m", 1, [Proposal(frozenset(), mistakes=1.0)] * 3)
    with pytest.raises(Refused, match="out of date"):
        session.act("ann", seen, 2, {"do": "status", "status": "accepted"})
    assert session.work("ann", 1).sure == {(0, 0), (1, 3)}, "what was begun stays"


def test_a_change_that_is_refused_begins_nothing(session):
    content = session.journal.path.read_bytes()
    for event in (
        {"do": "edit", "cells": [[0, 99, "sure"]]},
        {"do": "status", "status": "accepted", "note": "\ud800"},
    ):
        with pytest.raises(Refused):
            session.act("ann", session.version("ann", 1), 1, event)
    assert session.journal.path.read_bytes() == content and not session.journal.state.people


def test_agreement_and_adjudication(session):
    for by, cell in (("ann", [1, 1, "sure"]), ("ben", [1, 1, "possible"])):
        for number in (0, 2):
            if number == 0:
                act(session, by, number, "edit", cells=[cell, [1, 0, "sure"]])
            act(session, by, number, "status", status="accepted")
    (found,) = session.agreement()
    # sure links: ann 3 and 1, ben 2 and 1, of which 2 and 1 are the same
    assert (found["first"], found["second"], found["pairs"]) == ("ann", "ben", 2)
    assert found["f1"] == pytest.approx(2 * (5 / 6) / (1 + 5 / 6))
    both = Session(session.examples, session.journal, session._found, "file", ["eva"], comparing=True)
    assert both.names == ["eva"] and both.first("eva") == 0 and both.progress("eva")["pairs"] == 1
    view = both.view("eva", 0)
    assert (view["sure"], view["possible"]) == ([(0, 0), (1, 0)], [(1, 1)]), "what all link, surely or possibly"
    assert [one["by"] for one in view["others"]] == ["ann", "ben"]
    with pytest.raises(CorpusError, match="disagree"):
        list(both.settled())
    assert both.in_dispute() == 1 and len(list(both.settled(strict=False))) == 1
    act(both, "eva", 0, "status", status="accepted")
    assert [str(one.gold) for one in both.settled()] == ["0-0 1-0 1p1", "0-0"] and both.in_dispute() == 0
    assert [str(one.gold) for one in both.settled("ann")] == ["0-0 1-0 1-1", "0-0"]


def test_work_from_elsewhere_is_compared(session, tmp_path):
    """Ben has a journal of his own, of the same pairs."""
    header = header_of("pairs.txt", [example.pair for example in session.examples])
    act(session, "ann", 1, "status", status="accepted")
    path = tmp_path / "elsewhere" / "b.journal"
    path.parent.mkdir()
    other = Session(session.examples, Journal(path, header), session._found, names=["ben"])
    act(other, "ben", 1, "edit", cells=[[0, 0, "none"], [1, 1, "sure"]])
    act(other, "ben", 1, "status", status="accepted")
    other.journal.close()
    guests = read(path, header).people
    both = Session(session.examples, session.journal, session._found, "file", ["eva"], True, guests)
    assert both.first("eva") == 1 and both.progress("eva")["pairs"] == 1
    assert [(one["by"], one["sure"]) for one in both.view("eva", 1)["others"]] == [
        ("ann", [(0, 0)]),
        ("ben", [(1, 1)]),
    ]
    assert both.agreement()[0]["f1"] == 0.0
    act(both, "eva", 1, "edit", cells=[[1, 1, "sure"]])
    act(both, "eva", 1, "status", status="accepted")
    assert [str(one.gold) for one in both.settled()] == ["1-1"]


# ---- the application


def test_who_may_ask_and_what(tmp_path):
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    token, host = {"Authorization": "Bearer a-secret-of-a-test"}, "127.0.0.1"
    with session_served(corpus(tmp_path, 3), access=Access(frozenset({host}), "a-secret-of-a-test")) as (
        url,
        _,
        made,
    ):
        client = Client(host, urlsplit(url).port)
        change = {"by": "ann", "pair": 0, "version": made.version("ann", 0), "do": "status", "status": "flagged"}
        asked = [
            (client.get("/"), 401, "needs its token"),
            (client.request("GET", "/state", headers={**token, "Host": "evil.example"}), 403, "evil.example"),
            (client.post("/change", change), 401, "needs its token"),
            (client.post("/change", change, token), 415, "application/json"),
            (client.post("/change", b"[1]", {**token, **JSON}), 400, "expected a JSON object"),
            (client.post("/change", {**change, "by": "zoe"}, {**token, **JSON}), 422, "there are ann, ben"),
            (client.post("/change", {**change, "pair": 3}, {**token, **JSON}), 422, "a number from 0 to 2"),
            (
                client.post("/change", {**change, "do": "begin"}, {**token, **JSON}),
                422,
                "edit, status, undo, redo",
            ),
            (client.post("/change", {**change, "status": "x"}, {**token, **JSON}), 422, "one of open, accepted"),
            (client.post("/fit", {}, {**token, **JSON}), 422, "there is no model to start from"),
            (client.request("GET", "/pair?number=-1", headers=token), 422, "a number from 0 to 2"),
            (client.request("GET", "/pair?number=0&show=some", headers=token), 422, "show should be all or"),
            (client.request("GET", "/nothing", headers=token), 404, "nothing at /nothing"),
        ]
        for answer, code, said in asked:
            assert answer.status == code and said in answer.message
        assert made.journal.state.people.keys() <= {"ann"} and made.work("ann", 0).status == "open"
        answer = client.post("/change", change, {**token, **JSON})
        assert answer.status == 200 and answer.json["status"] == "flagged"
        page = client.request("GET", "/", headers=token)
        assert page.status == 200 and "script-src 'self'" in page.headers["content-security-policy"]
        assert client.request("GET", "/export?by=ann", headers=token).body == b""


@pytest.mark.slow
def test_a_model_is_fitted_while_annotation_goes_on(tmp_path, model):
    """A real training in its own process; a server that dies takes it along, and the journal knows the model."""
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    refit = Refit(model, str(tmp_path / "fitted"), 2)
    with session_served(corpus(tmp_path, 12), refit=refit) as (url, _, made):
        client = Client("127.0.0.1", urlsplit(url).port)

        def accept(number: int) -> None:
            body = {"by": "ann", "pair": number, "version": made.version("ann", number), "do": "status"}
            assert client.post("/change", {**body, "status": "accepted"}).status == 200

        for by, cells in (("ann", [[1, 1, "sure"]]), ("ben", [[1, 2, "sure"]])):
            act(made, by, 9, "edit", cells=cells)
            act(made, by, 9, "status", status="accepted")
        accept(0)
        assert not client.get("/state").json["fit"]["running"]
        accept(1)
        assert client.get("/state").json["fit"]["running"]
        before = made.view("ann", 5)
        accept(2)
        assert client.post("/fit", {}).status == 409
        until(lambda: not client.get("/state").json["fit"]["running"], 120)
        fit = client.get("/state").json["fit"]
        assert (fit["pairs"], fit["left_out"], fit["error"]) == (2, 1, None)
        assert made.view("ann", 5)["likely"] != before["likely"] and made.progress("ann")["accepted"] == 4
        assert made.journal.state.model == (str(tmp_path / "fitted"), 2) and (tmp_path / "fitted").is_dir()
        accept(3)
        until(lambda: refit._process is not None)
        process = refit._process.pid
    until(
        lambda: not Path(f"/proc/{process}/cmdline").exists() or not Path(f"/proc/{process}/cmdline").read_bytes()
    )


# ---- the command


def test_exports_in_any_format_leave_the_file_alone(session, tmp_path, cli):
    act(session, "ann", 1, "edit", cells=[[1, 1, "sure"], [0, 3, "possible"]])
    act(session, "ann", 1, "status", status="accepted")
    file, place = str(tmp_path / "pairs.txt"), ("--journal", str(tmp_path / "journal"))
    for name in corpora.formats(lambda one: corpora.can_align(one) and not one.binary):
        code, _, said = cli("annotate", file, *place, "--export", str(tmp_path / "out"), "--to", name)
        assert (code, said) == (0, "jacana-torch: 1 accepted pairs\n")
        (found,) = corpora.align_to([Example(session.examples[1].pair)], str(tmp_path / "out"), name)
        assert found.sure == {(0, 0), (1, 1)}
        assert found.possible == {(0, 3)} or name not in ("jsonl", "jacana", "talp", "naacl", "msr", "multimwa")
    assert (tmp_path / "pairs.txt").read_text() == TEXT
    strange = header_of(readable(os.fsdecode(b"x\xe9.txt")), [example.pair for example in session.examples])
    Journal(tmp_path / "another", strange).close()  # a name that is not UTF-8
    assert "no such journal" in cli("annotate", file, "--export", "-")[2]
    assert "links cannot be written as text" in cli("annotate", file, *place, "--export", "-", "--to", "text")[2]
    assert "takes one of ann" in cli("annotate", file, *place, "--export", "-", "--annotator", "zoe")[2]
    (tmp_path / "pairs.txt").write_text(TEXT.replace("Mia", "Pia"))
    code, _, said = cli("annotate", file, *place, "--export", "-")
    assert code == 2 and "or pairs.txt (3 pairs) has changed since" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-"], "annotate needs a file"),
        (["no_such_file"], "no_such_file: cannot be read"),
        (["FILE", "--model", "no_such"], "there is no model 'no_such'"),
        (["FILE", "--guidelines", "no_such"], "--guidelines no_such: cannot be read as text"),
        (["FILE", "--retrain", "every=0"], "whole number above 0"),
        (["FILE", "--model", "none", "--order", "confidence"], "--order confidence needs a model"),
        (["FILE", "--annotator", "ann", "a\tb"], "--annotator: the name of an annotator has 1 to 60 letters"),
        (["FILE", "--export", "FILE"], "is the annotated file itself, which is never changed"),
        (["FILE", "--journal", "no/such/folder"], "no/such/folder: cannot be written"),
        (["FILE", "--journal", "JOURNAL", "--export", "JOURNAL", "--to", "jsonl"], "is the journal itself"),
    ],
)
def test_mistakes(options, message, tmp_path, cli):
    (tmp_path / "pairs.txt").write_text(TEXT)
    (tmp_path / "journal").touch()
    names = {"FILE": str(tmp_path / "pairs.txt"), "JOURNAL": str(tmp_path / "journal")}
    given_options = [names.get(one, one) for one in options]
    code, _, said = cli("annotate", *given_options, "--port", "0")
    assert code == 2 and message in said
