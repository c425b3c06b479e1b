"""Annotation: the journal and its fold, the order of pairs, the application's answers, the command."""

from __future__ import annotations

import itertools
import json
import resource
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from annotating import corpus, session_served
from hypothesis import given
from hypothesis import strategies as st
from serving import JSON, Client, until

from jacana_torch import corpora
from jacana_torch.annotation.journal import Journal, header_of, read
from jacana_torch.annotation.order import expected_mistakes
from jacana_torch.annotation.proposals import Proposal, ordered, proposals
from jacana_torch.annotation.refit import Refit
from jacana_torch.annotation.session import Session
from jacana_torch.corpora._annotations import Annotations, Work
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.serve import Refused
from jacana_torch.serve.access import Access
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

TEXT = "Rain fell all night\tIt rained at night\nMia sang\tThe song was hers\nOne door\tOne gate\n"
PAIR = {"do": "pair", "pair": 0, "source": ["Rain", "fell"], "target": ["It", "rained"]}


def started(by: str, number: int = 0, sure=(), possible=()) -> dict:
    links = {"sure": [list(link) for link in sure], "possible": [list(link) for link in possible]}
    return {"do": "begin", "by": by, "pair": number, **links}


def edit(by: str, *cells, pair: int = 0) -> dict:
    return {"do": "edit", "by": by, "pair": pair, "cells": [list(cell) for cell in cells]}


def status(by: str, name: str = "accepted", pair: int = 0) -> dict:
    return {"do": "status", "by": by, "pair": pair, "status": name}


def state_of(*events: dict) -> Annotations:
    state = Annotations()
    for event in events:
        state.add(event)
    return state


# ---- the fold

CELLS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from(("sure", "possible", "none"))))


@given(st.lists(st.one_of(CELLS, st.sampled_from(("undo", "redo", "accepted", "skipped")))))
def test_undo_and_redo_are_those_of_a_list_of_states(asked):
    """The twin keeps every state that there was, and a place among them."""
    state = state_of(PAIR, started("ann", sure=[(0, 0)]))
    past, place = [({(0, 0): "sure"}, "open")], 0
    for one in asked:
        links, mark = past[place]
        if one in ("undo", "redo"):
            to = place + (1 if one == "redo" else -1)
            if 0 <= to < len(past):
                place = to
                state.add({"do": one, "by": "ann"})
            else:
                with pytest.raises(ValueError, match=f"nothing to {one}"):
                    state.add({"do": one, "by": "ann"})
        else:
            after = dict(links)
            if isinstance(one, str):
                state.add(status("ann", one))
                mark = one
            else:
                state.add(edit("ann", *one))
                for i, j, kind in one:
                    after[i, j] = kind
            past = [*past[: place + 1], ({k: v for k, v in after.items() if v != "none"}, mark)]
            place += 1
        work = state.people["ann"].works[0]
        links, mark = past[place]
        found = {**dict.fromkeys(work.sure, "sure"), **dict.fromkeys(work.possible, "possible")}
        assert (found, work.status) == (links, mark) and not work.sure & work.possible


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"do": "pair", "pair": 0, "source": ["Other"], "target": []}, "other words than before"),
        (started("ann"), "ann has begun pair 0 already"),
        (edit("ben", (0, 0, "sure")), "ben has not begun pair 0"),
        (edit("ann", (0, 2, "sure")), "link 0-2 is out of range for 2 x 2 tokens"),
        (edit("ann", (0, True, "sure")), "a cell is"),
        (edit("ann", (0, 0, "maybe")), "sure or possible or none"),
        (status("ann", "done"), "one of open, accepted, skipped, flagged"),
        (status("ann", pair=7), "number of a known pair"),
        ({"do": "undo", "by": "ann"}, "nothing to undo"),
        ({"do": "undo", "by": "a\nb"}, "name of an annotator"),
        ({"do": "dance", "by": "ann"}, "'do' should be"),
    ],
)
def test_what_does_not_fit_changes_nothing(event, message):
    state = state_of(PAIR, started("ann", sure=[(1, 1)]))
    with pytest.raises(ValueError, match=message):
        state.add(event)
    assert state.people.keys() == {"ann"} and state.people["ann"].works == {0: Work(frozenset({(1, 1)}))}


# ---- the journal on disk

EVENTS = (PAIR, started("ann"), edit("ann", (1, 1, "sure")), {"do": "undo", "by": "ann"}, status("ann"))
HEADER = header_of("x/pairs.txt", [SentencePair(Sentence(("Rain", "fell")), Sentence(("It", "rained")))])


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "pairs.txt.journal"
    journal = Journal(path, HEADER)
    for event in EVENTS:
        journal.append(event)
    journal.close()
    return path


