"""Standard streams that are closed, full or gone, as daemons and shells leave them: data go out, errors say so."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAIRS, LINKS = "the dog\ta dog\nno tab\nred\tred\n", "1-1\n\n0-0\n"


def run(closed: str, *arguments: str, stdin: str = PAIRS) -> tuple[int, str, str]:
    """Run a command with a shell's redirections; what cannot be seen is empty."""
    command = f"exec {shlex.join([sys.executable, '-m', 'jacana_torch', *arguments])} {closed}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", command], input=stdin, capture_output=True, text=True, env=environment, timeout=120
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_without_stderr_all_lines_go_out(closed, model):
    assert run(closed, "align", "--model", model, "--skip-bad") == (0, LINKS, "")
    code, out, _ = run(closed, "align", "--model", model)
    assert (code, out) == (2, "1-1\n")


def test_a_reader_of_messages_that_is_gone_costs_no_line(model):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "jacana_torch", "align", "--model", model, "--skip-bad"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(writer, "wb") as stderr:
        done = subprocess.run(
            command, input=PAIRS, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, timeout=120
        )
    assert (done.returncode, done.stdout) == (0, LINKS)


def test_closed_stdin_and_stdout_are_errors_that_say_so(model):
    code, _, err = run("<&-", "align", "--model", model)
    assert (code, err) == (
        2,
        "jacana-torch: error: <stdin>: cannot be read: standard input is closed: name a file to read\n",
    )
    for arguments in (["align", "--model", model, "--skip-bad"], ["models"]):
        code, out, err = run(">&-", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "standard output is closed: redirect it" in err


def test_a_file_is_written_without_any_stream(model, tmp_path):
    """Closed numbers are given to the next files that are opened: messages must not end up in those."""
    given, out = tmp_path / "pairs.txt", tmp_path / "links"
    given.write_text(PAIRS)
    arguments = ["align", str(given), "--model", model, "--skip-bad", "--output", str(out)]
    assert run("<&- >&- 2>&-", *arguments) == (0, "", "") and out.read_text() == LINKS
    assert given.read_text() == PAIRS
