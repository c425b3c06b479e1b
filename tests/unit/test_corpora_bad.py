"""Bad files: errors with file and line, skipping, guessing formats, random bytes, memory."""

from __future__ import annotations

import gc
import io
import json
import random
import time
import tracemalloc

import pytest

from jacana_torch import corpora
from jacana_torch.errors import CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util.json_values import shown

GOOD_MSR = "# sentence pair 1\na b\nNULL ({ / / }) c ({ 1 / / }) \n"


def example(source="a b", target="c d", sure=((0, 0),), id=None) -> Example:
    pair = SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())), id)
    return Example(pair, Alignment(len(pair.source), len(pair.target), frozenset(sure)))


def array(*items: str) -> str:
    return "[\n" + ",\n".join(items) + "\n]\n"


def jacana(sure="0-0", source="a b") -> str:
    return json.dumps({"id": "1", "source": source, "target": "c d", "sureAlign": sure, "possibleAlign": ""})


# format, the file, the line of the error, what it says, how many good items are around the bad one
BAD = [
    ("text", "a\tb\nc\nd\te\n", 2, "no tab and no ' ||| '", 2),
    ("text", "a\tb\tc\n", 1, "3 columns", 0),
    ("text", "a ||| b ||| 0-0\n", 1, "pharaoh or talp", 0),
    ("text", b"a\tb\nc\t\xff\nd\te\n", 2, "byte 0xff in column 3 is not UTF-8", 2),
    ("pharaoh", "a\tb\t0-0\na\tb\t0-1\n", 2, "link 0-1 is out of range for 1 x 1", 1),
    ("pharaoh", "a\tb\t0p0\n", 1, "'0p0' is a possible link.*talp", 0),
    ("pharaoh", "0-0 1-1\n", 1, "has links but no sentences", 0),
    ("talp", "a\tb\t0-0\tx\n", 1, "4 columns", 0),
    ("talp", "a\tb\t0-0 0_0\n", 1, "'0_0' is not a link", 0),
    ("talp", "a\tb\t-1-0\n", 1, "'-1-0' is not a link", 0),
    ("talp", "a\tb\t\u0660-0\n", 1, "is not a link", 0),
    ("talp", f"a\tb\t{'9' * 6000}-0\n", 1, "is not a link", 0),
    ("jsonl", '{"source": ["a"], "target": ["b"]}\n{"source": ["a"]\n', 2, "broken JSON", 1),
    ("jsonl", "[1]\n", 1, "expected a JSON object", 0),
    ("jsonl", '{"source": ["a"]}\n', 1, "no 'target' among the keys 'source'", 0),
    ("jsonl", '{"source": "a", "target": [1]}\n', 1, "'target' should be a list of tokens", 0),
    ("jsonl", '{"source": "a", "target": [""]}\n', 1, "token 0 of 'target' is empty", 0),
    ("jsonl", '{"source": "a", "target": "b", "sure": [[0, 1]]}\n', 1, "link 0-1 is out of range", 0),
    ("jsonl", '{"source": "a", "target": "b", "sure": [[0, -1]]}\n', 1, "out of range", 0),
    (
        "jsonl",
        '{"source": "a", "target": "b", "sure": [[0, true]]}\n',
        1,
        r"'sure' should be a list of \[i, j\]",
        0,
    ),
    ("jsonl", '{"source": "a", "target": "b", "sure": [[0, 0.0]]}\n', 1, "'sure' should be a list", 0),
    ("jsonl", '{"source": "a", "target": "b", "sure": {"00": 1}}\n', 1, "'sure' should be a list", 0),
    ("jsonl", '{"source": "a", "target": "b", "possible": 3}\n', 1, "'possible' should be a list", 0),
    ("jsonl", '{"source": "a", "target": "b", "sure": [], "score": NaN}\n', 1, "NaN is not a number", 0),
    ("jsonl", '{"source": "a", "target": "b", "sure": [], "score": 1e999}\n', 1, "'score' should be a number", 0),
    (
        "jsonl",
        '{"source": "a", "target": "b", "sure": [], "confidence": {"0-1": 1}}\n',
        1,
        "'confidence' of '0-1'",
        0,
    ),
    ("jsonl", '{"source": "a", "target": "b", "source_pos": ["X", "Y"]}\n', 1, "2 values for 1 tokens", 0),
    ("jsonl", '{"source": "a", "target": "b", "source_head": [1]}\n', 1, "'source_head' should have", 0),
    ("jsonl", '{"source": "a", "target": "b", "target_pos": [3]}\n', 1, "'target_pos' should have", 0),
    ("jsonl", '{"source": "\\ud83d", "target": "b"}\n', 1, "half a surrogate pair", 0),
    ("jsonl", '{"source": "a", "target": "b", "id": [1]}\n', 1, "'id' should be a string", 0),
    ("jsonl", "{" + '"source": ' + "[" * 100_000 + "\n", 1, "nested too deeply", 0),
    ("jacana", array(jacana(), jacana("0-9"), jacana()), 3, "link 0-9 is out of range", 2),
    ("jacana", array(jacana(), '{"source": "a", }', jacana()), 3, "broken JSON", 2),
    ("jacana", array('{"source": "}{", "x": 1}', jacana()), 2, "no 'target'", 1),
    ("jacana", array(jacana(), jacana(source="Z")).encode().replace(b"Z", b"\xe9"), 3, "0xe9 is not UTF-8", 1),
    ("jacana", array(jacana('0-0"')), 2, "is not a link", 0),
    ("jacana", array(jacana(), '{"source": 1, "target": ""}'), 3, "'source' should be a string", 1),
    ("msr", GOOD_MSR + "# sentence pair 2\na b\n" + GOOD_MSR, 4, "2 lines for this pair", 2),
    ("msr", GOOD_MSR + "# sentence pair 2\na\nNULL ({ / / }) c ({ 2 / / })\n", 6, "link 1-0 is out of range", 1),
    ("msr", GOOD_MSR + "# sentence pair 2\na\nNULL ({ / / }) c ({ 0 / / })\n", 6, "'0' is not a position", 1),
    ("msr", GOOD_MSR + "# sentence pair 2\na\nNULL ({ / / }) c ({ q1 / / })\n", 6, "'q1' is not a position", 1),
    (
        "msr",
        GOOD_MSR + "# sentence pair 2\na\nNULL ({ / / }) c ({ 1 / \n",
        6,
        r"expected 'NULL .* not 'c \(\{ 1",
        1,
    ),
    ("msr", GOOD_MSR + "# sentence pair 2\na\nc ({ 1 / / })\n", 6, "expected 'NULL", 1),
    ("msr", "# sentence pair 2\na\n\n" + GOOD_MSR, 3, "expected 'NULL", 1),
    ("msr", "what is this\n" + GOOD_MSR, 1, "expected '# sentence pair", 1),
    ("msr", b"# sentence pair 2\n\xff\nNULL ({ / / })\n" + GOOD_MSR.encode(), 2, "not UTF-8", 1),
    ("multimwa", "0\ta\tN/A\tb\tN/A\t1\t1\n", 1, "7 columns instead of 8", 0),
    (
        "multimwa",
        "0\ta\tN/A\tb\tN/A\t1\t1\t0-0\n1\ta\tN/A\tb\tN/A\t1\t1\t1-0\t\n",
        2,
        "link 1-0 is out of range",
        1,
    ),
]


