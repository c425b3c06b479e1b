"""Tables: CSV, TSV and Parquet, and records of JSON, with columns by name; the others pass through."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import random

import pytest

from jacana_torch import corpora
from jacana_torch.corpora._tables import Added
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

COLUMNS = ("premise", "hypothesis")
EMPTY = Example(SentencePair(Sentence(()), Sentence(())))
# Pieces of fields: whatever RFC 4180 quotes, and what some readers take for the end of a line.
PIECES = ['"', ",", "\n", "\r\n", "\t", "red", " ", "dog", "é", "\u2028", "\x85", ""]


def rows_of(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def read(data, format=None, columns=COLUMNS, **more) -> list[Example]:
    return list(corpora.read(io.BytesIO(data if isinstance(data, bytes) else data.encode()), format,
                             columns=columns, **more))  # fmt: skip


def written(examples, format: str, **more) -> bytes:
    stream = io.BytesIO()
    corpora.write(examples, stream, format, added=Added(**more))
    return stream.getvalue()


def aligned(example: Example, links=frozenset({(0, 0)}), confidence=None) -> Example:
    pair = example.pair
    links = links if pair.source.tokens and pair.target.tokens else frozenset()
    gold = Alignment(len(pair.source), len(pair.target), links, frozenset(), confidence or {})
    return Example(pair, gold, example.extra)


@pytest.mark.parametrize(("format", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_fields_of_any_kind_come_back(format, delimiter):
    """Python's csv module, as the twin, writes what is read and reads what is written."""
    rng = random.Random(7)
    records = [["".join(rng.choices(PIECES, k=rng.randrange(5))) for _ in range(4)] for _ in range(300)]
    buffer = io.StringIO(newline="")
    twin = csv.writer(buffer, delimiter=delimiter, lineterminator=rng.choice(["\n", "\r\n"]))
    twin.writerows([["label", "premise", "hypothesis", "a b"], *records])
    examples = read(buffer.getvalue(), format)
    assert [(e.pair.source.text, e.pair.target.text) for e in examples] == [(r[1], r[2]) for r in records]
    assert [dict(e.extra) for e in examples] == [{"label": r[0], "a b": r[3]} for r in records]
    out = written(map(aligned, examples), format).decode()
    found = rows_of(out, delimiter)
    assert list(found[0]) == ["label", "premise", "hypothesis", "a b", "links"]
    assert [list(row.values())[:4] for row in found] == records
    assert {row["links"] for row in found} == {"0-0", ""}


def test_marks_line_ends_and_blank_lines():
    text = "\ufeffpremise,hypothesis\r\n\r\na,b\r\n\r\n\r\nc,d"
    assert [str(e.pair.source) for e in read(text, "csv")] == ["a", "c"]
    assert len(read(gzip.compress(text.encode()), "csv")) == 2
    with pytest.raises(CorpusError, match="empty"):
        read("", "csv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("premise,text\na,b\n", r"^<stream>:1: there is no column 'hypothesis'; there are 'premise', 'text'$"),
        ("premise,hypothesis,premise\n", "^<stream>:1: two columns are called 'premise'"),
        ("premise,hypothesis,n\na,b,1\nc,d\n", "^<stream>:3: the row has 2 fields, and the header 3$"),
        ("premise,hypothesis\na,b,1\n", "^<stream>:2: the row has 3 fields, and the header 2$"),
        ('premise,hypothesis\n"a\nb",c\n"x"y,z\n', "^<stream>:4: the quotes are not as in RFC 4180"),
        ('premise,hypothesis\na,b\n"never closed,x\n1,2\n', "^<stream>:3: the quotes are not"),
    ],
)
def test_errors_name_the_line(text, says):
    with pytest.raises(CorpusError, match=says):
        read(text, "csv")
    with pytest.raises(CorpusError, match="^<stream>:2: byte 0xff in column 3 is not UTF-8"):
        read(b'premise,hypothesis\n"a\nx \xff",b\n'.replace(b"x ", b"xy"), "csv")


