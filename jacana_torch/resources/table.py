"""The table that `jacana-torch resources` prints: the state of every resource on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Status:
    """One row of the table."""

    name: str
    title: str
    needed_by: str
    licence: str
    size_mb: int
    path: Path | None
    problem: str | None  # a damaged copy, or a setting that points nowhere
    how: str

    @property
    def found(self) -> bool:
        return self.path is not None


def text(rows: list[Status]) -> str:
    """For each resource its state, its use and licence, then its path or how to get it."""
    width = max(len(row.name) for row in rows)
    indent = " " * (width + 2)
    lines = []
    for row in rows:
        state = "found" if row.found else "BROKEN" if row.problem else "missing"
        lines.append(f"{row.name:<{width}}  {state:<7}  {row.size_mb:>4} MB  {row.title}")
        lines.append(f"{indent}for: {row.needed_by}; licence: {row.licence}")
        if row.found:
            lines.append(f"{indent}at: {row.path}")
        else:
            lines += [f"{indent}problem: {row.problem}"] if row.problem else []
            lines.append(f"{indent}get: {row.how}")
    return "\n".join(lines)