def test_a_journal_cut_anywhere_keeps_every_whole_line(journal):
    """As if the process had been killed at that byte: what was whole is there, and the next event fits."""
    content = journal.read_bytes()
    ends = [k + 1 for k, byte in enumerate(content) if byte == ord("\n")]
    near = {end + step for end in ends for step in (-3, -2, -1, 0, 1, 2)}
    for size in sorted({*range(0, len(content), 11), *near} & {*range(len(content) + 1)}):
        journal.write_bytes(content[:size])
        whole = sum(end - 1 <= size for end in ends)  # the brace that ends a line makes it whole
        again = Journal(journal, HEADER)
        wanted = state_of(*EVENTS[: max(0, whole - 1)])
        assert again.state.people == wanted.people and again.state.pairs.keys() == wanted.pairs.keys()
        again.append({"do": "model", "name": "m", "pairs": 1})
        again.close()
        assert read(journal, HEADER).model == ("m", 1)
        lines = journal.read_text().splitlines()
        assert len(lines) == max(1, whole) + 1 and all(map(json.loads, lines))


def test_a_journal_of_other_pairs_is_refused_and_not_touched(journal):
    content = journal.read_bytes()
    other = header_of("others.txt", [SentencePair(Sentence(("Snow",)), Sentence(("It",)))])
    for opening in (lambda: Journal(journal, other), lambda: read(journal, other)):
        with pytest.raises(
            ConfigError, match=r"is the journal of another file, pairs.txt \(1 pairs\), or others.txt"
        ):
            opening()
    assert journal.read_bytes() == content


def test_a_journal_belongs_to_one_process(journal):
    first = Journal(journal, HEADER)
    with pytest.raises(ConfigError, match="another process is annotating with this journal"):
        Journal(journal, HEADER)
    first.close()
    Journal(journal, HEADER).close()


def test_what_the_disk_does_not_take_does_not_count(journal):
    """The file may not grow any more: half a line would fit."""
    content, again = journal.read_bytes(), Journal(journal, HEADER)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 20, limits[1]))
    try:
        with pytest.raises(OSError):
            again.append(edit("ann", (0, 0, "sure")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.read_bytes() == content and again.state.people["ann"].works[0].sure == frozenset()
    again.append(edit("ann", (0, 1, "sure")))
    again.close()
    assert read(journal, HEADER).people["ann"].works[0].sure == {(0, 1)}


def test_damage_in_the_middle_is_an_error_with_its_line(journal):
    journal.write_bytes(journal.read_bytes().replace(b'"cells"', b'"sells"'))
    with pytest.raises(CorpusError, match=r"journal:4: no 'cells' among the keys"):
        Journal(journal, HEADER)


# ---- reading a journal as a corpus


def written(path, *events: dict):
    first = {"jacana_annotation": 1, "file": "f", "pairs": 3, "digest": "0"}
    path.write_text("".join(json.dumps(event) + "\n" for event in (first, *events)))
    return path


TWO = (
    {**PAIR, "pair": 1, "id": "b"},
    PAIR,
    started("ann", 1, [(0, 0)], [(1, 1)]),
    started("ann", 0),
    status("ann"),
)


def test_accepted_pairs_are_a_corpus_in_the_order_of_the_file(tmp_path):
    path = written(tmp_path / "a.journal", *TWO)
    assert [(one.pair.id, str(one.gold)) for one in corpora.read(str(path))] == [(None, "")]
    path = written(tmp_path / "b", *TWO, status("ann", pair=1))  # its first line says what it is
    assert [(one.pair.id, str(one.gold)) for one in corpora.read(str(path))] == [(None, ""), ("b", "0-0 1p1")]
    from jacana_torch.train import data

    found = data.load({"train": [str(path)], "dev": [], "root": ".", "drop_ids": [], "sidecar": [], "limit": None})
    assert [str(example.gold) for example in found.train] == ["", "0-0 1p1"]


def test_disagreement_is_an_error_until_it_is_adjudicated(tmp_path):
    both = (
        *TWO,
        status("ann", pair=1),
        started("ben", 0),
        status("ben"),
        started("ben", 1),
        status("ben", pair=1),
    )
    path = written(tmp_path / "a.journal", *both)
    bad = corpora.SkipBad()
    assert [str(one.gold) for one in corpora.read(str(path), on_bad=bad)] == [""]
    assert "pair 2 ('b'): 'ann' and 'ben' disagree" in bad.report() and "--compare" in bad.report()
    last = ({**started("eva", 1, [(0, 1)]), "of": ["ann", "ben"]}, status("eva", pair=1))
    path = written(tmp_path / "a.journal", *both, *last)
    assert [str(one.gold) for one in corpora.read(str(path))] == ["", "0-1"]


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
    act(both, "eva", 0, "status", status="accepted")
    assert [str(one.gold) for one in both.settled()] == ["0-0 1-0 1p1", "0-0"]
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

        accept(0)
        assert not client.get("/state").json["fit"]["running"]
        accept(1)
        assert client.get("/state").json["fit"]["running"]
        before = made.view("ann", 5)
        accept(2)
        assert client.post("/fit", {}).status == 409
        until(lambda: not client.get("/state").json["fit"]["running"], 120)
        fit = client.get("/state").json["fit"]
        assert (fit["pairs"], fit["error"]) == (2, None)
        assert made.view("ann", 5)["likely"] != before["likely"] and made.progress("ann")["accepted"] == 3
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
    ],
)
def test_mistakes(options, message, tmp_path, cli):
    (tmp_path / "pairs.txt").write_text(TEXT)
    given_options = [str(tmp_path / "pairs.txt") if one == "FILE" else one for one in options]
    code, _, said = cli("annotate", *given_options, "--port", "0")
    assert code == 2 and message in said
