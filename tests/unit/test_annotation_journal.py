"""The journal of annotations: what its events add up to, the file on the disk, and a corpus read from it."""

from __future__ import annotations

import gzip
import json
import os
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch import corpora
from jacana_torch.annotation.journal import Journal, header_of, read
from jacana_torch.corpora._annotations import Annotations, Work
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.types import Sentence, SentencePair

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


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (b'"cells"', b'"sells"', r"journal:4: no 'cells' among the keys"),
        (b'"cells"', b'"cells', r"journal:4: broken JSON"),
        (b"accepted", b"accepte\xff", r"journal:6: byte 0xff"),  # of the last line, which has its end
        (b'accepted"', b"accepted", r"journal:6: broken JSON"),
    ],
)
def test_damage_is_an_error_with_its_line_and_changes_nothing(journal, was, now, message):
    journal.write_bytes(content := journal.read_bytes().replace(was, now))
    for opened in (Journal, read):
        with pytest.raises(CorpusError, match=message):
            opened(journal, HEADER)
    assert journal.read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"my only copy", b"my copy\n", b"\n\n", b"{}", b"\xff", gzip.compress(b"{}", mtime=0)]
)
def test_a_file_that_is_no_journal_is_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises((ConfigError, CorpusError)):
        Journal(path, HEADER)
    assert path.read_bytes() == content


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink(os.devnull, path), os.mkdir])
def test_a_journal_is_an_ordinary_file(tmp_path, make):
    make(tmp_path / "journal")
    with pytest.raises(ConfigError, match=r"journal: (is no ordinary file|cannot be written)"):
        Journal(tmp_path / "journal", HEADER)


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