@pytest.mark.parametrize(("format", "data", "line", "says", "good"), BAD)
def test_errors_name_the_line_and_can_be_skipped(tmp_path, format, data, line, says, good):
    path = tmp_path / "the file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(CorpusError, match=says) as caught:
        list(corpora.read(path, format))
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert len(str(caught.value)) < len(str(path)) + 300 and "\n" not in str(caught.value)
    skip = corpora.SkipBad()
    assert len(list(corpora.read(path, format, on_bad=skip))) == good
    assert skip.count == 1 and skip.first[0].line == line
    instead = example(id="instead")
    assert len(list(corpora.read(path, format, on_bad=lambda error: instead))) == good + 1


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        ("{}", 1, "begins with \\["),
        ("", 1, "here is the end of the file"),
        (array(jacana())[:-3], 2, "after an object comes , or ]"),
        (array(jacana())[:-9], 2, "has no end"),
        (f"[{jacana()},\n]", 2, "expected an object"),
        (f"[{jacana()}\n{jacana()}]", 2, "after an object comes"),
        (f"[{jacana()}]\n\nmore", 3, "there is more: 'more'"),
        ("[\n1]", 2, "expected an object"),
    ],
)
def test_a_broken_array_ends_the_reading_even_when_skipping(data, line, says):
    with pytest.raises(CorpusError, match=says) as caught:
        list(corpora.read(io.StringIO(data), "jacana", on_bad=corpora.SkipBad()))
    assert caught.value.line == line


