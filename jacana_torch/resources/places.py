"""Where linguistic data can be: NLTK's data directories, installed packages, and the project's own home.

In: the environment. Out: paths. Nothing here imports NLTK, spaCy or the packages it finds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from ..errors import JacanaError

RECEIPT = "installed.json"  # what `install` writes beside the files: package, sha256, sizes


_DECIDING = (
    "JACANA_HOME", "JACANA_PPDB", "NLTK_DATA", "HOME", "XDG_CACHE_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
)  # fmt: skip


def settings() -> tuple:
    """All that decides where things are looked for: while it is the same, so is what was found."""
    loaded = sys.modules.get("nltk.data")
    told = tuple(map(str, loaded.path)) if loaded is not None else ()
    return tuple(map(os.environ.get, _DECIDING)), told, tuple(sys.path)


def home() -> Path:
    """JACANA_HOME, or the user's cache directory; an error where neither can be told."""
    given = os.environ.get("JACANA_HOME")
    if given:
        return Path(os.path.expanduser(given)).absolute()
    cache = platformdirs.user_cache_path("jacana_torch", appauthor=False)
    if not cache.is_absolute():  # "~" stands where no home directory is known
        raise JacanaError(
            "this user has no home directory, so there is no cache for linguistic data: "
            "set JACANA_HOME to a directory"
        )
    return cache


def data_dir(name: str) -> Path:
    """The directory of one resource in the project's home."""
    return home() / "data" / name


def nltk_roots() -> list[Path]:
    """`nltk.data.path` without importing NLTK (or as it stands where NLTK is imported and was told more)."""
    loaded = sys.modules.get("nltk.data")
    if loaded is not None:
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


def in_nltk(where: str, files: Sequence[str]) -> Path | None:
    """A directory such as corpora/wordnet under an NLTK root, or the zip that nltk.download leaves unopened."""
    for root in nltk_roots():
        directory = root / where
        if has_files(directory, files):
            return directory
        archive = root / f"{where}.zip"
        if archive.is_file() and _zip_has(archive, Path(where).name, files):
            return archive
    return None


def has_files(directory: Path, files: Sequence[str]) -> bool:
    return all((directory / file).is_file() for file in files)


def _zip_has(archive: Path, inner: str, files: Sequence[str]) -> bool:
    try:
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return all(f"{inner}/{file}" in names for file in files)


def in_package(module: str, inner: str, files: Sequence[str]) -> Path | None:
    """`inner` within an installed package (which is not imported), where all files are there."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if has_files(Path(folder) / inner, files):
            return Path(folder) / inner
    return None


def spacy_model(module: str) -> Path | None:
    """The directory spacy.load takes (config.cfg, meta.json) of an installed spaCy model package."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for config in sorted(Path(folder).glob(f"{module}-*/config.cfg"), reverse=True):
            return config.parent
    return None


def damage(directory: Path) -> str | None:
    """What differs between an installed directory and its receipt; None where they agree or there is none."""
    receipt = directory / RECEIPT
    if not receipt.is_file():
        return None
    try:
        sizes = json.loads(receipt.read_text(encoding="utf-8"))["files"]
        for file, size in sizes.items():
            there = (directory / file).stat().st_size if (directory / file).is_file() else None
            if there != size:
                return f"{directory / file} " + ("is gone" if there is None else f"has {there} bytes, not {size}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{receipt} cannot be read ({error})"
    return None


def read_member(path: Path, member: str) -> bytes:
    """The bytes of a file within a resource that is a directory, or a zip holding one directory of its name."""
    try:
        if path.is_dir():
            return (path / member).read_bytes()
        with zipfile.ZipFile(path) as opened:
            return opened.read(f"{path.stem}/{member}")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise JacanaError(f"{path}: cannot read {member}: {error}") from None
