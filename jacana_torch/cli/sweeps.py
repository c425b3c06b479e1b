"""The results of a sweep, from files that its jobs write: launchers run jobs in other processes."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

JOB, TABLE = "job.json", "sweep.csv"
# What installs the plugin behind each file of conf/launcher and conf/sweep, by the name that Hydra does not find.
PLUGINS = {
    "hydra/launcher/joblib": ("hydra-joblib-launcher", "pip install 'jacana-torch[sweeps]'"),
    "hydra/launcher/submitit_local": ("hydra-submitit-launcher", "pip install 'jacana-torch[sweeps]'"),
    "hydra/launcher/submitit_slurm": ("hydra-submitit-launcher", "pip install 'jacana-torch[sweeps]'"),
    "hydra/launcher/ray": ("hydra-ray-launcher", "pip install 'jacana-torch[sweeps-ray]'"),
    "hydra/sweeper/optuna": ("hydra-optuna-sweeper", "pip install 'jacana-torch[sweeps]'"),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its score, or its error. `written` is what belongs to the command's stdout."""

    number: int
    overrides: list[str]
    score: float | None
    error: str | None
    written: list[str] | None = None
    folder: str = ""

    def write(self, folder: Path) -> None:
        from ..model.saving import write_json

        write_json(folder / JOB, asdict(self))

    @property
    def settings(self) -> dict[str, str]:
        """The job's overrides by name."""
        return dict(item.lstrip("+~").partition("=")[::2] for item in self.overrides)


def begin(folder: Path) -> None:
    """Forget what became of jobs that an earlier sweep had in the same folder."""
    for path in (folder / TABLE, *folder.rglob(JOB)):
        path.unlink(missing_ok=True)


def outcomes(folder: Path) -> list[Outcome]:
    """Read what became of the jobs of a sweep, in their order."""
    found = []
    for path in folder.rglob(JOB):
        held = json.loads(path.read_text(encoding="utf-8"))
        found.append(Outcome(**{**held, "folder": path.parent.relative_to(folder).as_posix()}))
    return sorted(found, key=lambda one: one.number)


def swept(jobs: Sequence[Outcome]) -> list[str]:
    """Return the settings in which jobs differ."""
    names = dict.fromkeys(name for job in jobs for name in job.settings)
    return [name for name in names if len({job.settings.get(name) for job in jobs}) > 1]


def ranking(jobs: Sequence[Outcome]) -> str:
    """List the jobs, the best first, by the settings in which they differ."""
    names, rows = swept(jobs), []
    for job in sorted(jobs, key=lambda job: -1.0 if job.score is None else job.score, reverse=True):
        figure = " failed" if job.score is None else f"{100 * job.score:7.2f}"
        own = [item for item in job.overrides if item.lstrip("+~").partition("=")[0] in names]
        rows.append(f"{figure}  {' '.join(own)}")
    return "\n".join(["     F1", *rows])


def write_table(folder: Path, jobs: Sequence[Outcome]) -> None:
    """Write `sweep.csv`: a row for each job, a column for each setting that was swept."""
    from ..corpora import write_chunks

    names, text = swept(jobs), io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["job", *names, "f1", "folder", "error"])
    for job in jobs:
        own = [job.settings.get(name, "") for name in names]
        f1 = "" if job.score is None else repr(job.score)
        rows.writerow([job.number, *own, f1, job.folder, job.error or ""])
    write_chunks([text.getvalue()], folder / TABLE)


def show_columns(folder: Path, jobs: Sequence[Outcome]) -> None:
    """Tell TensorBoard's HParams tab which columns the sweep has, if its jobs wrote any."""
    if any(folder.rglob("events.out.tfevents.*")):
        from ..train.tracking import write_columns

        write_columns(folder, {name: [_value(job.settings.get(name, "")) for job in jobs] for name in swept(jobs)})


def _value(text: str) -> Any:
    """Return a number as one: TensorBoard has columns of numbers, truth values and strings."""
    try:
        return float(text)
    except ValueError:
        return {"true": True, "false": False}.get(text, text)


def lacking(name: str) -> str | None:
    """Return what to do if Hydra does not find a launcher or sweeper that the package has a file for."""
    if name not in PLUGINS:
        return None
    plugin, command = PLUGINS[name]
    return f"{plugin} is not installed: {command}"