def test_naacl_without_text_is_an_error_with_advice():
    with pytest.raises(CorpusError, match="text="):
        list(corpora.read(io.BytesIO(b"1 1 1 S\n")))


@pytest.mark.parametrize(
    ("lines", "line", "says"),
    [
        ("1 1 1\n2 1 9 S\n", 2, "link 1 9 is out of range for 2 x 2"),
        ("1 1\n", 1, "expected 'sentence i j"),
        ("1 1 1\n1 1 1 X\n", 2, "expected 'sentence i j"),
        ("one 1 1\n", 1, "expected 'sentence i j"),
        ("0 1 1\n", 1, "no sentence 0"),
        ("3 1 1\n", 1, "no sentence 3"),
        ("1 1 1 S 1e999\n", 1, "beyond all numbers"),
    ],
)
def test_naacl_lines_that_are_wrong(lines, line, says):
    def found(on_bad=None):
        text = io.StringIO("a b\tc d\na b\tc d\n")
        return list(corpora.read(io.StringIO(lines), "naacl", text=text, on_bad=on_bad))

    with pytest.raises(CorpusError, match=says) as caught:
        found()
    assert caught.value.line == line
    skip = corpora.SkipBad()
    # A line that names its sentence spoils that sentence, so that no half of a gold alignment gets through.
    spoilt = says.startswith(("link", "expected", "beyond")) and lines[0] != "o"
    assert len(found(skip)) == (1 if spoilt else 2) and skip.count == 1


def test_files_that_do_not_match(tmp_path):
    (tmp_path / "e").write_text("a b\nc\n")
    (tmp_path / "f").write_text("a b\n")
    (tmp_path / "tagged").write_text("<s snum=1> a b </s>\n<s snum=3> c </s>\n")
    links = "0-0\n0-0\n"
    for text, says in (
        (("e", "f"), r"f:2: ends after 1 lines, but .*e has more"),
        (("f", "e"), r"f:2: ends after 1 lines"),
        (("e", "tagged"), "tagged:1: the sentence is number 1 here and None in"),
    ):
        with pytest.raises(CorpusError, match=says):
            list(corpora.read(io.StringIO(links), text=tuple(tmp_path / name for name in text)))
    pairs = "a\tb\n" * 3
    with pytest.raises(CorpusError, match="<stream>:3: ends after 2 lines of links"):
        list(corpora.read(io.StringIO(links), text=io.StringIO(pairs)))
    with pytest.raises(CorpusError, match="<stream>:2: has links for more pairs"):
        list(corpora.read(io.StringIO(links), text=io.StringIO("a\tb\n")))
    with pytest.raises(CorpusError, match="jsonl has its own text; links without are in naacl, pharaoh, talp"):
        list(corpora.read(io.StringIO("{}"), "jsonl", text=io.StringIO(pairs)))


# ---- guessing


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("x.jsonl", b"", "jsonl"), ("x.JSONL.gz", b"?", "jsonl"), ("x.talp", b"0-0\n", "talp"),
        ("x.json", b'[\n  {"id"', "jacana"), ("x.json", b'{"id": 1}\n', "jsonl"), ("", b"[]", "jacana"),
        ("x.txt", b"0-0 1-1\n", "pharaoh"), ("x.wa", b"", "naacl"), (None, b"a\tb\r\n", "text"),
        (None, b"\n0-0\n0p1\n", "talp"), (None, b"1 1 1 S\n1 2 2\n", "naacl"), (None, b"\n \n", "text"),
        (None, b"bad line first\na\tb\nc\td\n", "text"), (None, b"a ||| b\n", "text"),
        ("x.tsv", b"a\tb\t\nc\td\t0-0", "pharaoh"), ("x.tsv", b"a\tb\t\nc\td\t0p0\n", "talp"),
        ("x.align.txt", b"\xef\xbb\xbf\xef\xbb\xbf# sentence pair 1\r\n", "msr"),
        ("x.tsv", b"0:0\ta\tN/A\tb\tN/A\t1\t1\t\t\n", "multimwa"), (None, b"a\tb\t\nc\td\t \n", "pharaoh"),
        (None, b"1 - 2\t3-4\n", "text"),
    ],
)  # fmt: skip
def test_guessing(name, head, format):
    assert corpora.guess(name, head) == format


