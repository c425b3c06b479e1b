"""The journal on disk: events are added at its end, and an event counts when it has reached the disk.

The file is never rewritten. A line that a killed process left without its end was never answered for, and is cut
off when the journal is opened again. Any other damage is an error, and a file that is no journal is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..corpora import Source
from ..corpora._annotations import Annotations
from ..corpora.journal import Header, folded
from ..errors import ConfigError, CorpusError
from ..resources.store import try_lock
from ..types import SentencePair

ENDING = ".journal"


def digest(pairs: Sequence[SentencePair]) -> str:
    """Sum up the words of all pairs: a journal belongs to them, wherever the file is."""
    known = hashlib.sha256()
    for pair in pairs:
        known.update(json.dumps([pair.source.tokens, pair.target.tokens]).encode())
    return known.hexdigest()[:32]


def header_of(file: str, pairs: Sequence[SentencePair]) -> Header:
    return Header(os.path.basename(file), len(pairs), digest(pairs))


def read(path: Path, wanted: Header) -> Annotations:
    """Return what a journal holds; an error if it is of other pairs."""
    with closing(Source(path)) as source:
        found = folded(source)
    if found.header is not None:
        _check(found.header, wanted, path)
    return found.state


def _check(found: Header, wanted: Header, path: Path) -> None:
    if found.digest != wanted.digest:
        raise ConfigError(
            f"{path} is the journal of another file, {found.file} ({found.pairs} pairs), or {wanted.file} "
            f"({wanted.pairs} pairs) has changed since: annotate the file as it was, or name another --journal"
        )


class Journal:
    """An open journal and the state that it adds up to. One process at a time may have it open."""

    def __init__(self, path: Path, wanted: Header) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be written ({error.strerror}): name another place with --journal"
            ) from None
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise ConfigError(f"{path}: is no ordinary file: name another place with --journal")
            if try_lock(self._file) is False:
                raise ConfigError(f"{path}: another process is annotating with this journal: end it first")
            self._open(wanted)
        except BaseException:
            os.close(self._file)
            raise

    def _open(self, wanted: Header) -> None:
        with closing(Source(self.path)) as source:
            found = folded(source)
        self.state, self._size = found.state, found.size
        content = self.path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            raise ConfigError(f"{self.path}: is packed by gzip: unpack it first, as events are added to it")
        if found.header is None and not _line(wanted.line()).startswith(content):
            raise ConfigError(f"{self.path}: is no journal, and stays as it is: name another place with --journal")
        if found.header is not None:
            _check(found.header, wanted, self.path)
            if len(content) < self._size:  # only the last line end is missing
                self._size = len(content)
                self._write(b"\n")
            elif len(content) > self._size:
                self._cut()
            return
        self._cut()
        self._write(_line(wanted.line()))
        with suppress(OSError):  # folders of some systems cannot be opened
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def append(self, event: Mapping[str, Any]) -> None:
        """Add an event: check it, write it to the disk, and only then let it count.

        A ValueError says that the event does not fit, an OSError that the disk did not take it. Either changes
        nothing.
        """
        take = self.state.step(event)
        self._write(_line({**event, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}))
        take()

    def _write(self, line: bytes) -> None:
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                self._cut()
            raise
        self._size += len(line)

    def _cut(self) -> None:
        """Cut off what is behind the last event that counts."""
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _line(item: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(item, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        raise CorpusError("a word has half of a surrogate pair, which no file can hold") from None
