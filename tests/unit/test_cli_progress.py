"""How far `align` is: nothing in a pipe, nothing in the first second, then figures on a terminal's one line."""

from __future__ import annotations

import io
import os
import re
import select
import sys

import pytest

from jacana_torch.cli import progress as cli_progress
from jacana_torch.cli.progress import Counter

pty = pytest.importorskip("pty", reason="needs a terminal, which this system has none to make of")


class Terminal:
    """A terminal as seen from behind the glass."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.stream = open(self.theirs, "w", closefd=False)

    def text(self) -> str:
        """All that it was told; the kernel passes that on in its own time."""
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


def advanced(terminal: Terminal, fraction: float | None, shown: bool = True) -> str:
    with pytest.MonkeyPatch.context() as patch, Counter(lambda: fraction, shown) as counter:
        patch.setattr(sys, "stderr", terminal.stream)  # not in the fixture, after which pytest puts its own there
        for _ in range(3):
            counter.advance(1500)
    return terminal.text()


def test_figures_on_a_terminal(terminal, monkeypatch):
    monkeypatch.setattr(cli_progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(cli_progress, "REDRAWN_AFTER", 0.0)
    text = advanced(terminal, 0.25)
    assert "25%" in text and re.search(r"4,500 pairs, [\d,]+/s", text) and "0:00:0" in text
    text = advanced(terminal, None)  # whoever reads a pipe knows no share
    assert "%" not in text and re.search(r"4,500 pairs, [\d,]+/s", text)


def test_nothing_before_a_second_or_in_a_pipe(terminal, monkeypatch):
    assert advanced(terminal, 0.5) == ""
    monkeypatch.setattr(cli_progress, "SHOWN_AFTER", 0.0)
    assert advanced(terminal, 0.5, shown=False) == ""


def test_no_thread_is_in_the_way_of_workers(terminal, monkeypatch):
    from jacana_torch.util.parallel import usual_method

    before = usual_method()
    monkeypatch.setattr(cli_progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    with Counter(lambda: 0.5, True) as counter:
        counter.advance(1)
        assert terminal.text() and usual_method() == before


@pytest.mark.parametrize("to_file", [True, False])
def test_no_figures_among_links_on_a_terminal(terminal, monkeypatch, model, tmp_path, to_file):
    """Where links go to the terminal they say how far it is."""
    from jacana_torch.cli.align import align

    monkeypatch.setattr(cli_progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"red dog\tdog\n" * 100)))
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    align(model=model, output=str(tmp_path / "out.talp") if to_file else None)
    text = terminal.text()
    assert ("/s" in text) == to_file and ("1-0" in text) != to_file
