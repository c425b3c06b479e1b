"""Titles and groups of feature columns: what people read instead of column names.

A family in `x.py` has them beside it, in `x.titles`: lines of a pattern, two spaces or more, and a title, under
the name of their group in brackets. A star in a pattern is any text, which {0} and {1} repeat in the title ({0!u}:
in capitals), under the name that a line `let TEXT  NAME` gives it. Of the patterns that fit, the longest counts.

A title may be followed by a clause: what a sentence says of two words if the column is not 0. It begins with + if
it supports a link, else with -; {a} and {b} are the words. Of a group's clauses, the first in the file counts.
`@name` is a clause that explain/facts.py makes. `explain` reads the files; aligning does not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import NamedTuple

from ..errors import JacanaError
from .api import EdgeFamily, NodeFamily

UNTITLED = "other evidence"  # the group of columns without a title, which only families of users have


class Title(NamedTuple):
    """A column's title, the group that its contributions are added to, and its clause.

    `rank` is the number of its line: clauses of a group are in order of preference.
    """

    text: str
    group: str
    clause: str = ""
    rank: int = 0


class _Filled(Formatter):
    def convert_field(self, value: str, conversion: str | None) -> str:
        return value.upper() if conversion == "u" else value


class _File(NamedTuple):
    """The patterns of a file with their titles, the longest first, and names for what stars stand for."""

    patterns: tuple[tuple[re.Pattern[str], Title], ...]
    names: dict[str, str]
    lines: tuple[tuple[str, Title], ...]  # the patterns as they are written, in their order

    def title(self, column: str) -> Title | None:
        for pattern, title in self.patterns:
            if found := pattern.fullmatch(column):
                captured = [self.names.get(text, text) for text in found.groups()]
                return title._replace(text=_Filled().format(title.text, *captured))
        return None


@lru_cache(maxsize=64)
def _read(path: Path) -> _File:
    group, found, names = UNTITLED, list[tuple[str, Title]](), dict[str, str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("# "):
            continue
        if line.startswith("["):
            group = line.strip("[]")
            continue
        left, _, right = line.removeprefix("let ").partition("  ")
        if not right.strip():
            raise JacanaError(f"{path}, line {number}: expected a pattern, two spaces or more, and a title")
        if line.startswith("let "):
            names[left] = right.strip()
        else:
            text, _, clause = right.strip().partition("  ")
            title = Title(text, group, clause.strip(), number)
            _check(left, title, path)
            found.append((left, title))
    longest = sorted(found, key=lambda one: -len(one[0].replace("*", "")))
    patterns = ((re.compile("(.+)".join(map(re.escape, left.split("*")))), title) for left, title in longest)
    return _File(tuple(patterns), names, tuple(found))


def written(path: Path) -> tuple[tuple[str, Title], ...]:
    """Return the patterns of a file and their titles, for a catalogue of columns."""
    return _read(path).lines


def _check(pattern: str, title: Title, path: Path) -> None:
    """Raise an error for a title or a clause that cannot be filled in."""
    try:
        _Filled().format(title.text, *pattern.split("*")[1:])
        title.clause.format(a="", b="")
    except (LookupError, ValueError, AttributeError) as error:
        raise JacanaError(
            f"{path}, line {title.rank}: {error} has nothing to stand for in {title.text!r}"
        ) from None
    if title.clause and title.clause[:2] not in ("+ ", "- ") and not title.clause.startswith("@"):
        raise JacanaError(
            f"{path}, line {title.rank}: a clause begins with '+ ', '- ' or '@', not {title.clause!r}"
        )


class Titles:
    """The titles of the columns of some families, by full column name."""

    def __init__(self, families: Iterable[NodeFamily | EdgeFamily] = ()) -> None:
        self._files: dict[str, _File] = {}
        self._known: dict[str, Title] = {}
        for family in families:
            module = sys.modules.get(type(family).__module__)
            source = None if module is None else vars(module).get("__file__")  # a notebook has none
            if source is not None and (path := Path(source).with_suffix(".titles")).is_file():
                self._files[family.name] = _read(path)

    def __getitem__(self, column: str) -> Title:
        """Return the title of a column; without one, its name in words."""
        if column not in self._known:
            family, _, name = column.partition(".")
            file = self._files.get(family)
            title = file.title(name) if file is not None else None
            self._known[column] = title or Title(re.sub(r"[._]", " ", column), UNTITLED)
        return self._known[column]

    def __contains__(self, column: str) -> bool:
        """Whether a file names the column."""
        family, _, name = column.partition(".")
        return family in self._files and self._files[family].title(name) is not None