def test_a_bad_record_keeps_its_other_columns():
    text = "premise,n,hypothesis\na,1,b\nc,2\nd,3,e,4\nf,5,g\n"
    skip = corpora.SkipBad(instead=EMPTY)
    found = read(text, "csv", on_bad=skip)
    assert skip.count == 2 and [each.extra["n"] for each in found] == ["1", "2", "3", "5"]
    rows = rows_of(written(map(aligned, found), "csv").decode())
    assert [(row["premise"], row["n"], row["links"]) for row in rows] == [
        ("a", "1", "0-0"), ("c", "2", ""), ("d", "3", ""), ("f", "5", "0-0")
    ]  # fmt: skip


def test_without_names_the_header_decides():
    pairs = read("id,label,sentence1,sentence2\n7,x,a b,c\n", "csv", columns=None)
    assert (
        pairs[0].pair.id == "7" and pairs[0].pair.source.text == "a b" and dict(pairs[0].extra) == {"label": "x"}
    )
    with pytest.raises(CorpusError, match="--columns NAME,NAME.*'left', 'right'"):
        read("left,right\na,b\n", "csv", columns=None)
    assert corpora.guess(None, b"premise,hypothesis\na,b\n") == "csv"
    assert corpora.guess("x.csv.gz", b"") == "csv" and corpora.format_for_writing("x.tsv") == "tsv"
    assert corpora.guess("x.tsv", b"a b\tc\n") == "text", "most .tsv files have no header"
    assert corpora.guess("x.tsv", b"", columns=COLUMNS) == "tsv"
    assert corpora.guess(None, b"n\tpremise\thypothesis\n", columns=COLUMNS) == "tsv"
    assert corpora.guess(None, b'{"premise": 1}\n', columns=COLUMNS) == "jsonl"
    with pytest.raises(ConfigError, match="text have no columns to name: those of csv, jsonl, parquet, tsv"):
        read("a\tb\n", "text")


def test_links_are_read_with_their_tokens():
    pair = SentencePair(Sentence(("It", "'s", "red")), Sentence(("red",)), "p1")
    gold = Alignment(3, 1, {(2, 0)}, {(0, 0)}, {(2, 0): 0.5, (0, 0): 0.25})
    for format in ("csv", "tsv"):
        data = written([Example(pair, gold)], format, tokens=True)
        (found,) = read(data, format, columns=None)
        assert found.gold == gold and found.pair.source.tokens == pair.source.tokens and found.pair.id == "p1"
        assert dict(found.gold.confidence) == dict(gold.confidence)
        assert written([found], format, tokens=True) == data
    with pytest.raises(CorpusError, match=r"^<stream>:2: links: link 2-0 is out of range for 2 x 1 .*--tokens"):
        read("premise,hypothesis,links\nIt's red,red,2-0\n", "csv", columns=None)


def test_earlier_links_are_written_anew():
    examples = read("premise,hypothesis,links,n,premise_tokens\na,b,what,1,x\n", "csv")
    assert examples[0].gold is None
    assert rows_of(written(map(aligned, examples), "csv").decode()) == [
        {"premise": "a", "hypothesis": "b", "n": "1", "links": "0-0"}
    ]


def test_records_that_were_no_table():
    examples = [Example(SentencePair(Sentence(("a", "b")), Sentence(("c",))), Alignment(2, 1, {(1, 0)}), extra)
                for extra in ({"n": 1, "x": [1, "é"]}, {"x": None}, {"other": 1})]  # fmt: skip
    rows = rows_of(written(examples, "csv").decode())
    assert rows[0] == {"source": "a b", "target": "c", "n": "1", "x": '[1, "é"]', "links": "1-0"}
    assert rows[1]["n"] == rows[1]["x"] == ""


