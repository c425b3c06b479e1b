"""The cache of compiled arrays: built once from a resource's files (build.py), memory-mapped from then on.

Strings are stored as bytes with a sorted hash, so that opening a table takes no time, whatever its size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JacanaError
from . import home

if TYPE_CHECKING:
    from .build import Writer

log = logging.getLogger(__name__)
INDEX = "index.json"
_SAMPLE = 1 << 16  # bytes hashed at either end of a source file
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no power of it vanishes modulo 2**64


class Arrays(dict[str, np.ndarray]):
    """Named arrays; `meta` is a JSON object for everything else."""

    meta: dict[str, Any]


def compiled(kind: str, version: int, sources: Iterable[Path], fill: Callable[[Writer], None]) -> Arrays:
    """The arrays that `fill` writes for these sources, from the cache if they have been compiled before.

    `version` belongs to the layout of the arrays: raise it with every change, and old caches are left alone.
    """
    key = _fingerprint(sources)
    try:
        directory = home() / "compiled" / f"{kind}-v{version}-{key}"
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


def _fingerprint(sources: Iterable[Path]) -> str:
    """A hash of the sources' names, sizes, times and both ends: large files are not read whole at every start."""
    digest = hashlib.blake2b(digest_size=10)
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
    return digest.hexdigest()


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
