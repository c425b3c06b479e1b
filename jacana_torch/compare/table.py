"""The table of a comparison, as text, Markdown, LaTeX or JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from ..errors import ConfigError
from ..evaluate import Counts, Score
from ..evaluate.significance import Difference, differences
from ..util import tables
from ..util.tables import Sheet
from ..version import __version__

METRICS = ("precision", "recall", "f1", "exact")
HEADINGS = ("system", "trained on", "P", "R", "F1", "exact", "pairs/s", "training s")
LEVELS = ((0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Row:
    """A row of the table. If the system could not run, `counts` is None and `failure` says why."""

    system: str
    trained: str
    symmetrizer: str | None = None
    counts: Counts | None = field(default=None, repr=False)
    pairs_per_second: float | None = None
    train_seconds: float | None = None
    converged: bool = True
    failure: str | None = None

    @property
    def score(self) -> Score | None:
        return None if self.counts is None else Score.of(self.counts)

    @property
    def label(self) -> str:
        return f"{self.system}, {self.symmetrizer.replace('_', '-')}" if self.symmetrizer else self.system


@dataclass(frozen=True)
class Table:
    """Rows, and how each differs from the first that could run (None for that one, and for failures)."""

    rows: Sequence[Row]
    against: Sequence[Mapping[str, Difference] | None]
    rounds: int
    seed: int
    data: Sequence[str]
    machine: Mapping[str, Any]

    @classmethod
    def of(
        cls, rows: Sequence[Row], rounds: int, seed: int, data: Sequence[str], machine: Mapping[str, Any]
    ) -> Table:
        """Compare every row with the first that could run."""
        reference = next(row.counts for row in rows if row.counts is not None)
        against = [
            None if row.counts is None or row.counts is reference
            else differences(row.counts, reference, rounds, seed)
            for row in rows
        ]  # fmt: skip
        return cls(rows, against, rounds, seed, data, machine)

    @property
    def first(self) -> Row:
        return next(row for row in self.rows if row.counts is not None)

    def notes(self) -> list[str]:
        """Explain the figures, a line per note."""
        assert self.first.counts is not None
        notes = [Score.of(self.first.counts).signature("P,R,F1,exact")]
        if len(self.rows) > 1:
            marks = ", ".join(f"{mark} p < {level}" for level, mark in reversed(LEVELS))
            notes.append(
                f"{marks} against {self.first.label}: approximate randomisation over pairs, {self.rounds} rounds, "
                f"seed {self.seed}, each row for itself"
            )
        notes.append(
            f"pairs/s: annotated pairs to links, one process, torch threads: {self.machine['threads']}, resources "
            f"loaded; training s: one model, features included; CPU: {self.machine['cpu']}"
        )
        notes += [f"{row.label}: stopped before convergence" for row in self.rows if not row.converged]
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Every figure, unrounded."""
        rows = []
        for row, against in zip(self.rows, self.against, strict=True):
            score = row.score
            rows.append(
                {
                    "system": row.system,
                    "trained_on": row.trained,
                    "symmetrizer": row.symmetrizer,
                    "score": None if score is None else score.to_dict(),
                    "pairs_per_second": row.pairs_per_second,
                    "training_seconds": row.train_seconds,
                    "converged": row.converged,
                    "against_first": None
                    if against is None
                    else {name: asdict(difference) for name, difference in against.items()},
                    "failure": row.failure,
                }
            )
        return {
            "version": __version__,
            "data": list(self.data),
            "first": self.first.label,
            "rounds": self.rounds,
            "seed": self.seed,
            "machine": dict(self.machine),
            "rows": rows,
        }

    def cells(self) -> list[tuple[list[str], list[str]]]:
        """The cells of each row, and the significance marks of its four scores."""
        return [
            (_cells(row), [_mark(against[name]) if against else "" for name in METRICS])
            for row, against in zip(self.rows, self.against, strict=True)
        ]


def _cells(row: Row) -> list[str]:
    score = row.score
    if score is None:
        return [row.label, f"cannot run: {' '.join((row.failure or '').split())}"]
    figures = (score.precision, score.recall, score.f1, score.exact)
    quantities = [_three_digits(value) for value in (row.pairs_per_second, row.train_seconds)]
    return [row.label, row.trained, *(f"{100 * figure:.2f}" for figure in figures), *quantities]


def _mark(difference: Difference) -> str:
    return next((mark for level, mark in LEVELS if difference.p < level), "")


def _three_digits(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _formatted(write: Callable[[Sequence[Sheet]], str], table: Table) -> str:
    return write([Sheet(HEADINGS, table.cells(), table.notes(), left=2, marked=2)])


def as_json(table: Table) -> str:
    return json.dumps(table.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)


FORMATS: Mapping[str, Callable[[Table], str]] = {
    **{name: partial(_formatted, write) for name, write in tables.FORMATS.items()}, "json": as_json,
}  # fmt: skip
SUFFIXES = {".md": "markdown", ".tex": "latex", ".json": "json"}


def format_of(name: str | None, output: str | None) -> str:
    """The format of that name. Without a name, the suffix of the output file decides."""
    if name is None:
        return SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "text")
    if name not in FORMATS:
        raise ConfigError(f"format={name!r}: choose one of {', '.join(FORMATS)}")
    return name


def machine() -> dict[str, Any]:
    """The machine and the versions that times depend on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine() or "unknown CPU"
