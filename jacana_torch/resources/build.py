"""Compile the files of a resource into arrays, which store.py opens. Not imported while the cache is complete.

Arrays are built in a temporary directory and moved into place whole, so that two processes may build at once.
Where nothing can be written, they stay in memory.
"""

from __future__ import annotations

import io
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import JacanaError
from . import store
from .download import HomeNotWritable, scratch
from .store import Arrays

log = logging.getLogger(__name__)
_WORDS_AT_ONCE = 1 << 16


class Writer:
    """Takes arrays whole or in pieces, and writes them to files of `directory`, or to memory if it is None."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._streams: dict[str, BinaryIO] = {}
        self._shapes: dict[str, tuple[str, list[int]]] = {}
        self.meta: dict[str, Any] = {}

    def append(self, name: str, piece: np.ndarray) -> None:
        """Add rows to the array `name`, creating it with the first piece."""
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
        """The arrays, if they are in memory; on disk, write the index that makes the directory complete."""
        if self._directory is None:
            arrays = Arrays()
            arrays.meta = self.meta
            for name, (dtype, shape) in self._shapes.items():
                self._streams[name].seek(0)
                arrays[name] = np.frombuffer(self._streams[name].read(), dtype=dtype).reshape(shape)
            return arrays
        self.close()
        index = {"arrays": self._shapes, "meta": self.meta}
        (self._directory / store.INDEX).write_text(json.dumps(index), encoding="utf-8")
        return None

    def close(self) -> None:
        for stream in self._streams.values():
            if self._directory:
                stream.close()


def write_strings(writer: Writer, name: str, words: Iterable[str]) -> None:
    """Store the words under `name`. Of equal words the first row is found."""
    remaining = iter(words)
    hashes, ends, end = [np.zeros(0, np.uint64)], [np.zeros(1, np.int64)], 0
    writer.append(f"{name}.bytes", np.zeros(0, np.uint8))
    while batch := list(islice(remaining, _WORDS_AT_ONCE)):
        blob, starts, hashed = store.packed(batch)
        writer.append(f"{name}.bytes", blob)
        hashes.append(hashed)
        ends.append(starts[1:] + end)
        end += len(blob)
    hashed = np.concatenate(hashes)
    order = np.argsort(hashed, kind="stable")
    writer.append(f"{name}.starts", np.concatenate(ends))
    writer.append(f"{name}.hashes", hashed[order])
    writer.append(f"{name}.order", order.astype(np.int64))


def build(kind: str, directory: Path | None, fill: Callable[[Writer], None]) -> Arrays:
    """The arrays that `fill` writes, kept in `directory` if it is given and can be written."""
    if directory is not None:
        try:
            with scratch() as temporary:
                return _build_on_disk(temporary / "compiled", directory, fill)
        except HomeNotWritable as error:
            log.warning(
                "%s cannot be cached, so it is kept in memory and compiled at every start: %s", kind, error
            )
    writer = Writer(None)
    fill(writer)
    arrays = writer.finish()
    assert arrays is not None
    return arrays


def _build_on_disk(temporary: Path, directory: Path, fill: Callable[[Writer], None]) -> Arrays:
    log.info("preparing %s (once)", directory.name)
    temporary.mkdir()
    writer = Writer(temporary)
    try:
        fill(writer)
        writer.finish()
    finally:
        writer.close()
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(temporary, directory)
    except OSError:  # another process finished first; its copy is as good
        pass
    found = store.open_arrays(directory)
    if found is None:
        raise OSError(f"the arrays just written to {directory} cannot be read back")
    return found


def read_member(path: Path, member: str) -> bytes:
    """The bytes of a file within a resource: a directory, or a zip that holds one directory of its name."""
    try:
        if path.is_dir():
            return (path / member).read_bytes()
        with zipfile.ZipFile(path) as opened:
            return opened.read(f"{path.stem}/{member}")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise JacanaError(f"{path}: cannot read {member}: {error}") from None