def test_an_empty_table_keeps_its_header():
    source = corpora.Source(io.BytesIO(b"premise,n,hypothesis\n"))
    examples = list(corpora.read_live(source, "csv", columns=COLUMNS))
    out = io.BytesIO()
    corpora.write(examples, out, "csv", added=Added(empty=lambda: source.record))
    assert out.getvalue() == b"premise,n,hypothesis,links\n"


def test_keys_of_json_records():
    lines = '{"premise": "a b", "label": 2, "hypothesis": ["c"], "source": "snli"}\n\n{"premise": "x"}\n'
    skip = corpora.SkipBad()
    (found,) = read(lines, "jsonl", on_bad=skip)
    assert skip.count == 1 and "no 'hypothesis'" in str(skip.first[0]) and skip.first[0].line == 3
    assert found.pair.source.text == "a b" and found.pair.target.tokens == ("c",)
    assert found.extra == {"premise": "a b", "label": 2, "hypothesis": ["c"], "source": "snli"}
    record = json.loads(written([aligned(found)], "jsonl"))
    assert record["label"] == 2 and record["premise"] == "a b" and record["sure"] == [[0, 0]]
    table = read("premise,n,hypothesis\na b,1,c\n", "csv")
    record = json.loads(written(map(aligned, table), "jsonl"))
    assert record.pop("source_offsets") == [[0, 1], [2, 3]] and record.pop("target_offsets") == [[0, 1]]
    assert record == {"source": ["a", "b"], "target": ["c"], "sure": [[0, 0]], "possible": [], "premise": "a b",
                      "hypothesis": "c", "n": "1"}  # fmt: skip


# Parquet


@pytest.fixture(scope="module")
def arrow():
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    return pyarrow


def table(pa, rows: int):
    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "n": pa.array(range(rows), pa.int16()),
            "premise": [f"red dog {k}" for k in range(rows)],
            "when": pa.array([day] * rows, pa.date32()),
            "hypothesis": pa.array(["a dog"] * rows).dictionary_encode(),
            "vector": pa.array([[0.5, k] for k in range(rows)], pa.list_(pa.float32())),
        },
        metadata={"huggingface": "{}", "mine": "kept"},
    )


def parquet(pa, made, **more) -> bytes:
    stream = io.BytesIO()
    pa.parquet.write_table(made, stream, **more)
    return stream.getvalue()


def test_parquet_keeps_columns_types_and_values(arrow):
    made = table(arrow, 3000)
    examples = read(parquet(arrow, made, row_group_size=700))
    assert len(examples) == 3000 and examples[2999].pair.source.text == "red dog 2999"
    assert examples[0].extra["when"] == "2020-01-01", "as JSON can hold it"
    found = arrow.parquet.read_table(io.BytesIO(written(map(aligned, examples), "parquet")))
    assert found.column_names == [*made.column_names, "links"]
    assert found.drop_columns("links").equals(made)
    assert found.schema.metadata == {b"mine": b"kept"}
    assert found["links"].to_pylist() == ["0-0"] * 3000


def test_parquet_with_tokens_probabilities_and_bad_rows(arrow):
    made = arrow.table({"premise": ["a b", None, ""], "hypothesis": ["c", "d", "e"], "n": [1, 2, 3]})
    data = parquet(arrow, made)
    with pytest.raises(CorpusError, match="^<stream>:2: 'premise' has no value"):
        read(data)
    skip = corpora.SkipBad(instead=EMPTY)
    examples = [aligned(each, confidence={(0, 0): 0.25}) for each in read(data, on_bad=skip)]
    out = written(examples, "parquet", tokens=True, probabilities=True)
    rows = arrow.parquet.read_table(io.BytesIO(out)).to_pylist()
    assert [row["n"] for row in rows] == [1, 2, 3] and [row["premise"] for row in rows] == ["a b", None, ""]
    assert [row["premise_tokens"] for row in rows] == [["a", "b"], [], []]
    assert [row["probabilities"] for row in rows] == [[0.25], [], []] and rows[0]["links"] == "0-0"


