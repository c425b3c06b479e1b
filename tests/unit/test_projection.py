"""Projected spans: where they lead, in parts or not at all; files of spans, and the command."""

from __future__ import annotations

import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.cli import main
from jacana_torch.errors import JacanaError
from jacana_torch.tasks import spans
from jacana_torch.types import Alignment, Sentence, SentencePair

SOURCE, TARGET = "Regina Schueller works in Italy.", "In Italy works  Regina, or Schueller."


def pair_of(source, target):
    return SentencePair(
        *(Sentence(text.replace(".", " .").replace(",", " ,").split(), text=text) for text in (source, target))
    )


LINKS = Alignment(
    6, 8, frozenset({(0, 3), (1, 6), (2, 2), (3, 0), (4, 1), (5, 7)}), confidence={(0, 3): 0.5, (1, 6): 1.0}
)


def test_spans_go_where_the_links_lead():
    person, place, nothing = LINKS.project([(0, 2, "PER"), (3, 5), (0, 0)])
    assert (
        person.parts == ((3, 7),) and person.span == (3, 7) and person.confidence == 0.75 and person.label == "PER"
    )
    assert place.parts == ((0, 2),) and place.confidence == 1 and not place.discontinuous
    assert nothing.parts == () and nothing.span is None and nothing.confidence == 0
    (back,) = LINKS.project([(3, 7)], backward=True)
    assert back.parts == ((0, 2),) and back.confidence == pytest.approx((0.5 + 1) / 4)


def test_words_linked_elsewhere_make_parts():
    (found,) = Alignment(3, 3, frozenset({(0, 0), (1, 2), (2, 1)})).project([(0, 2)])
    assert found.parts == ((0, 1), (2, 3)) and found.discontinuous and found.span == (0, 3)


def test_characters_need_the_texts():
    pair = pair_of(SOURCE, TARGET)
    known = LINKS.of(pair)
    (person, inside) = known.project([(0, 16, "PER"), (9, 12)], characters=True)
    assert TARGET[slice(*person.span)] == "Regina, or Schueller"
    assert TARGET[slice(*inside.span)] == "Schueller"  # part of a token is that token
    with pytest.raises(JacanaError, match="raw text"):
        LINKS.project([(0, 3)], characters=True)
    with pytest.raises(ValueError, match="not within"):
        LINKS.project([(0, 9)])


CELLS = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(st.frozensets(CELLS), st.integers(0, 5), st.integers(0, 5))
def test_parts_cover_what_is_linked_and_nothing_linked_elsewhere(links, a, b):
    start, end = sorted((a, b))
    (found,) = Alignment(5, 5, links).project([(start, end)])
    reached = {j for i, j in links if start <= i < end}
    elsewhere = {j for _, j in links} - reached
    inside = {k for first, last in found.parts for k in range(first, last)}
    assert reached <= inside and not inside & elsewhere
    assert all(one[1] < other[0] for one, other in zip(found.parts, found.parts[1:], strict=False))


LAYOUTS = [
    {"text": SOURCE, "spans": [{"start": 0, "end": 16, "label": "PER"}], "meta": 1},
    {"text": SOURCE, "label": [[0, 16, "PER"]], "meta": 1},
    {"text": SOURCE, "entities": [{"start_offset": 0, "end_offset": 16, "label": "PER"}], "meta": 1},
]


