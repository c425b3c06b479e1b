"""Find a resource, or say plainly what is missing, who needs it and which command gets it.

In: a resource's name. Out: its path, or MissingResource; and the rows of the status table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import ConfigError, JacanaError, MissingResource
from . import places
from .catalogue import CATALOGUE, Resource

COMMAND = "jacana-torch resources install"


@dataclass(frozen=True)
class Status:
    """One row of the table that `jacana-torch resources` prints."""

    name: str
    title: str
    needed_by: str
    licence: str
    size_mb: int
    path: Path | None
    problem: str | None  # a copy that is damaged, a setting that points nowhere
    how: str

    @property
    def found(self) -> bool:
        return self.path is not None


def resource(name: str) -> Resource:
    try:
        return CATALOGUE[name]
    except KeyError:
        raise ConfigError(f"there is no resource {name!r}; the resources are {', '.join(CATALOGUE)}") from None


def find(row: Resource) -> tuple[Path | None, str | None]:
    """Where a resource is (standard places, then our own), and what is wrong where it is there but of no use."""
    try:
        path = row.standard()
    except JacanaError as error:  # a setting that points nowhere must not be passed over
        return None, str(error)
    if path is not None:
        return path, None
    try:
        own = places.data_dir(row.name)
    except JacanaError:  # no home directory: then only the standard places count
        return None, None
    problem = places.damage(own)
    if problem is None and places.has_files(own, row.files):
        return own, None
    return None, problem


def how_to_get(row: Resource) -> str:
    ways = [f"{COMMAND} {row.name}"] if row.installable else []
    return "; or: ".join([*ways, row.otherwise] if row.otherwise else ways)


def path(name: str) -> Path:
    """Where a resource is: a directory, or a zip or file that a user keeps elsewhere."""
    row = resource(name)
    found, problem = find(row)
    if found is not None:
        return found
    state = f"there but of no use: {problem}" if problem else "not on this machine"
    raise MissingResource(
        f"the resource {name!r} ({row.title}) is {state}. "
        f"It is needed by {row.needed_by}. Get it with: {how_to_get(row)}"
    )


def located(name: str) -> Path:
    """As `path`, looked for once per process and settings: for what is asked for at every batch."""
    return _located(name, places.settings())


@lru_cache(maxsize=64)
def _located(name: str, settings: tuple) -> Path:
    return path(name)


def available(name: str) -> bool:
    """Whether `path` would find the resource."""
    return find(resource(name))[0] is not None


def status() -> list[Status]:
    """A row for every resource."""
    rows = []
    for row in CATALOGUE.values():
        found, problem = find(row)
        rows.append(
            Status(
                row.name, row.title, row.needed_by, row.licence, row.size_mb, found, problem, how_to_get(row)
            )  # fmt: skip
        )
    return rows


def format_status(rows: list[Status] | None = None) -> str:
    """The status as text: a line of facts for each resource, then where it is or how to get it."""
    rows = status() if rows is None else rows
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        state = "found" if row.found else "BROKEN" if row.problem else "missing"
        lines.append(f"{row.name:<{width}}  {state:<7}  {row.size_mb:>4} MB  {row.title}")
        indent = " " * (width + 2)
        lines.append(f"{indent}for: {row.needed_by}; licence: {row.licence}")
        if row.found:
            lines.append(f"{indent}at: {row.path}")
        else:
            lines += [f"{indent}problem: {row.problem}"] if row.problem else []
            lines.append(f"{indent}get: {row.how}")
    return "\n".join(lines)
