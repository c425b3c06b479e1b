"""Reading takes time linear in the length of a line, in every format and while guessing it."""

from __future__ import annotations

import io
import time

import pytest

from jacana_torch import corpora
from jacana_torch.annotate.sidecars import READERS
from jacana_torch.errors import CorpusError

# What the parts of a format begin with, and what is repeated after it: a pattern that can divide a repetition in
# more than one way tries all divisions.
BEGINNINGS = ("", "1 1 1 S ", "# sentence pair 1\na b\nNULL ({ / / }) ", '{"source": "', '[{"source": ', "a\tb\t")
PIECES = (
    "1", "a", " ", "\t", "|||", " ||| ", "0-0 ", "({", "}) ", "{", '"', "\\", "[", "1 ", "1.", "# ", "\naaaaaaa"
)  # fmt: skip
SHORT, TIMES = 4_000, 4
FLOOR = 0.004  # seconds; below, times are noise
TEXT = "a b\tc d\n" * 3


def attempt(data: bytes, format: str | None) -> None:
    text = io.StringIO(TEXT) if format is not None and corpora.format_named(format).read is None else None
    try:
        for _ in corpora.read(io.BytesIO(data), format, on_bad=corpora.SkipBad(), text=text):
            pass
    except CorpusError:
        pass


def seconds(work, *arguments) -> float:
    """The shortest of up to three runs: others use the machine as well."""
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        work(*arguments)
        least = min(least, time.process_time() - start)
        if least < FLOOR:
            break
    return least


@pytest.mark.parametrize("format", [None, *corpora.formats()])
def test_four_times_as_much_takes_four_times_as_long(format):
    for beginning in BEGINNINGS:
        for piece in PIECES:
            short, long = (f"{beginning}{piece * (n // len(piece))}x\n".encode() for n in (SHORT, TIMES * SHORT))
            taken = seconds(attempt, long, format)
            if taken > FLOOR:
                least = max(seconds(attempt, short, format), FLOOR / TIMES)
                assert taken < 2.5 * TIMES * least, (beginning, piece)


@pytest.mark.parametrize("name", READERS)
def test_sidecars_too(tmp_path, name):
    def attempt_file(path):
        try:
            READERS[name](path)
        except CorpusError:
            pass

    rows = (
        "1\t{}\tx\tNN\tNN\t_\t0\troot\t_\tNER={}\n",
        "{}\nNN\nroot\n0\n-\n\n{}\n",
        '{{"source_ner": ["{}-B", "{}"]}}\n',
    )
    for row in rows:
        for piece in (*PIECES, "-B", "B-", "|", "NER=", "a\tb\nN\tN\n"):
            paths = []
            for n in (SHORT, TIMES * SHORT):
                paths.append(tmp_path / f"{n}.sidecar")
                many = piece * (n // len(piece))
                paths[-1].write_text(row.format(many, many))
            taken = seconds(attempt_file, paths[1])
            if taken > FLOOR:
                least = max(seconds(attempt_file, paths[0]), FLOOR / TIMES)
                assert taken < 2.5 * TIMES * least, (row, piece)


@pytest.mark.parametrize("number", ["1" * 20_000 + "x", "." * 20_000, "1" * 20_000 + "." + "1" * 20_000 + "e"])
def test_a_confidence_that_is_none(number):
    """This took 78 seconds at 40,000 digits, also while the format was guessed."""
    line = f"1 1 1 S {number}\n".encode()
    assert seconds(attempt, line, "naacl") < 0.5 and seconds(attempt, line, None) < 0.5
