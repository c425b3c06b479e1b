"""What is kept on disk: files and folders that are written whole or not at all, and the cache of compiled arrays.

What is being written stands beside its later place as `.jacana-*.part`, locked by its process until it is renamed.
The lock of a killed process is gone: the next one that writes into the same folder removes the rest.

Arrays are compiled once from a resource's files (build.py), and memory-mapped from then on. Strings are stored as
bytes with a sorted hash, so that opening a table takes no time, whatever its size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JacanaError
from . import home

if TYPE_CHECKING:
    from .build import Writer

log = logging.getLogger(__name__)
PREFIX, SUFFIX = ".jacana-", ".part"
ABANDONED = 24 * 3600  # seconds after which unfinished things are removed on systems without locks
_REPLACED = ".replaced"  # holds a folder, by its name, while another takes its place
INDEX = "index.json"
_SAMPLE = 1 << 16  # bytes hashed at either end of a source file
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no power of it vanishes modulo 2**64


# Whole or not at all


@contextmanager
def unfinished(parent: Path, folder: bool = False) -> Iterator[Path]:
    """Make a locked file or folder in `parent`, to be written and then renamed; removed if it was not renamed.

    Also removes what killed processes left in `parent`.
    """
    sweep(parent)
    path, lock = _locked(parent, folder)
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that it also survives a loss of power."""
    with unfinished(path.parent) as part:
        with open(part, "wb") as stream:
            stream.write(content)
        put_in_place(part, path)


def put_in_place(part: Path, path: Path, durable: bool = True) -> None:
    """Rename a finished file or folder to `path`; if `durable`, after its content has reached the disk.

    A folder that is not empty cannot be replaced in one step: it is set aside first. If the process is killed
    between the two steps, `sweep` puts it back.
    """
    mask = os.umask(0)
    os.umask(mask)
    for one in [part, *part.rglob("*")]:  # temporary files are readable by their owner alone
        one.chmod((0o777 if one.is_dir() else 0o666) & ~mask)
        if durable and one.is_file():
            _sync(one)
    if part.is_dir() and path.exists():
        with unfinished(path.parent, folder=True) as aside:
            (aside / _REPLACED).mkdir()
            os.replace(path, aside / _REPLACED / path.name)
            try:
                os.replace(part, path)
            except BaseException:
                os.replace(aside / _REPLACED / path.name, path)
                raise
    else:
        os.replace(part, path)
    if durable:
        _sync(path.parent)


def sweep(parent: Path) -> None:
    """Remove the unfinished files and folders of killed processes, never those of a running one."""
    for left in sorted(parent.glob(f"{PREFIX}*{SUFFIX}")):
        with suppress(OSError):  # another process removed it, or it is another user's
            lock = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                free = try_lock(lock)
                if free or (free is None and time.time() - left.stat().st_mtime > ABANDONED):
                    _put_back(left)
                    _remove(left)
            finally:
                os.close(lock)


