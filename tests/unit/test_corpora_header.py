"""First lines that name the columns: recognised, reported, decided explicitly, and never mistaken for a pair."""

from __future__ import annotations

import io

import pytest

from jacana_torch import corpora
from jacana_torch.corpora._header import name_columns
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

LINES = {
    "text": ("source\ttarget\n", "a b\tc\n"),
    "pharaoh": ("Sentence 1 ||| Sentence 2 ||| links\n", "a b ||| c ||| 0-0\n"),
    "talp": ("premise\thypothesis\talignment\n", "a b\tc\t0-0 1p0\n"),
    "multimwa": ("id\tsource\tx\ttarget\ty\tz\tzz\tsure\tpossible\n", "1\ta b\tN/A\tc\tN/A\t1\t1\t0-0\t\n"),
}


TABLES = corpora.formats(lambda one: one.write_table is not None)


def read(text: str, format: str | None = None, **more) -> list[tuple[str, str]]:
    found = corpora.read(io.StringIO(text), format, **more)
    return [(str(each.pair.source), str(each.pair.target)) for each in found]


def test_every_format_with_columns_is_here():
    assert set(LINES) == set(corpora.formats(lambda one: one.header))


@pytest.mark.parametrize("format", LINES)
def test_a_header_is_recognised_and_reported(format, caplog):
    header, line = LINES[format]
    assert corpora.guess(None, (header + line).encode()) == format
    for name in (format, None):
        caplog.clear()
        assert read(header + line * 2, name) == [("a b", "c")] * 2
        assert [record.getMessage() for record in caplog.records] == [
            "<stream>:1: the line names the columns and is not read as a pair (--no-header reads it)"
        ]


@pytest.mark.parametrize("format", LINES)
def test_it_is_decided_explicitly(format, caplog):
    line = LINES[format][1]
    assert read(line * 3, format, header=True) == read(line * 3, None, header=True) == [("a b", "c")] * 2
    assert read(line * 3, format, header=False) == [("a b", "c")] * 3
    assert not caplog.records
    assert read("source\ttarget\na\tb\n", header=False) == [("source", "target"), ("a", "b")]
    with pytest.raises(CorpusError, match="^<stream>:1: "):
        read(LINES["talp"][0], "talp", header=False)
    assert read("neither is a pair\n" + line, format, header=True) == [("a b", "c")]


def test_bytes_and_marks_before_it(caplog):
    assert read("\ufeffsource\ttarget\r\na\tb\r\n") == [("a", "b")]
    assert read("source\ttarget\n") == [] and read("source\ttarget") == []
    assert read("\nsource\ttarget\n", "text") == [("", ""), ("source", "target")]  # only the first line is one


@pytest.mark.parametrize("format", [None, "text", "multimwa"])
def test_columns_in_another_order_are_an_error(format):
    with pytest.raises(CorpusError, match="<stream>:1: the columns are named 'target' and 'source'.*--header"):
        read("target\tsource\na\tb\n", format)
    assert read("target\tsource\na\tb\n", "text", header=True) == [("a", "b")]


@pytest.mark.parametrize("name", sorted({*corpora.formats()} - {*LINES, *TABLES}))
def test_other_formats_have_no_header(name):
    with pytest.raises(ConfigError, match="only those of multimwa, pharaoh, talp, text have a header"):
        read("x\n", name, header=True)


@pytest.mark.parametrize(
    "line", ["the source\tthe target", "source\ta", "source\tsource", "sentence\tsentence", "\t"]
)
def test_pairs_are_no_headers(line):
    assert name_columns(line.split("\t")) is None
    assert len(read(f"{line}\na\tb\n", "text")) == 2


def test_names_are_compared_without_case_and_separators():
    for line in ("SENTENCE_1\tSentence-2", "Source \t target", '"text1"\t"text2"', "id\t#1 String\t#2 String"):
        assert name_columns(line.split("\t")) is not None
    assert name_columns(["x" * 50_000] * 3) is None


@pytest.mark.parametrize("format", LINES)
@pytest.mark.parametrize("words", [("source", "target"), ("target", "source"), ("\ufeffsource", "target")])
def test_a_pair_that_looks_like_a_header_comes_back(format, words):
    pair = SentencePair(Sentence((words[0],)), Sentence((words[1],)))
    examples = [Example(pair, Alignment(1, 1, frozenset({(0, 0)})))] * 2
    stream = io.BytesIO()
    assert corpora.write(examples, stream, format) == 2
    stream.seek(0)
    assert [each.pair.source.tokens for each in corpora.read(stream, format)] == [(words[0],)] * 2