def test_parquet_beside_other_formats(arrow, tmp_path):
    (tmp_path / "x.csv").write_text("premise,n,hypothesis\na b,1,c\n")
    examples = [aligned(each) for each in corpora.read(tmp_path / "x.csv", columns=COLUMNS)]
    corpora.write(examples, tmp_path / "x.parquet")
    rows = arrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert rows == [{"premise": "a b", "n": "1", "hypothesis": "c", "links": "0-0"}]
    pairs = [Example(SentencePair(Sentence(("a",)), Sentence(("b",))), Alignment(1, 1), {"k": k, "m": {"x": k}})
             for k in range(3)]  # fmt: skip
    corpora.write(pairs, tmp_path / "y.parquet")
    assert arrow.parquet.read_table(tmp_path / "y.parquet").to_pylist()[2] == {
        "source": "a", "target": "b", "k": 2, "m": '{"x": 2}', "links": ""
    }  # fmt: skip
    corpora.write([], tmp_path / "z.parquet")
    assert arrow.parquet.read_table(tmp_path / "z.parquet").num_rows == 0
    packed = gzip.compress((tmp_path / "x.parquet").read_bytes())
    assert len(read(packed, "parquet")) == 1, "as a stream that cannot seek"


def test_parquet_errors(arrow):
    data = parquet(arrow, arrow.table({"premise": [1], "hypothesis": ["a"]}))
    with pytest.raises(CorpusError, match="the column 'premise' holds int64, not text"):
        read(data)
    for damaged in (
        b"PAR1 no",
        data.replace(b"premise", b"pr\xfbmise"),
        data[: len(data) // 2],
        data[:-8] + b"\xff" * 4 + b"PAR1",
    ):
        with pytest.raises(CorpusError, match="^<stream>.* cannot be read as Parquet"):
            read(damaged, "parquet")


def test_parquet_with_values_that_python_does_not_have(arrow):
    """Bytes that are not UTF-8 are errors of their row; dates beyond all years are kept."""
    bad = arrow.array([b"a dog", b"caf\xe9"]).view(arrow.string())
    late = arrow.array([0, 1 << 62], arrow.timestamp("us"))
    good = arrow.array(["a dog", "b"])
    lists = arrow.ListArray.from_arrays([0, 1, 2], bad)
    for source in (bad, lists, bad.dictionary_encode()):
        skip = corpora.SkipBad(instead=EMPTY)
        data = parquet(arrow, arrow.table({"premise": source, "hypothesis": good, "late": late}))
        found = [aligned(one) for one in read(data, on_bad=skip)]
        assert len(found) == 2 and [str(one) for one in skip.first] == [
            "<stream>:2: byte 0xe9 is not UTF-8: convert the file to UTF-8"
        ]
        assert found[1].extra["late"] == f"{1 << 62} timestamp[us]"
        assert arrow.parquet.read_table(io.BytesIO(written(found, "parquet")))["late"].combine_chunks() == late
    for column in (bad, lists, arrow.StructArray.from_arrays([bad], ["k"])):
        found = read(parquet(arrow, arrow.table({"premise": good, "hypothesis": good, "x": column})))
        with pytest.raises(CorpusError, match="pair 2: this format cannot hold '\\\\udce9'"):
            written(map(aligned, found), "jsonl")


def test_damaged_parquet_is_an_error(arrow):
    data, draw = parquet(arrow, table(arrow, 20), row_group_size=7), random.Random(1)
    outcomes = set()
    for number in range(200):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 5)):
            damaged[draw.randrange(len(data) // 2 * (number % 2), len(data))] = draw.randrange(256)
        try:
            outcomes.add(len(read(bytes(damaged), "parquet", on_bad=lambda error: None)))
        except CorpusError:
            outcomes.add(None)
    assert outcomes >= {None, 20}


# The command line


def test_align_writes_tables(cli, model, tmp_path):
    text = 'label,premise,hypothesis\n1,"old, red dog",red dog\n"a\nb",dog,the dog\n'
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text(text)
    options = ("--columns", "premise,hypothesis", "--model", model)
    code, out, err = cli("align", str(tmp_path / "one.csv"), *options, "--tokens", "--confidence")
    assert code == 0, err
    rows = rows_of(out)
    assert list(rows[0]) == ["label", "premise", "hypothesis", "premise_tokens", "hypothesis_tokens", "links",
                             "probabilities"]  # fmt: skip
    assert [row["label"] for row in rows] == ["1", "a\nb"] and rows[0]["premise"] == "old, red dog"
    assert rows[0]["premise_tokens"] == "old , red dog" and rows[0]["links"] == "2-0 3-1"
    assert len(rows[0]["probabilities"].split()) == 2
    code, out, err = cli("align", str(tmp_path / "*.csv"), *options)
    assert (code, len(rows_of(out))) == (0, 4) and out.count("premise") == 1
    for more in ((), ("--from", "csv")):
        assert len(rows_of(cli("align", "-", *options, *more, stdin=text)[1])) == 2
    assert (
        json.loads(cli("align", *options, stdin='{"premise": "dog", "n": 1, "hypothesis": "dog"}\n')[1])["n"] == 1
    )
    code, out, err = cli("align", "-", *options, "--to", "pharaoh", stdin=text)
    assert (code, out) == (0, "2-0 3-1\n0-1\n")
    assert cli("align", str(tmp_path / "one.csv"), *options, "--output", str(tmp_path / "out.tsv"))[0] == 0
    assert len(rows_of((tmp_path / "out.tsv").read_text(), "\t")) == 2
    code, out, err = cli("align", str(tmp_path / "none*.csv"), *options)
    assert code == 2 and "no file fits" in err
    for wrong in ("premise", "a\nb,c"):
        code, out, err = cli("align", str(tmp_path / "one.csv"), "--columns", wrong, "--model", model)
        assert code == 2 and "give two names" in err
    code, out, err = cli("align", str(tmp_path / "one.csv"), "--columns", "premise,other", "--model", model)
    assert code == 2 and "one.csv:1: there is no column 'other'" in err


def test_align_names_file_and_line_of_several(cli, model, tmp_path):
    (tmp_path / "a.csv").write_text("premise,hypothesis\ndog,dog\n")
    (tmp_path / "b.csv").write_text(f"premise,hypothesis\nred,red\n{'x' * 2000},dog\nred\n")
    command = ("align", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--columns", "premise,hypothesis",
               "--model", model)  # fmt: skip
    code, out, err = cli(*command)
    assert code == 2 and "b.csv:3: token 1 of the source has 2,000 letters" in err
    code, out, err = cli(*command, "--skip-bad")
    assert code == 0 and [row["links"] for row in rows_of(out)] == ["0-0", "0-0", "", ""]
    assert "b.csv:4: the row has 1 fields" in err and "skipped 2 bad items" in err


def test_align_reads_and_writes_parquet(cli, model, tmp_path, arrow):
    made = table(arrow, 50)
    arrow.parquet.write_table(made, tmp_path / "x.parquet")
    out = tmp_path / "out.parquet"
    command = ("align", str(tmp_path / "x.parquet"), "--columns", "premise,hypothesis", "--model", model)
    code, said, err = cli(*command, "--output", str(out), "--workers", "2", "--batch-size", "7")
    assert code == 0 and not said, err
    found = arrow.parquet.read_table(out)
    assert found.drop_columns("links").equals(made) and set(found["links"].to_pylist()) == {"1-1"}
    assert cli(*command, "--to", "pharaoh")[1] == "1-1\n" * 50
