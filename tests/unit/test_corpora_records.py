"""One rule for records in lines and arrays: strings are tokenised, lists are tokens, other keys pass through."""

from __future__ import annotations

import io
import json

import pytest

from jacana_torch import corpora
from jacana_torch.errors import CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util.json_values import writable

FRAMES = {"jsonl": "{}\n", "jacana": "[{}]\n"}


def read(record: dict | str, format: str = "jsonl", **more) -> list[Example]:
    text = record if isinstance(record, str) else json.dumps(record)
    return list(corpora.read(io.StringIO(FRAMES[format].format(text)), format, **more))


def written(examples, format: str, **more) -> str:
    stream = io.BytesIO()
    corpora.write(examples, stream, format, **more)
    return stream.getvalue().decode()


@pytest.mark.parametrize("format", FRAMES)
def test_a_string_is_text_and_a_list_is_tokens(format):
    (one,) = read({"source": "It's  here.", "target": ["Here", "it is", "!"]}, format)
    assert (one.pair.source.text, one.pair.source.tokens) == ("It's  here.", ("It's", "here."))
    assert (one.pair.target.text, one.pair.target.tokens) == (None, ("Here", "it is", "!"))
    assert read({"source": "It's  here.", "target": ["Here", "it is", "!"]}, "jsonl") == [one]
    (again,) = corpora.read(io.StringIO(written([one], format)), format)
    assert again == one


@pytest.mark.parametrize("format", FRAMES)
@pytest.mark.parametrize(
    "links", [{"sure": [[1, 0]], "possible": [[0, 0]]}, {"sureAlign": "1-0", "possibleAlign": "0-0"}]
)
def test_links_of_either_spelling_count_what_spaces_separate(format, links):
    (one,) = read({"id": 7, "source": "It's here.", "target": ["Here"], **links}, format)
    assert one.pair.source == Sentence(("It's", "here.")) and one.pair.id == "7"
    assert one.gold == Alignment(2, 1, frozenset({(1, 0)}), frozenset({(0, 0)}))


def test_the_same_records_in_lines_and_in_an_array(tmp_path):
    records = [
        {"id": "1", "source": "Don't go.", "target": ["Stay"], "label": 1},
        {"source": ["a"], "target": "b", "sure": [[0, 0]], "confidence": {"0-0": 0.5}, "source_pos": ["X"]},
    ]
    (tmp_path / "x.json").write_text(json.dumps(records, indent=1))
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    array, lines = (list(corpora.read(tmp_path / name)) for name in ("x.json", "x.jsonl"))
    assert array == lines
    assert [dict(each.gold.confidence) if each.gold else None for each in array] == [None, {(0, 0): 0.5}]


@pytest.mark.parametrize("format", FRAMES)
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"links": [[0, 0]]}, "name the key 'sure' or 'possible'"),
        ({"links": "0-0"}, "name the key 'sure' or 'possible'"),
        ({"sure": [], "sureAlign": ""}, "there are 'sure' and 'sureAlign'"),
        ({"sureAlign": [[0, 0]]}, "'sureAlign' should be a string"),
        ({"sure": [[0, 10**400]]}, "'sure' should be a list"),
        ({"source": 3}, "'source' should be a string or a list of tokens"),
        ({"sure": [], "score": 10**400}, "'score' should be a number"),
        ({"sure": [], "confidence": {"0-0": 10**400}}, "the confidence of 0-0 should be a number"),
        ({"label": float("inf")}, "Infinity is not a number"),
        ({"label": ["\ud800"]}, "half a surrogate pair"),
        ({"la\ud800bel": 1}, "half a surrogate pair"),
        ({"label": {"\ud800": 1}}, "half a surrogate pair"),
        ({"source_color": ["\ud800"]}, "half a surrogate pair"),
        ({"source_pos": ["\ud800"]}, "half a surrogate pair"),
    ],
)
def test_what_cannot_be_written_again_is_not_read(format, more, says):
    with pytest.raises(CorpusError, match=f"^<stream>:1: .*{says}"):
        read({"source": ["a"], "target": ["b"], **more}, format)


@pytest.mark.parametrize("key", ["label", "source_color", "source_pos", "score"])
@pytest.mark.parametrize("value", ["1e999", "-1e999", "[1e999]", '{"x": 1e999}'])
def test_a_number_beyond_all_floats(key, value):
    with pytest.raises(CorpusError, match="^<stream>:1: "):
        read(f'{{"source": ["a"], "target": ["b"], "sure": [], "{key}": {value}}}')
    read('{"source": ["a"], "target": ["b"], "label": ' + "9" * 4000 + "}")
    with pytest.raises(CorpusError, match="too many digits"):
        read('{"source": ["a"], "target": ["b"], "label": ' + "9" * 5000 + "}")


@pytest.mark.parametrize("format", FRAMES)
def test_nesting_is_refused_where_it_could_not_be_written(format):
    for depth in (1, 50, 98, 200, 900, 100_000):
        value = "[" * depth + "]" * depth
        record = f'{{"source": "a", "target": "b", "label": {value}}}'
        if depth < 100:
            assert json.loads(written(read(record, format), "jsonl"))["label"] is not None
        else:
            with pytest.raises(CorpusError, match="nested"):
                read(record, format)
    assert writable([{"a": [None, True, "x"]}], "key") == [{"a": [None, True, "x"]}]


# ---- other keys