@pytest.mark.parametrize("item", LAYOUTS)
def test_jsonl_keeps_its_layout(item, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(json.dumps(item) + "\n")
    (tmp_path / "b").write_text("In Italy works Regina Schueller.\n")
    assert main(["project", str(tmp_path / "a.jsonl"), str(tmp_path / "b"), "--model", "core"]) == 0
    found = json.loads(capsys.readouterr().out)
    key = next(key for key in ("spans", "label", "entities") if key in item)
    assert found["meta"] == 1 and found["source"] == SOURCE and len(found[key]) == 1
    one = found[key][0]
    place = one[:2] if isinstance(one, list) else [v for k, v in one.items() if k.startswith(("start", "end"))]
    assert found["text"][slice(*place)] == "Regina Schueller"


def test_bio_and_docbin_round_trip(tmp_path, capsys):
    pytest.importorskip("spacy")
    bio = "Regina\tB-PER\nSchueller\tI-PER\nworks\tO\nin\tO\nItaly\tB-LOC\n.\tO\n\nRain\tO\nfell\tO\n.\tO\n\n"
    (tmp_path / "a.bio").write_text(bio)
    lines = ["Regina Schueller works in Italy .", "Rain fell ."]
    (tmp_path / "b").write_text("\n".join(lines) + "\n")
    command = ["project", str(tmp_path / "a.bio"), str(tmp_path / "b"), "--model", "core"]
    assert main(command) == 0
    assert capsys.readouterr().out == bio  # onto itself
    assert main([*command, "--to", "spacy", "--output", str(tmp_path / "c.spacy")]) == 0
    records = spans.read(str(tmp_path / "c.spacy"))
    assert [record.sentence.text for record in records] == lines
    assert records[0].spans == [(0, 16, "PER"), (26, 31, "LOC")] and records[1].spans == []
    assert main(["project", str(tmp_path / "c.spacy"), str(tmp_path / "b"), "--model", "core", "--to", "bio"]) == 0
    assert capsys.readouterr().out == bio


def test_spacys_documents_keep_white_space(tmp_path):
    pytest.importorskip("spacy")
    record = spans.Record(Sentence(("x",), text="x"), [])
    (doc,) = spans.docs_of([(record, pair_of(SOURCE, TARGET).target, [])])
    assert doc.text == TARGET


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.jsonl",
            '{"text": "ab", "spans": [{"start": 0, "end": 3}]}\n',
            "a.jsonl:1: .*span '0-3' is not within",
        ),
        ("a.jsonl", "[]\n", "expected a JSON object"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1: .*nested too deeply"),
        ("a.jsonl", '{"text": "a", "x": ' + "[" * 500 + "]" * 500 + "}", "a.jsonl:1: .*'x' is nested more than"),
        ("a.jsonl", '{"text": "a", "x": 1e999}', "a.jsonl:1: .*'x' has a number beyond all floats"),
        ("a.jsonl", '{"text": "a", "x": NaN}', "a.jsonl:1: .*NaN is not a number"),
        ("a.jsonl", '{"text": "a", "x": "\\ud800"}', "a.jsonl:1: .*half a surrogate pair"),
        ("a.jsonl", '{"text": "a", "label": [[0, 1, "\\ud800"]]}', "a.jsonl:1: .*half a surrogate pair"),
        ("a.jsonl", '{"text": "a", "\\ud800": 1}', "a.jsonl:1: .*half a surrogate pair"),
        ("a.jsonl", '{"text": "a", "label": [[0, 1, ["X"]]]}', "a.jsonl:1: .*a label should be a text"),
        ("a.jsonl", '{"text": "a", "spans": "abc"}', "a.jsonl:1: .*'spans' should be a list"),
        ("a.jsonl", '{"text": "a", "spans": ["abc"]}', "a.jsonl:1: .*a span has a start, an end and a label"),
        ("a.jsonl", '{"text": "a", "spans": [], "target": ["A"]}', "a.jsonl:1: .*'target' should be a text"),
        (
            "a.jsonl",
            '{"text": "a", "spans": [[%s, 1, "X"]]}' % ("1" * 4000),
            "^.{0,300} is not within the text of 1",
        ),
        ("a.bio", "word\n", "expected a token and its tag"),
        ("a.bio", "word X\n", "'X' is no tag"),
        ("a.jsonl", '{"text": "ab"}\n', "a record has no target"),
        ("a.doc", "", "does not say whether"),
        ("a.spacy", "none", "is no DocBin"),
        ("a.spacy", zlib.compress(b"\x80"), "is no DocBin"),  # an empty table
    ],
)
def test_mistakes(tmp_path, capsys, name, text, message):
    if name.endswith(".spacy"):
        pytest.importorskip("spacy")
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    assert main(["project", str(tmp_path / name), "--model", "core", "--to", "jsonl"]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_weak_spans_are_dropped_and_said(tmp_path, capsys):
    item = {"text": SOURCE, "spans": [{"start": 0, "end": 16, "label": "PER"}], "target": "Rain fell ."}
    (tmp_path / "a.jsonl").write_text(json.dumps(item) + "\n")
    assert main(["project", str(tmp_path / "a.jsonl"), "--model", "core", "--least", "0.99"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["spans"] == [] and found["not_projected"] == [[0, 16, "PER"]]


def test_lines_end_at_line_feeds_alone_and_labels_stay_whole(tmp_path, capsys):
    item = {"text": SOURCE, "spans": [{"start": 0, "end": 16, "label": "A\nB"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(item) + "\n")
    (tmp_path / "b").write_bytes("Regina\u2028Schueller\x0bworks in\x85Italy .\r\n".encode())
    command = ["project", str(tmp_path / "a.jsonl"), str(tmp_path / "b"), "--model", "core"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"][slice(0, 16)] == "Regina\u2028Schueller" and found["spans"][0]["label"] == "A\nB"
    assert main([*command, "--to", "bio"]) == 2
    assert "the label 'A\\nB' has white space, which BIO cannot hold" in capsys.readouterr().err
