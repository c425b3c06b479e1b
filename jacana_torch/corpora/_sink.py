"""Corpora: writing. In: pieces of text and where they go; out: a file that is whole or not there, or a stream.

A path ending in .gz is compressed. A pipe or a device named by its path is written to directly.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..errors import CorpusError
from ._source import BOM

Writable = str | os.PathLike[str] | IO[bytes] | IO[str]


def name_of(target: Writable) -> str:
    if hasattr(target, "write"):
        name = getattr(target, "name", None)
        return name if isinstance(name, str) else "<stream>"
    return "<stdout>" if target == "-" else os.fspath(target)


def write_chunks(chunks: Iterable[str], target: Writable) -> None:
    """Writes all chunks: to a path whole or not at all, to a stream as they come."""
    if hasattr(target, "write"):
        _to_stream(chunks, target)
    elif target == "-":
        sys.stdout.flush()
        # Where there are bytes below, UTF-8 and \n whatever the console's locale is.
        _to_stream(chunks, getattr(sys.stdout, "buffer", sys.stdout))
    else:
        path = os.path.realpath(os.fspath(target))
        with _replacing(path, name_of(target)) as stream:
            _to_stream(chunks, stream)


def _to_stream(chunks: Iterable[str], stream: Any) -> None:
    binary = isinstance(stream, (io.RawIOBase, io.BufferedIOBase)) or "b" in str(getattr(stream, "mode", ""))
    write: Callable[[str], Any] = (lambda text: stream.write(text.encode("utf-8"))) if binary else stream.write
    first = True
    try:
        for chunk in chunks:
            if first and chunk:
                # Readers take a leading U+FEFF for a byte-order mark; a token's own needs one before it.
                chunk, first = (BOM + chunk if chunk.startswith(BOM) else chunk), False
            try:
                write(chunk)
            except UnicodeEncodeError as error:
                bad = error.object[error.start]
                raise CorpusError(f"{error.encoding} cannot hold the character {bad!r}", name_of(stream)) from None
    finally:
        if hasattr(stream, "flush"):
            stream.flush()


@contextmanager
def _replacing(path: str, name: str) -> Iterator[IO[bytes]]:
    """A stream beside `path` that takes its place at the end, if that is reached."""
    try:
        mode = os.stat(path).st_mode if os.path.exists(path) else None
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as stream:
                yield stream
            return
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as stream:
                if name.endswith(".gz"):
                    # Neither time nor name inside: the same corpus gives the same bytes.
                    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                        yield packed  # type: ignore[misc]
                else:
                    yield stream
            os.chmod(temporary, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CorpusError(f"cannot be written: {error.strerror or error}", name) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