OTHER = {
    "label": "entailment",
    "meta": {"year": [2006, None]},
    "source_url": "x",
    "score": 4.5,
    "source_parts": ["a"],
}


@pytest.mark.parametrize("format", FRAMES)
def test_other_keys_pass_through(format, caplog):
    record = {"source": "a b", "target": "c", **OTHER}
    for to in FRAMES:
        (again,) = corpora.read(io.StringIO(written(read(record, format), to)), to)
        assert again.extra == OTHER and again.flip().extra == OTHER
    assert not caplog.records


@pytest.mark.parametrize(("format", "links"), [("talp", "0-0\n"), ("naacl", "1 1 1 S\n")])
def test_other_keys_of_a_text_beside_links_pass_through(format, links):
    text = io.StringIO(json.dumps({"id": "x", "source": "a b", "target": "c", "sure": [[1, 0]], "label": 1}))
    (one,) = corpora.read(io.StringIO(links), format, text=text)
    assert one.gold.links == [(0, 0)] and one.extra == {"label": 1} and one.pair.id == "x"


def test_keys_that_the_output_cannot_hold_are_reported_once(caplog):
    examples = [one for label in range(3) for one in read({"source": "a", "target": "b", "label": label, "x": 1})]
    written(examples, "text")
    assert [record.getMessage() for record in caplog.records] == [
        "left out 'label', 'x' of 3 pairs: text cannot hold these keys of the input "
        "(csv or jacana or jsonl or parquet or tsv can)"
    ]


def test_keys_that_mean_something_else_in_an_aligned_record_are_reported(caplog):
    (one,) = read({"source": "a", "target": "b", "score": 4.5, "label": 1})
    line = written([Example(one.pair, Alignment(1, 1, score=-0.5), one.extra)], "jsonl")
    assert json.loads(line)["score"] == -0.5 and json.loads(line)["label"] == 1
    assert "left out 'score' of 1 pairs" in caplog.text


def test_a_long_list_of_keys_is_cut(caplog):
    written(read({"source": "a", "target": "b", **{f"key{n}": n for n in range(20)}}), "text")
    assert "'key7' and 12 more of 1 pairs" in caplog.text


def test_an_id_and_another_name(caplog):
    (one,) = read({"id": "7", "name": "seven", "source": "a", "target": "b"}, "jacana")
    assert one.pair.id == "7" and one.extra == {"name": "seven"}
    assert json.loads(written([one], "jacana"))[0]["name"] == "seven"
    (one,) = read({"id": 7, "name": "7", "source": "a", "target": "b"}, "jacana")
    (other,) = read({"name": "7", "source": "a", "target": "b"}, "jacana")
    assert one == other and one.extra is None


# ---- what cannot be written


def pair(source, target, *, gold=True, id=None, **layers) -> Example:
    made = SentencePair(Sentence(source, layers), Sentence(target), id)
    return Example(made, Alignment(len(source), len(target)) if gold else None)


UNWRITABLE = {
    "text": pair(("a b",), ("c",)),
    "pharaoh": pair(("a\t",), ("c",)),
    "talp": pair(("a\n",), ("c",)),
    "naacl": pair(("a",), ("c",), gold=False),
    "jsonl": pair(("a",), ("c",), color=(float("nan"),)),
    "jacana": pair(("\ud800",), ("c",)),
    "msr": pair(("a",), ("c",), id="\ud800"),
    "multimwa": pair(("a",), ("c",), id="1\t2"),
    "csv": pair(("a b",), ("c",)),
    "tsv": pair(("a",), ("c",), gold=False),
}


@pytest.mark.parametrize("format", corpora.formats(lambda one: corpora.can_write(one) and not one.binary))
def test_skipping_covers_what_cannot_be_written(format):
    first, last = pair(("a",), ("b",), id="1"), pair(("c",), ("d",), id="2")
    alone = written([first, last], format)
    with pytest.raises(CorpusError, match="^<stream>: pair 2"):
        written([first, UNWRITABLE[format], last], format)
    skip = corpora.SkipBad()
    stream = io.BytesIO()
    assert corpora.write([first, UNWRITABLE[format], last], stream, format, on_bad=skip) == 2
    assert stream.getvalue().decode() == alone and skip.count == 1
    instead = pair((), (), id="0")
    skip = corpora.SkipBad(instead=instead)
    assert corpora.write([first, UNWRITABLE[format], last], stream := io.BytesIO(), format, on_bad=skip) == 3
    assert stream.getvalue().decode() == written([first, instead, last], format)


def test_a_replacement_that_cannot_be_written_either_is_an_error():
    skip = corpora.SkipBad(instead=UNWRITABLE["talp"])
    with pytest.raises(CorpusError, match="pair 1"):
        corpora.write([UNWRITABLE["talp"]], io.BytesIO(), "talp", on_bad=skip)


def test_conversion_counts_every_record():
    """Bad to read, bad to write, and good."""
    lines = [
        '{"source": ["a b"], "target": "c", "sure": []}',
        "{oops",
        '{"source": "a", "target": "c", "sure": []}',
    ]
    skip, out = corpora.SkipBad(), io.BytesIO()
    source = io.StringIO("\n".join(lines * 4) + "\n")
    assert corpora.convert(source, out, "jsonl", "talp", on_bad=skip) + skip.count == 12
    assert skip.count == 8 and out.getvalue() == b"a\tc\t\n" * 4
