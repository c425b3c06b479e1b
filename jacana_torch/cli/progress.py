"""How far `jacana-torch align` is, on a terminal: numbers of pairs in, a line on stderr that is redrawn out.

Nothing is shown, or even loaded, before a second has passed: one pair at a prompt should give its links alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER, REDRAWN_AFTER = 1.0, 0.1  # seconds


class Counter:
    """Pairs done so far; `fraction` says how much of the input was read, or None where nobody knows.

    Drawn only when something was done, because a thread that draws would stand in the way of forked workers.
    """

    def __init__(self, fraction: Callable[[], float | None], shown: bool) -> None:
        self._fraction, self._shown = fraction, shown
        self._progress: Progress | None = None
        self._done = 0
        self._begun = self._drawn = time.monotonic()

    def __enter__(self) -> Counter:
        return self

    def advance(self, number: int) -> None:
        self._done += number
        now = time.monotonic()
        if not self._shown or now - self._drawn < (REDRAWN_AFTER if self._progress else SHOWN_AFTER):
            return
        if self._progress is None:
            self._progress = _progress(self._fraction() is not None)
            self._progress.start()
        rate = self._done / (now - self._begun)
        self._progress.update(
            self._progress.task_ids[0], completed=self._fraction() or 0.0, pairs=self._done, rate=rate
        )
        self._progress.refresh()
        self._drawn = now

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _progress(known: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    figures = TextColumn("{task.fields[pairs]:,} pairs, {task.fields[rate]:,.0f}/s")
    columns = (BarColumn(), TaskProgressColumn(), figures) if known else (figures,)
    console = Console(file=sys.stderr)
    progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, auto_refresh=False)
    progress.add_task("align", total=1.0, pairs=0, rate=0.0)
    return progress
