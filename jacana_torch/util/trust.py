"""What the user trusts: the packages and the files that the environment variable JACANA_TRUST lists.

Entries stand between commas, or `:` as in PATH; packages also between blanks. An entry with a slash is a file, or
a folder with all that is in it. Files that the user's own settings name in this process are trusted as well.
"""

from __future__ import annotations

import os

from ..errors import ConfigError

VARIABLE = "JACANA_TRUST"
_named: set[str] = set()  # files of the user's own settings


def is_trusted_package(target: str) -> bool:
    """Whether a dotted name is of a package that is listed."""
    for entry in _entries():
        if not _is_path(entry) and target.startswith(f"{entry}."):
            return True
    return False


def add_file(name: str, why: str = "") -> None:
    """Trust a file or folder that the user's own settings name, or that this process wrote."""
    _named.add(_absolute(name))


def check_file(name: str, why: str = "") -> None:
    """Raise a ConfigError for a file or folder that is not trusted. Names are compared; no file is looked at.

    `why` says what needs trust, if it is not that a config names the file.
    """
    path = _absolute(name)
    if path in _named:
        return
    for entry in filter(_is_path, _entries()):
        folder = _absolute(entry)
        if path == folder or path.startswith(folder.rstrip(os.sep) + os.sep):
            return
    why = why or (
        f"the config names {name[:200]!r}, which is not an installed resource. A model reads other files and "
        "folders of this machine only if you trust them"
    )
    raise ConfigError(f"{why}; if you do, set {VARIABLE}={path[:200]}")


def _entries() -> list[str]:
    found: list[str] = []
    for item in os.environ.get(VARIABLE, "").replace(os.pathsep, ",").split(","):
        found += [item.strip()] if _is_path(item) else item.split()
    return found


def _is_path(entry: str) -> bool:
    return "/" in entry or os.sep in entry


def _absolute(name: str) -> str:
    return os.path.abspath(os.path.expanduser(name))