@pytest.mark.parametrize("head", [b"one sentence\n", b"\x00\x01\x02", b"a\tb\tc\n", b'{"x": "y"}\tb\n'])
def test_a_failed_guess_lists_the_formats(head):
    with pytest.raises(CorpusError, match=rf"--from \(one of {', '.join(corpora.formats())}\)"):
        corpora.guess("x.txt", head)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("a b\tc\nno target\n", "the first lines could be text, but not 'no target'"),
        ("a b\tc\nd\te\n\nno\nnor this\n", "but not 'nor this'"),
        ("neither\na b\tc\n", "from the first line, 'neither'"),
    ],
)
def test_the_error_quotes_the_line_that_spoils_a_guess(head, says):
    with pytest.raises(CorpusError, match=says):
        corpora.guess("some.txt", head.encode())


def test_names_to_write_to(tmp_path):
    for name, says in (("x.txt", "does not say the format"), ("x.json", "jacana or jsonl"), ("-", "--to")):
        with pytest.raises(CorpusError, match=says):
            corpora.convert(tmp_path / "never opened", tmp_path / name if name != "-" else name)


# ---- random bytes, sizes, memory


@pytest.mark.parametrize("format", [None, *corpora.formats()])
def test_random_bytes_are_a_clear_error_and_fast(format):
    for seed in range(2):
        data = random.Random(seed).randbytes(100_000)
        for prefix in (b"", b"[{", b'[{"', b"\x1f\x8b", b"# sentence pair 1\n", b'{"', b"1 1 1 "):
            start = time.process_time()
            with pytest.raises(CorpusError) as caught:
                list(corpora.read(io.BytesIO(prefix + data), format))
            assert time.process_time() - start < 2
            message = str(caught.value)
            assert len(message) < 400 and message.isprintable()


@pytest.mark.parametrize("format", ["jsonl", "jacana"])
def test_nesting_of_any_depth_is_one_bad_item(format):
    for depth in (*range(2, 1100), 50_000):
        data = '{"source": "a", "target": ' + "[" * depth + "]" * depth + "}\n"
        skip = corpora.SkipBad()
        assert (
            list(corpora.read(io.StringIO(data if format == "jsonl" else f"[{data}]"), format, on_bad=skip)) == []
        )
        assert skip.count == 1 and len(str(skip.first[0])) < 200


def test_a_value_too_deep_to_quote_has_a_message():
    value: list = []
    for _ in range(50_000):
        value = [value]
    assert shown(value) == "something nested too deeply" and shown([1]) == "'[1]'"


@pytest.mark.parametrize(
    "format", ["jsonl", *(pytest.param(x, marks=pytest.mark.slow) for x in ("jacana", "text", "msr"))]
)
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    def peak(number: int) -> int:
        many = (example("some words " * 10, "other words " * 10, [(n % 20, 3)], str(n)) for n in range(number))
        assert corpora.write(many, tmp_path / "file", format) == number
        gc.collect()
        tracemalloc.start()
        try:
            assert sum(1 for _ in corpora.read(tmp_path / "file", format)) == number
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is loaded and cached at the first reading is no matter of the file's
    assert peak(4_000) < 1.5 * peak(1_000)  # a reader that held the file would need four times as much


def test_long_lines_and_long_objects_take_linear_time():
    long = "word " * 200_000
    for format in ("text", "jacana", "jsonl", "pharaoh", "msr", "multimwa"):
        stream = io.BytesIO()
        corpora.write([example(long, "c d", [(199_999, 1)])], stream, format)
        stream.seek(0)
        start = time.process_time()
        (found,) = corpora.read(stream, format)
        assert len(found.pair.source) == 200_000
        assert time.process_time() - start < 5
