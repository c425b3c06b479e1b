"""Where corpora are read from and written to: streams, gzip, pipes, files; and links matched with gold."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys

import pytest

from jacana_torch import corpora
from jacana_torch.errors import CorpusError
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


def example(source="a b", target="c d", sure=((0, 0),), id=None) -> Example:
    pair = SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())), id)
    return Example(pair, Alignment(len(pair.source), len(pair.target), frozenset(sure)))


def test_gzip_is_read_and_damage_reported(tmp_path):
    pairs = [example(id=str(n)) for n in range(2000)]
    assert corpora.write(pairs, tmp_path / "x.jsonl.gz") == 2000
    data = (tmp_path / "x.jsonl.gz").read_bytes()
    assert gzip.decompress(data).startswith(b'{"id": "0"')
    assert list(corpora.read(tmp_path / "x.jsonl.gz")) == pairs
    (tmp_path / "named otherwise").write_bytes(data)
    assert list(corpora.read(tmp_path / "named otherwise")) == pairs
    for broken in (data[:-20], data[:400] + b"\x00" * 200 + data[600:], data[:15]):
        (tmp_path / "x.jsonl.gz").write_bytes(broken)
        with pytest.raises(CorpusError, match="gzip data is damaged|broken JSON"):
            list(corpora.read(tmp_path / "x.jsonl.gz"))
    corpora.write(pairs, tmp_path / "y.jsonl.gz")
    assert (tmp_path / "y.jsonl.gz").read_bytes() == data, "no time stamp and no name"


def test_every_kind_of_stream(tmp_path):
    data = '{"source": "ä", "target": "b", "sure": [[0, 0]]}\r\n'
    wanted = [example("ä", "b")]
    (tmp_path / "x").write_bytes(data.encode())
    with open(tmp_path / "x", encoding="utf-8") as text, open(tmp_path / "x", "rb", buffering=0) as raw:
        for stream in (text, raw, io.StringIO(data), io.BytesIO(data.encode())):
            assert list(corpora.read(stream)) == wanted
    assert list(corpora.read(str(tmp_path / "x"))) == wanted
    out = io.StringIO()
    assert corpora.write(wanted, out, "pharaoh") == 1
    assert out.getvalue() == "ä\tb\t0-0\n"
    with pytest.raises(CorpusError, match="ascii cannot hold the character 'ä'"):
        corpora.write(wanted, io.TextIOWrapper(io.BytesIO(), "ascii"), "text")


def test_standard_input_and_output_in_every_locale():
    code = "from jacana_torch import corpora; print(corpora.convert('-', '-', None, 'talp'), flush=True)"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="ä\u2028 ||| b ||| 0p0\n".encode(),
        capture_output=True,
        env=environment,
    )
    assert done.stdout == "ä\u2028\tb\t0p0\n1\n".encode(), done.stderr


def test_a_pipe_is_read_before_it_ends():
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as incoming, open(write_end, "wb", buffering=0) as outgoing:
        outgoing.write(b"a\tb\n")
        examples = corpora.read(incoming)
        assert next(examples).pair.source.tokens == ("a",)
        outgoing.write(b"c\td\n")
        assert next(examples).pair.source.tokens == ("c",)


@pytest.mark.parametrize("path", ["absent", "", "a\0b", "folder"])
def test_paths_that_cannot_be_read_or_written(tmp_path, path):
    (tmp_path / "folder").mkdir()
    full = tmp_path / path if path else ""
    for attempt in (lambda: corpora.read(full, "text"), lambda: corpora.align_to([], full)):
        with pytest.raises(CorpusError, match="cannot be read"):
            attempt()
    if path in ("folder", "absent"):
        with pytest.raises(CorpusError, match="cannot be written"):
            corpora.write([example()], full / "absent" / "x.jsonl")
    with pytest.raises(CorpusError, match="UTF-16"):
        corpora.read(io.BytesIO("a\tb\n".encode("utf-16")))


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.talp"
    path.write_text("what was there\n")
    path.chmod(0o640)

    def failing():
        yield example()
        raise RuntimeError("not the format's fault")

    with pytest.raises(RuntimeError):
        corpora.write(failing(), path)
    with pytest.raises(CorpusError, match=r"x.talp: pair 2: .*'a b'"):
        odd = Example(SentencePair(Sentence(("a b",)), Sentence(())), Alignment(1, 0))
        corpora.write([example(), odd], path)
    assert path.read_text() == "what was there\n" and os.listdir(tmp_path) == ["x.talp"]
    corpora.write([example()], path)
    assert path.read_text() == "a b\tc d\t0-0\n" and path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link.talp").symlink_to(path)
    corpora.write([example(), example()], tmp_path / "link.talp")
    assert (tmp_path / "link.talp").is_symlink() and len(path.read_text().splitlines()) == 2
    assert corpora.convert(path, path, "talp", "jsonl") == 2  # a file may be rewritten in place
    assert len(list(corpora.read(path, "jsonl"))) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path):
    """A pipe stands for every device: a failing test must not replace one of the machine's."""
    pipe = tmp_path / "pipe.talp"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert corpora.write([example()], pipe) == 1
        assert pipe.is_fifo() and os.read(reader, 100) == b"a b\tc d\t0-0\n"
    finally:
        os.close(reader)


