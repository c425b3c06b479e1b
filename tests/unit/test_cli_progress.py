"""Progress of `align`: nothing in a pipe or in the first second, then numbers on one line of a terminal."""

from __future__ import annotations

import io
import os
import re
import select
import sys
from collections.abc import Iterator

import pytest

from jacana_torch.cli import main, progress

pty = pytest.importorskip("pty", reason="needs a terminal, which this system has none to make of")


class Terminal:
    """A terminal, and what it shows."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.stream = open(self.theirs, "w", closefd=False)

    def text(self) -> str:
        """All output so far; the kernel passes it on after a while."""
        self.stream.flush()
        seen = b""
        while select.select([self.ours], [], [], 0.5)[0]:
            seen += os.read(self.ours, 1 << 16)
        return seen.decode()


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    yield terminal
    terminal.stream.close()
    os.close(terminal.ours)
    os.close(terminal.theirs)


def outcomes(batches: int = 3) -> Iterator[tuple[list, list]]:
    yield from [([None] * 1500, [])] * batches


def drawn(terminal: Terminal, fraction: float | None) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.stream)  # not in the fixture, after which pytest puts its own there
        assert len(list(progress.with_progress(outcomes(), lambda: fraction))) == 3
    return terminal.text()


def test_numbers_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(progress, "REDRAWN_AFTER", 0.0)
    text = drawn(terminal, 0.25)
    assert "25%" in text and re.search(r"4,500 pairs, [\d,]+/s", text) and "0:00:0" in text
    last = text.split("pairs,")[-2]
    assert "100%" in last and "25%" not in last  # and it stays
    text = drawn(terminal, None)  # of a pipe, no share is known
    assert "%" not in text and re.search(r"4,500 pairs, [\d,]+/s", text)


def test_nothing_in_the_first_second(terminal):
    assert drawn(terminal, 0.5) == ""


def test_the_workers_stop_with_the_display(terminal):
    given = outcomes()
    shown = progress.with_progress(given, lambda: None)
    next(shown)
    shown.close()
    assert list(given) == []


def test_no_thread_prevents_forking(terminal, monkeypatch):
    from jacana_torch.util.parallel import usual_method

    before = usual_method()
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    shown = progress.with_progress(outcomes(), lambda: 0.5)
    next(shown), next(shown)
    assert terminal.text() and usual_method() == before
    shown.close()


@pytest.mark.parametrize("to_file", [True, False])
def test_no_numbers_among_links_on_a_terminal(terminal, monkeypatch, model, tmp_path, to_file):
    """Links on the terminal show the progress themselves."""
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"red dog\tdog\n" * 100)))
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    assert main(["align", "--model", model, *(["--output", str(tmp_path / "out.talp")] if to_file else [])]) == 0
    text = terminal.text()
    assert ("/s" in text) == to_file and ("1-0" in text) != to_file
