"""Pairs to annotate, and the page of `annotate` served in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving import until

from jacana_torch import corpora
from jacana_torch.annotation.journal import Journal, header_of
from jacana_torch.annotation.proposals import Proposal
from jacana_torch.annotation.session import Session

SUBJECTS = "Nina Omar Lena Paul Ida Hugo Mara Tom".split()
STORIES = (
    ("{} passed away in the night .", "At night , {} died ."),
    ("{} sold the old boat last spring .", "The boat was sold by {} in spring ."),
    ("Heavy rain kept {} from the mountain road .", "{} could not take the road because of rain ."),
    ("The committee will meet {} again on Monday .", "On Monday , the committee meets {} once more ."),
    ("{} put up with the noise", "The noise was tolerated by {}"),
)


def corpus(folder: Path, number: int = 40) -> Path:
    """A file of pairs without links; some are longer at the source and some at the target."""
    lines = []
    for k in range(number):
        source, target = (text.format(SUBJECTS[k // 5 % 8]) for text in STORIES[k % 5])
        lines.append(f"{source}\t{target}\n")
    path = folder / "pairs.txt"
    path.write_text("".join(lines))
    return path


@contextmanager
def session_served(path, names=("ann", "ben"), refit=None, access=None) -> Iterator[tuple[str, Any, Session]]:
    """The application in this process, with some links and probabilities in place of a model's."""
    from jacana_torch.annotation.app import Settings, application
    from jacana_torch.annotation.refit import Refit
    from jacana_torch.serve import Limits
    from jacana_torch.serve.server import listening, server, url

    examples = list(corpora.read(str(path)))
    found = [
        Proposal(frozenset({(0, 0)}), frozenset(), ((0, 0, 0.9), (1, 1, 0.4)), 1 / (k + 1)) for k in range(99)
    ]
    journal = Journal(path.with_name("journal"), header_of("pairs.txt", [example.pair for example in examples]))
    session = Session(examples, journal, found[: len(examples)], "confidence", names)
    app = application(
        session, Settings("pairs.txt", "# One\n- item <b>\nwords"), refit or Refit(None, ""), access=access
    )
    with listening("127.0.0.1", 0) as listener:
        running = server(app, Limits(grace=0.5))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: running.started or not thread.is_alive())
        try:
            yield url(listener), running, session
        finally:
            running.should_exit = True
            thread.join(30)
            journal.close()
