"""Find resources on this machine: NLTK's data directories, installed packages, then JACANA_HOME.

Nothing here imports NLTK, spaCy or the packages it finds. A missing resource is an error that says which part of
the project needs it and which command installs it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import platformdirs

from ..errors import ConfigError, JacanaError, MissingResource
from .catalogue import CATALOGUE, Place, Resource

COMMAND = "jacana-torch resources install"
RECEIPT = "installed.json"  # written by `install` next to the files: package, sha256, sizes
_SETTINGS = (
    "JACANA_HOME", "JACANA_PPDB", "NLTK_DATA", "HOME", "XDG_CACHE_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
)  # fmt: skip


# -- one resource


def path(name: str) -> Path:
    """The path of a resource: its directory, or a zip or file that the user keeps elsewhere."""
    row = resource(name)
    found, problem = find(row)
    if found is not None:
        return found
    state = f"damaged or misconfigured: {problem}" if problem else "not on this machine"
    raise MissingResource(
        f"the resource {name!r} ({row.title}) is {state}. "
        f"It is needed by {row.needed_by}. Get it with: {how_to_get(row)}"
    )


def located(name: str) -> Path:
    """`path` with a memory, for callers that ask at every batch. A change of settings makes it look again."""
    nltk_data = sys.modules.get("nltk.data")
    nltk_path = tuple(map(str, nltk_data.path)) if nltk_data is not None else ()
    return _located(name, tuple(map(os.environ.get, _SETTINGS)), nltk_path, tuple(sys.path))


@lru_cache(maxsize=64)
def _located(name: str, *settings: object) -> Path:
    return path(name)


def available(name: str) -> bool:
    """Whether `path` would find the resource."""
    return find(resource(name))[0] is not None


def resource(name: str) -> Resource:
    """The row of the catalogue for a name."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise ConfigError(f"there is no resource {name!r}; the resources are {', '.join(CATALOGUE)}") from None


def find(row: Resource) -> tuple[Path | None, str | None]:
    """The path of a resource, or what is wrong with the copy or setting that should have given it."""
    for place in row.places:
        if place.kind == "nltk":
            found = in_nltk(place)
        elif place.kind == "package":
            found = in_package(place)
        elif os.environ.get(place.where):
            found = Path(os.environ[place.where]).expanduser()
            if not found.is_file() and not has_files(found, place.files):
                return None, (
                    f"{place.where} is {os.environ[place.where]!r}, which is neither a file nor a folder with "
                    f"{place.files[0]}: set it to the path of that file"
                )
        else:
            continue
        if found is not None:
            return found, None
    try:
        own = home() / "data" / row.name
    except JacanaError:  # without a home directory only the standard places count
        return None, None
    problem = damage(own)
    return (own, None) if problem is None and has_files(own, row.files) else (None, problem)


def how_to_get(row: Resource) -> str:
    """The commands that get a resource."""
    ways = [f"{COMMAND} {row.name}"] if row.installable else []
    return "; or: ".join([*ways, row.otherwise] if row.otherwise else ways)


# -- places


def home() -> Path:
    """JACANA_HOME, or the user's cache directory."""
    given = os.environ.get("JACANA_HOME")
    if given:
        return Path(os.path.expanduser(given)).absolute()
    cache = platformdirs.user_cache_path("jacana_torch", appauthor=False)
    if not cache.is_absolute():  # "~" could not be expanded
        raise JacanaError(
            "this user has no home directory, so there is no cache for linguistic data: "
            "set JACANA_HOME to a directory"
        )
    return cache


def nltk_roots() -> list[Path]:
    """The value of `nltk.data.path`, without importing NLTK."""
    loaded = sys.modules.get("nltk.data")
    if loaded is not None:  # the user's code may have added to it
        return [Path(str(root)) for root in loaded.path]
    roots = [os.path.expanduser(d) for d in os.environ.get("NLTK_DATA", "").split(os.pathsep) if d]
    roots.append(os.path.expanduser("~/nltk_data"))
    roots += [os.path.join(sys.prefix, sub, "nltk_data") for sub in ("", "share", "lib")]
    if sys.platform == "win32":
        roots.append(os.path.join(os.environ.get("APPDATA", "C:\\"), "nltk_data"))
        roots += [drive + r":\nltk_data" for drive in "CDE"]
    else:
        roots += [f"{top}/nltk_data" for top in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    return [Path(root) for root in roots]


def in_nltk(place: Place) -> Path | None:
    """The directory of NLTK data, or the zip that nltk.download does not unpack."""
    for root in nltk_roots():
        directory = root / place.where
        if has_files(directory, place.files):
            return directory
        archive = root / f"{place.where}.zip"
        if archive.is_file() and _zip_has(archive, directory.name, place.files):
            return archive
    return None


def _zip_has(archive: Path, inner: str, files: Sequence[str]) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return all(f"{inner}/{file}" in names for file in files)


def in_package(place: Place) -> Path | None:
    """The folder within an installed package, which is not imported; the latest if several match."""
    module, _, pattern = place.where.partition("/")
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob(pattern), reverse=True):
            if has_files(found, place.files):
                return found
    return None


def has_files(directory: Path, files: Sequence[str]) -> bool:
    """Whether a directory holds all these files."""
    try:
        return set(os.listdir(directory)).issuperset(files)
    except OSError:  # most places do not exist
        return False


def damage(directory: Path) -> str | None:
    """The first difference between an installed directory and its receipt; None without one."""
    receipt = directory / RECEIPT
    if not receipt.is_file():
        return None
    try:
        sizes = json.loads(receipt.read_text(encoding="utf-8"))["files"]
        for file, size in sizes.items():
            actual = (directory / file).stat().st_size if (directory / file).is_file() else None
            if actual != size:
                return f"{directory / file} " + (
                    "is gone" if actual is None else f"has {actual} bytes, not {size}"
                )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{receipt} cannot be read ({error})"
    return None


# -- the table that `jacana-torch resources` prints


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


def status() -> list[Status]:
    """The state of every resource on this machine."""
    return [
        Status(row.name, row.title, row.needed_by, row.licence, row.size_mb, *find(row), how_to_get(row))
        for row in CATALOGUE.values()
    ]


def format_status(rows: list[Status] | None = None) -> str:
    """The status as text: for each resource its state, its use and licence, then its path or how to get it."""
    rows = status() if rows is None else rows
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