def try_lock(file: int) -> bool | None:
    """Return whether the lock of an open file could be taken; closing it releases the lock. None without locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _locked(parent: Path, folder: bool) -> tuple[Path, int | None]:
    """Make a file or folder, and lock it. Until it is locked, another process may sweep it: then try again."""
    while True:
        if folder:
            path = Path(tempfile.mkdtemp(SUFFIX, PREFIX, parent))
        else:
            number, name = tempfile.mkstemp(SUFFIX, PREFIX, parent)
            os.close(number)
            path = Path(name)
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        except OSError:  # Windows opens no folders
            return path, None
        if try_lock(lock) is not False and path.exists():
            return path, lock
        os.close(lock)


def _put_back(left: Path) -> None:
    """Put a folder back that a killed process set aside and did not replace."""
    if (left / _REPLACED).is_dir():
        for aside in (left / _REPLACED).iterdir():
            if not (left.parent / aside.name).exists():
                os.replace(aside, left.parent / aside.name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with suppress(OSError):  # folders of some systems cannot be opened
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# Compiled arrays


class Arrays(dict[str, np.ndarray]):
    """Named arrays; `meta` is a JSON object for everything else."""

    meta: dict[str, Any]


def compiled(kind: str, version: int, sources: Iterable[Path], fill: Callable[[Writer], None]) -> Arrays:
    """The arrays that `fill` writes for these sources, from the cache if they have been compiled before.

    Sources are told apart by their names, sizes, times and both ends. `version` belongs to the layout of the
    arrays: raise it with every change, and old caches are left alone.
    """
    digest = hashlib.blake2b(digest_size=10)  # large files are not read whole at every start
    for source in sources:
        try:
            facts = source.stat()
            with open(source, "rb") as stream:
                head = stream.read(_SAMPLE)
                stream.seek(max(0, facts.st_size - _SAMPLE))
                tail = stream.read(_SAMPLE)
        except OSError as error:
            raise JacanaError(f"cannot read {source}: {error.strerror or error}") from None
        digest.update(f"{source.name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
        digest.update(head + tail)
    try:
        directory = home() / "compiled" / f"{kind}-v{version}-{digest.hexdigest()}"
    except JacanaError:  # no home directory
        directory = None
    found = open_arrays(directory) if directory is not None else None
    if found is None:
        from .build import build

        found = build(kind, directory, fill)
    return found


def open_arrays(directory: Path) -> Arrays | None:
    """The arrays of a complete directory. A damaged one is removed, so that it is built again."""
    try:
        index = json.loads((directory / INDEX).read_text(encoding="utf-8"))
        arrays = Arrays()
        arrays.meta = index["meta"]
        for name, (dtype, shape) in index["arrays"].items():
            file, expected = directory / name, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            if file.stat().st_size != expected:
                raise ValueError(f"{name} has {file.stat().st_size} bytes, not {expected}")
            mapped = (
                np.memmap(file, dtype=dtype, mode="r", shape=tuple(shape)) if expected else np.empty(shape, dtype)
            )
            arrays[name] = np.asarray(mapped)  # memmap's own slicing is slow
        return arrays
    except FileNotFoundError:
        if not directory.exists():
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is damaged (%s) and is built again", directory, error)
    shutil.rmtree(directory, ignore_errors=True)
    return None


class StringTable:
    """The strings that `build.write_strings` stored under a name, numbered in their order."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._bytes, self._starts = arrays[f"{name}.bytes"], arrays[f"{name}.starts"]
        self._hashes, self._order = arrays[f"{name}.hashes"], arrays[f"{name}.order"]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, row: int) -> str:
        encoded = self._bytes[self._starts[row] : self._starts[row + 1]].tobytes()
        return encoded.decode("utf-8", "surrogatepass")

    def all(self) -> list[str]:
        """Every string in row order."""
        blob, starts = self._bytes.tobytes(), self._starts.tolist()
        if blob.isascii():
            text = blob.decode("ascii")
            return [text[start:end] for start, end in pairwise(starts)]
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """[words] the row of each word, -1 for a word that is not in the table."""
        rows = np.full(len(words), -1, dtype=np.int64)
        size = len(self._order)
        if not size or not len(words):
            return rows
        blob, starts, wanted = packed(words)
        pending, at = np.arange(len(words)), np.searchsorted(self._hashes, wanted)
        while len(pending):  # one round, unless hashes collide
            match = self._hashes[np.minimum(at, size - 1)] == wanted[pending]
            match &= at < size
            pending, at = pending[match], at[match]
            found = self._order[at]
            same = self._starts[found + 1] - self._starts[found] == starts[pending + 1] - starts[pending]
            alike = np.flatnonzero(same)  # the strings of equal length, whose bytes are compared
            place, own = entries(self._starts, found[alike])
            _, given = entries(starts, pending[alike])
            same[alike[place[self._bytes[own] != blob[given]]]] = False
            rows[pending[same]] = found[same]
            pending, at = pending[~same], at[~same] + 1
        return rows


def packed(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The words' bytes end to end, [words + 1] where each begins, and [words] their hashes.

    A hash is a polynomial in the bytes. Sums wrap around modulo 2**64, and so do their differences.
    """
    text = "".join(words)
    if text.isascii():
        encoded, lengths = text.encode("ascii"), np.fromiter(map(len, words), np.int64, len(words))
    else:
        each = [word.encode("utf-8", "surrogatepass") for word in words]
        encoded, lengths = b"".join(each), np.fromiter(map(len, each), np.int64, len(words))
    blob = np.frombuffer(encoded, dtype=np.uint8)
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    powers = np.cumprod(np.full(lengths.max(initial=0) + 1, _BASE, dtype=np.uint64))
    within = np.arange(len(blob)) - np.repeat(starts[:-1], lengths)  # 0, 1, ... within each word
    sums = np.zeros(len(blob) + 1, np.uint64)
    np.cumsum((blob + np.uint64(1)) * powers[within], out=sums[1:])
    return blob, starts, sums[starts[1:]] - sums[starts[:-1]]


def entries(starts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries starts[row] .. starts[row + 1] of each row: the place in `rows` and the number of each entry."""
    begins = starts[rows].astype(np.int64)
    counts = starts[rows + 1] - begins
    place = np.repeat(np.arange(len(rows)), counts)
    return place, np.arange(len(place)) + np.repeat(begins + counts - np.cumsum(counts), counts)
