"""The cache of compiled arrays: built once from a resource's files, memory-mapped ever after.

In: source files and a function that writes arrays. Out: Arrays. Built in a temporary directory and moved into
place whole, so that two processes may build at once; where nothing can be written, the arrays stay in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import JacanaError
from . import places
from .install import HomeNotWritable, scratch

log = logging.getLogger(__name__)
_INDEX = "index.json"
_SAMPLE = 1 << 16  # bytes hashed at either end of a source file


class Arrays:
    """Named arrays, and one JSON value of whatever does not fit in arrays."""

    def __init__(self, arrays: Mapping[str, np.ndarray], meta: dict[str, Any]) -> None:
        self._arrays, self.meta = dict(arrays), meta

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]


class Writer:
    """Takes arrays whole or in pieces; to files of a directory, or to memory where there is none."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._streams: dict[str, BinaryIO | io.BytesIO] = {}
        self._shapes: dict[str, tuple[str, list[int]]] = {}
        self.meta: dict[str, Any] = {}

    def append(self, name: str, piece: np.ndarray) -> None:
        """Add rows to the array `name`, which this call creates if need be."""
        piece = np.ascontiguousarray(piece)
        if name not in self._streams:
            self._streams[name] = open(self._directory / name, "wb") if self._directory else io.BytesIO()
            self._shapes[name] = (piece.dtype.str, [0, *piece.shape[1:]])
        dtype, shape = self._shapes[name]
        if dtype != piece.dtype.str or shape[1:] != list(piece.shape[1:]):
            raise ValueError(f"{name} holds {dtype} {shape[1:]}, not {piece.dtype.str} {piece.shape[1:]}")
        shape[0] += len(piece)
        self._streams[name].write(piece.tobytes())

    def finish(self) -> Arrays | None:
        """The arrays, where they are in memory; on disk, the index that makes the directory complete."""
        if self._directory is None:
            kept = {}
            for name, (dtype, shape) in self._shapes.items():
                self._streams[name].seek(0)
                kept[name] = np.frombuffer(self._streams[name].read(), dtype=dtype).reshape(shape)
            return Arrays(kept, self.meta)
        self.close()
        index = {"arrays": self._shapes, "meta": self.meta}
        (self._directory / _INDEX).write_text(json.dumps(index), encoding="utf-8")
        return None

    def close(self) -> None:
        for stream in self._streams.values():
            if self._directory:
                stream.close()


def compiled(kind: str, version: int, sources: Iterable[Path], build: Callable[[Writer], None]) -> Arrays:
    """The arrays that `build` writes for these sources, from the cache where it has been run before."""
    key = _fingerprint(sources)
    try:
        target = places.home() / "compiled" / f"{kind}-v{version}-{key}"
        found = _open(target)
    except JacanaError:  # no home directory
        return _in_memory(build)
    if found is not None:
        return found
    try:
        with scratch() as temporary:
            return _build_on_disk(build, temporary / "compiled", target)
    except HomeNotWritable as error:
        log.warning("%s is kept in memory, and prepared anew at each start: %s", kind, error)
        return _in_memory(build)


def _build_on_disk(build: Callable[[Writer], None], temporary: Path, target: Path) -> Arrays:
    log.info("preparing %s (once)", target.name)
    temporary.mkdir()
    writer = Writer(temporary)
    try:
        build(writer)
        writer.finish()
    finally:
        writer.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(temporary, target)
    except OSError:  # a rival finished first, and its copy is as good
        pass
    found = _open(target)
    if found is None:
        raise OSError(f"the arrays just written to {target} cannot be read back")
    return found


def _in_memory(build: Callable[[Writer], None]) -> Arrays:
    writer = Writer(None)
    build(writer)
    arrays = writer.finish()
    assert arrays is not None
    return arrays


def _open(directory: Path) -> Arrays | None:
    """The arrays of a complete directory; a damaged one is removed, to be built again."""
    try:
        index = json.loads((directory / _INDEX).read_text(encoding="utf-8"))
        arrays = {
            name: _map(directory / name, dtype, tuple(shape)) for name, (dtype, shape) in index["arrays"].items()
        }
        return Arrays(arrays, index["meta"])
    except FileNotFoundError:
        if not directory.exists():
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is damaged (%s) and is built again", directory, error)
    shutil.rmtree(directory, ignore_errors=True)
    return None


def _map(file: Path, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    expected = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if file.stat().st_size != expected:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes, not {expected}")
    if expected == 0:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(file, dtype=dtype, mode="r", shape=shape))  # memmap's own slicing is slow


def _fingerprint(sources: Iterable[Path]) -> str:
    """Changes with the sources' names, sizes, times or ends; a large file is not read whole at each start."""
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
