"""Complete a command line that resumes a run: the run's own overrides, and its folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..errors import ConfigError

FREE = ("resume", "hydra.", "logger")  # beginnings of what a resumed sweep may have otherwise


def completed(arguments: Sequence[str]) -> list[str]:
    """Return a command line with `resume=FOLDER` as that of the run, whose overrides Hydra keeps in its folder."""
    given = {key_of(item): item for item in arguments if not item.startswith("-")}
    named = _unquoted(given["resume"].partition("=")[2]) if "resume" in given else ""
    run = Path(named).expanduser()
    if run.name in ("model", "checkpoint") and (run.parent / ".hydra").is_dir():
        run = run.parent
    sweep, single = run / "multirun.yaml", run / ".hydra" / "overrides.yaml"
    if not named or not (sweep.is_file() or single.is_file()):
        return list(arguments)
    before: list[str] = _read(sweep)["hydra"]["overrides"]["task"] if sweep.is_file() else _read(single)
    added = [item for item in before if key_of(item) not in given]
    if sweep.is_file():
        _check_sweep(named, before, given.values())
        added += [] if {"-m", "--multirun"} & set(arguments) else ["--multirun"]
    own = "hydra.sweep.dir" if sweep.is_file() else "hydra.run.dir"
    if own not in given:
        added.append(f"{own}={_quoted(str(run))}")
        # What Hydra kept of the run stays as it is, whatever else this command line says.
        added += [] if sweep.is_file() else ["hydra.output_subdir=null"]
    return [*added, *arguments]


def key_of(override: str) -> str:
    """Return the name that an override sets."""
    return override.lstrip("+~").partition("=")[0]


def _check_sweep(named: str, before: Sequence[str], given: Iterable[str]) -> None:
    """Raise an error for overrides that a resumed sweep did not begin with: its jobs would be others."""
    for item in given:
        if item not in before and not key_of(item).startswith(FREE):
            raise ConfigError(
                f"resume={named}: the sweep did not begin with {item}, but with {shlex.join(before)}: leave it out"
            )


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: the overrides of this run cannot be read ({error})") from None


def _quoted(value: str) -> str:
    """Return a value that Hydra reads as this string."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _unquoted(value: str) -> str:
    """Return the string that Hydra reads from a value, which may be quoted; nothing of null."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        quote = value[0]
        return value[1:-1].replace(f"\\{quote}", quote).replace("\\\\", "\\")
    return "" if value == "null" else value