def test_the_report_of_what_was_skipped():
    skip = corpora.SkipBad(keep=2, instead=example())
    assert skip.report() == ""
    assert len(list(corpora.read(io.StringIO("a\tb\nx\ny\nz\nc\td\n"), "text", on_bad=skip))) == 5
    assert skip.count == 3
    first, second, third, last = skip.report().splitlines()
    assert first == "skipped 3 bad items:" and "<stream>:2:" in second and "<stream>:3:" in third
    assert last == "  and 1 more"


# ---- predictions for gold


GOLD = [example(id="x"), example("a b c", "d", [(2, 0)], id="y"), example("", "e", [], id="z")]


def in_format(format: str, examples, **more) -> io.BytesIO:
    stream = io.BytesIO()
    corpora.write(examples, stream, format, **more)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("links_only", [False, True])
@pytest.mark.parametrize("format", corpora.formats(corpora.can_align))
def test_predictions_of_any_format(format, links_only):
    wanted = [each.gold for each in GOLD]
    assert corpora.align_to(GOLD, in_format(format, GOLD, links_only=links_only), format) == wanted
    if format != "tsv":  # whose lines could be those of other formats
        assert corpora.align_to(GOLD, in_format(format, GOLD, links_only=links_only)) == wanted
    if format in ("jsonl", "jacana", "msr", "multimwa"):
        assert corpora.align_to(GOLD, in_format(format, GOLD[::-1]), format) == wanted, "by id"


def test_predictions_by_order_without_ids():
    same = [example(id="x", sure=[(0, 0)]), example(id="x", sure=[(1, 1)])]
    assert corpora.align_to(same, in_format("jsonl", same)) == [each.gold for each in same]
    other = [example(id="p", sure=[(0, 0)]), example(id="q", sure=[(1, 1)])]
    assert corpora.align_to(same, in_format("jsonl", other)) == [each.gold for each in other]
    nothing = io.BytesIO(b"\n\n\n")
    assert corpora.align_to(GOLD, nothing) == [Alignment(2, 2), Alignment(3, 1), Alignment(0, 1)]
    assert corpora.align_to([], io.BytesIO(b"")) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("0-0\n0-0\n", "^<stream>:3: ends after 2 lines of links"),
        ("0-0\n0-0\n\n\n", "^<stream>:4: has links for more pairs than the text"),
        ("0-0\n0-1\n\n", "^<stream>:2: link 0-1 is out of range for 3 x 1"),
        ("0-0\nx\n\n", "^<stream>:2: 'x' is not a link"),
        ("1 1 1\n4 1 1\n", "^<stream>:2: there is no sentence 4"),
        ("1 1 1\n1 3 1\n", "^<stream>:2: link 3 1 is out of range"),
        ("a b\tc d\t\n", "has 1 pairs, and gold has 3"),
        (
            "a b\tc d\t\na b\td\t0-0\n\te\t\n",
            r"the source of pair 2 \('y'\) has 2 tokens and 3 in gold: 'a b' and",
        ),
        ("a b\tc d\na b c\td\n\te\n", r"pair 1 \('x'\) has no alignment"),
    ],
)
def test_predictions_that_do_not_fit(data, says):
    with pytest.raises(CorpusError, match=says):
        corpora.align_to(GOLD, io.StringIO(data))


def live(stream):
    """A source, and its items with pauses: tokens of the source side, or None for a pause."""
    source = corpora.Source(stream)
    return source, (item and item.pair.source.tokens for item in corpora.read_live(source, "text"))


def test_pauses_are_noticed():
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as incoming:
        with open(write_end, "wb", buffering=0) as outgoing:
            outgoing.write(b"a\tb\nc\td\n\ne\t")
            source, items = live(incoming)
            assert [next(items) for _ in range(4)] == [("a",), ("c",), (), None]  # half a line is not a line
            outgoing.write(b"f\n")
            assert [next(items) for _ in range(2)] == [("e",), None]
            outgoing.write(b"no tab\ng\th\ni\tj")
            with pytest.raises(CorpusError, match=":5: no tab"):
                next(items)
        assert source.may_stall is False and source.fraction() is None


def test_pauses_lose_nothing():
    """Lines of all lengths through a pipe that may be empty at any time."""
    made = "b''.join(b'%d %s\\tx\\n' % (n, b'y' * (n * 7919 % 3000)) for n in range(300))[:-1]"
    program = [sys.executable, "-c", f"import sys; sys.stdout.buffer.write({made})"]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as writer:
        found = [tokens for tokens in live(writer.stdout)[1] if tokens is not None]
    assert [int(tokens[0]) for tokens in found] == list(range(300))
    assert [len(tokens[1]) if n else 0 for n, tokens in enumerate(found)] == [n * 7919 % 3000 for n in range(300)]


def test_files_have_no_pauses_and_a_known_fraction(tmp_path):
    plain, packed = tmp_path / "x.txt", tmp_path / "x.txt.gz"
    plain.write_bytes(b"".join(b"%d\t%d\n" % (n, n) for n in range(60_000)))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        source, items = live(path)
        fractions = [source.fraction() for tokens in items if int(tokens[0]) % 10_000 == 0]
        assert fractions == sorted(fractions) and 0 < fractions[0] < fractions[-1] <= 1
        assert source.may_stall is False


def test_a_stream_that_select_cannot_wait_for_may_stall():
    source, items = live(io.BytesIO(b"a\tb\n"))
    assert list(items) == [("a",)] and source.may_stall and source.fraction() is None
    source, items = live(io.BytesIO(gzip.compress(b"a\tb\n")))
    assert list(items) == [("a",)] and not source.may_stall
