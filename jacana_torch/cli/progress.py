"""The progress of `align`, drawn on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from .loading import Batch, Outcome

SHOWN_AFTER, REDRAWN_AFTER = 1.0, 0.1  # seconds; a single pair at a prompt should give its links alone


def with_progress(
    outcomes: Generator[tuple[Batch, list[Outcome]], None, None], fraction: Callable[[], float | None]
) -> Generator[tuple[Batch, list[Outcome]], None, None]:
    """Draw on stderr how many pairs are done, and how much of the input if that is known.

    It draws between batches: a thread that draws would prevent forking.
    """
    progress: Progress | None = None
    done, begun = 0, time.monotonic()
    drawn = begun
    with closing(outcomes):
        try:
            for batch, found in outcomes:
                yield batch, found
                done += len(batch)
                now = time.monotonic()
                if now - drawn < (REDRAWN_AFTER if progress else SHOWN_AFTER):
                    continue
                if progress is None:
                    progress = _progress(fraction() is not None)
                    progress.start()
                rate = done / (now - begun)
                progress.update(progress.task_ids[0], completed=fraction() or 0.0, pairs=done, rate=rate)
                progress.refresh()
                drawn = now
            if progress is not None:  # what stays on the terminal: all of it is done
                rate = done / (time.monotonic() - begun)
                progress.update(progress.task_ids[0], completed=1.0, pairs=done, rate=rate)
        finally:
            if progress is not None:
                progress.stop()


def _progress(known: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    figures = TextColumn("{task.fields[pairs]:,} pairs, {task.fields[rate]:,.0f}/s")
    columns = (BarColumn(), TaskProgressColumn(), figures) if known else (figures,)
    console = Console(file=sys.stderr)
    progress = Progress(*columns, TimeElapsedColumn(), console=console, auto_refresh=False)
    progress.add_task("align", total=1.0, pairs=0, rate=0.0)
    return progress
