"""What was measured of one system, and the folder that keeps it, so that an interruption costs nothing done."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluate import Counts, Score
from ..model import persist

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """A system's counts, by output: the symmetrizers of one with two directions, else `aligned` alone."""

    counts: Mapping[str, Counts]
    align_seconds: float
    train_seconds: float | None = None  # of one model, on average; None where nothing was trained
    converged: bool = True


@dataclass(frozen=True)
class Row:
    """A line of the table. `counts` is None where the system could not run, and `failure` says why."""

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


def rows_of(system: str, trained: str, result: Result) -> list[Row]:
    return [
        Row(
            system,
            trained,
            None if output == "aligned" else output,
            counts,
            len(counts) / max(result.align_seconds, 1e-9),
            result.train_seconds,
            result.converged,
        )
        for output, counts in result.counts.items()
    ]


class Store:
    """A folder of results, each under the digest of all that it depends on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: Mapping[str, Any]) -> Result | None:
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            tables = {name: np.array(table, dtype=np.int64) for name, table in held["counts"].items()}
            if not tables or not all(table.ndim == 2 and table.shape[1] == 3 for table in tables.values()):
                raise ValueError("no tables of counts")
            counts = {name: Counts(table, held["links"]) for name, table in tables.items()}
            return Result(counts, held["align_seconds"], held["train_seconds"], held["converged"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("%s: cannot be used (%s), so it is measured again", path, error)
            return None

    def put(self, key: Mapping[str, Any], result: Result) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (links,) = {counts.links for counts in result.counts.values()}
        held = {
            "counts": {name: counts.table.tolist() for name, counts in result.counts.items()},
            "links": links,
            "align_seconds": result.align_seconds,
            "train_seconds": result.train_seconds,
            "converged": result.converged,
            "of": key,
        }
        path = self._path(key)
        persist.write_json(path, held)

    def _path(self, key: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        return self.folder / f"{digest[:24]}.json"
