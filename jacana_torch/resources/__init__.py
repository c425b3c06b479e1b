"""Linguistic data: find it, install it, and open it as arrays that are ready for vectorised use.

catalogue.py is the table of all resources. They are looked for in NLTK's data directories, installed packages and
JACANA_HOME, without importing NLTK, spaCy or those packages. A missing resource is an error that names the part of
the project that needs it and the command that installs it. Data is compiled into the cache at its first use and
memory-mapped from then on; nothing is loaded before the first call that needs it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ..errors import ConfigError, JacanaError, MissingResource, did_you_mean
from .catalogue import CATALOGUE, Place, Resource

if TYPE_CHECKING:
    from .ppdb_pairs import Ppdb
    from .static_vectors import Vectors
    from .table import Status
    from .tagger_files import TaggerWeights
    from .wordnet_graph import WordNet

__all__ = [
    "available", "format_status", "install", "path", "ppdb", "status", "tagger_weights", "vectors", "wordnet",
]  # fmt: skip

COMMAND = "jacana-torch resources install"
RECEIPT = "installed.json"  # written by `install` next to the files: package, sha256, sizes
_SETTINGS = (
    "JACANA_HOME", "JACANA_PPDB", "NLTK_DATA", "HOME", "XDG_CACHE_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
)  # fmt: skip
_REMEMBERED = 64
_located: dict[tuple[object, ...], Path] = {}  # by name and settings


def install(names: Iterable[str] = (), progress: bool = True, force: bool = False) -> None:
    """Install the named resources, or all that an index has except the very large ones.

    Resources that this machine has already are kept unless `force` is set. `progress` shows pip's progress bar.
    """
    from .download import install as run

    run(names, progress, force)


# -- what each resource holds


def wordnet() -> WordNet:
    """WordNet as arrays, opened once per process."""
    from .wordnet_graph import load

    return load(located("wordnet"))


def tagger_weights() -> TaggerWeights:
    """The averaged perceptron tagger as NLTK has it; annotate/perceptron.py opens it as arrays."""
    from .tagger_files import load

    return load(located("tagger"))


def vectors(name_or_path: str) -> Vectors:
    """Static word vectors: a resource's name, or a file in word2vec, GloVe or .npy format."""
    from .static_vectors import load

    name = os.fspath(name_or_path)
    if name in CATALOGUE:
        found, files = located(name), CATALOGUE[name].files
        return load(found / files[0] if len(files) == 1 and found.is_dir() else found)
    file = Path(name).expanduser()
    if not file.exists():
        raise MissingResource(
            f"there are no vectors at {name!r}, and no resource has that name: give a file in word2vec, GloVe or "
            ".npy format, or one of glove-840b, glove-6b"
        )
    return load(file.resolve())


def ppdb() -> Ppdb:
    """The lexical paraphrase pairs of PPDB."""
    from .ppdb_pairs import load

    return load(located("mwa-ppdb"))


# -- where a resource is


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
    key = (name, tuple(map(os.environ.get, _SETTINGS)), nltk_path, tuple(sys.path))
    found = _located.get(key)
    if found is None:
        if len(_located) >= _REMEMBERED:
            _located.clear()
        found = _located[key] = path(name)
    return found


def available(name: str) -> bool:
    """Whether `path` would find the resource."""
    return find(resource(name))[0] is not None


def resource(name: str) -> Resource:
    """The row of the catalogue for a name."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise ConfigError(f"there is no resource {name!r}{did_you_mean(name, CATALOGUE)}") from None


def find(row: Resource) -> tuple[Path | None, str | None]:
    """The path of a resource, or what is wrong with the copy or setting that should have given it."""
    for place in row.places:
        if place.kind == "nltk":
            found = None
            for root in nltk_roots():  # a directory of NLTK data, or the zip that nltk.download does not unpack
                directory, archive = root / place.where, root / f"{place.where}.zip"
                if has_files(directory, place.files):
                    found = directory
                elif archive.is_file() and _zip_has(archive, directory.name, place.files):
                    found = archive
                if found is not None:
                    break
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
    given = filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep))
    roots = list(map(Path, map(os.path.expanduser, [*given, "~/nltk_data"])))
    folders = [sys.prefix, os.path.join(sys.prefix, "share"), os.path.join(sys.prefix, "lib")]
    if sys.platform == "win32":
        folders += os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"
    else:
        folders += "/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"
    for folder in folders:
        roots.append(Path(folder, "nltk_data"))
    return roots


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


def status() -> list[Status]:
    """The state of every resource on this machine."""
    from .table import Status

    return [
        Status(row.name, row.title, row.needed_by, row.licence, row.size_mb, *find(row), how_to_get(row))
        for row in CATALOGUE.values()
    ]


def format_status(rows: list[Status] | None = None) -> str:
    """The status as text: for each resource its state, its use and licence, then its path or how to get it."""
    from .table import text

    return text(status() if rows is None else rows)
