"""Corpus files and their lines: open, decode, parse and write them.

A file is a path, "-" or a stream, perhaps compressed by gzip. It is read as bytes, split at \\n alone and decoded
line by line: \\x85, \\u2028 and the like may be part of a token, and a line of bad UTF-8 costs that line alone.
A path is written whole or not at all.

A line with a tab is split at tabs, any other at ` ||| `. A blank line is an empty pair: to drop it would shift all
lines after it. Parsers raise a ValueError with a message for the user; `per_line` adds the file and the line.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ..errors import CorpusError, quote
from ..types import Alignment, Example, Link, SentencePair

if TYPE_CHECKING:
    from ._tables import Row

Readable = str | os.PathLike[str] | IO[bytes] | IO[str]
Writable = Readable
TextSource = Readable | tuple[Readable, Readable]
T = TypeVar("T")

BOM = "\ufeff"
_BLOCK = 1 << 16  # bytes
_PATIENCE = 0.02  # seconds: a busy machine's pipe is empty for less, and nobody notices so short a wait
_LONGEST_HEAD = 1 << 20  # bytes
NAME_BLANKS = 4  # in the name of a column and around it, at most
_GZIP = b"\x1f\x8b"
_SPACE = re.compile(r"[ \t]+")
_BARS = re.compile(r"(?<![^ ])\|\|\|(?![^ ])")


class Source:
    """An open corpus file: `name` for messages, `head` to guess its format from, `lines()` or `chunks()`.

    With `pauses` set, `lines()` yields None when nothing has come for a moment. `may_stall` is true if the writer
    may wait for an answer before it goes on, and pauses cannot be noticed. `header` says whether the first line
    names columns; if it is None, its words decide.
    """

    def __init__(self, source: Readable, header: bool | None = None) -> None:
        self.pauses, self.header = False, header
        self.line: int | None = None  # that was read last, of formats that have lines
        self.record: Row | None = None  # of tables: one without values, for its columns
        self.rows: tuple[int, int] | None = None  # the only ones to read, of formats that have rows
        self.share: float | None = None  # how much has been read, if the reader knows better
        self.unended = False  # whether the last line lacks its end, once it has been read
        self._opened: IO[bytes] | None = None
        self._read: Callable[[int], bytes]
        self.name = name_of(source, "<stdin>")
        with self._errors():
            stream: Any = source
            if source == "-":
                stream = sys.stdin.buffer if isinstance(sys.stdin, io.TextIOWrapper) else sys.stdin
            elif isinstance(source, (str, os.PathLike)):
                stream = self._opened = open(source, "rb")
            self._number, self._regular, self._selects = _nature(stream)
            self.may_stall = not (self._regular or self._selects)
            if isinstance(stream.read(0), str):
                # A character of text is at most 4 bytes: no more bytes come than were asked for.
                self._read = lambda size: stream.read(max(1, size // 4)).encode("utf-8", "surrogatepass")
            else:  # of a pipe, read1 returns what is there without waiting for all bytes
                self._read = stream.read1 if isinstance(stream, io.BufferedIOBase) else stream.read
            self.head = self._first_line()
            self._plain = not self.head.startswith(_GZIP)
            if not self._plain:
                from ._unpacked import unpacked

                self._read = unpacked(self.head, self._read)
                self.head = self._first_line()
                self._selects = self.may_stall = False  # nobody talks in gzip
        if self.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self.close()
            raise CorpusError("this is UTF-16: save it as UTF-8", self.name)

    def _first_line(self) -> bytes:
        """Read at least the first line that is not blank, unless it is endless."""
        parts: list[bytes] = []
        size, filled = 0, False
        while size < _LONGEST_HEAD and (more := self._read(_BLOCK)):
            parts.append(more)
            size += len(more)
            more = more if filled else more.lstrip()
            filled = bool(more)
            if b"\n" in more:
                break
        return b"".join(parts)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            wrong = f"the gzip data is damaged or cut short ({error}): copy the file again"
        except OSError as error:
            wrong = f"cannot be read: {error.strerror or error}"
        except ValueError as error:  # a name with NUL in it, a closed stream, a text stream that fails to decode
            wrong = f"cannot be read: {error}"
        else:
            return
        self.close()
        raise CorpusError(wrong, self.name) from None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """The whole file, for formats that are not read in order; a copy of what is packed or comes by a pipe."""
        if self._opened is not None and self._regular and self._plain:
            self._opened.seek(0)
            yield self._opened
            return
        import tempfile

        with tempfile.TemporaryFile() as copy:
            for block in self._blocks():
                copy.write(block or b"")
            copy.seek(0)
            yield copy

    def fraction(self) -> float | None:
        """Return how much of a regular file has been read; None for anything else."""
        if self.share is not None:
            return self.share
        if not self._regular:
            return None
        return min(1.0, os.lseek(self._number, 0, os.SEEK_CUR) / max(1, os.fstat(self._number).st_size))

    def _blocks(self, pauses: bool = False) -> Iterator[bytes | None]:
        with self._errors():
            block = self.head
            while block:
                yield block
                if pauses and self._selects and not select.select([self._number], [], [], _PATIENCE)[0]:
                    yield None
                    select.select([self._number], [], [])
                block = self._read(_BLOCK)

    def lines(self) -> Iterator[tuple[int, bytes] | None]:
        """Yield numbered lines as bytes, which `decode` turns into text; with `pauses`, also None."""
        number, parts = 1, [b""]
        for block in self._blocks(self.pauses):
            if block is None:
                yield None
                continue
            parts.append(block)
            if b"\n" in block:
                *lines, rest = b"".join(parts).split(b"\n")
                parts = [rest]
                for self.line, line in enumerate(lines, start=number):
                    yield self.line, line
                number += len(lines)
        if last := b"".join(parts):
            self.unended = True
            self.line = number
            yield number, last

    def decode(self, number: int, raw: bytes) -> str:
        """Return the line as text, without the \\r of its end and the file's byte-order mark."""
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte {raw[error.start]:#04x} in column {error.start + 1} is not UTF-8"
            raise CorpusError(f"{wrong}: convert the file to UTF-8", self.name, number) from None
        return line.removeprefix(BOM) if number == 1 else line

    def chunks(self) -> Iterator[str]:
        """Yield the file as pieces of text; bytes that are not UTF-8 become lone surrogates."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        first = True
        for block in self._blocks():
            text = decoder.decode(block or b"")
            yield text.removeprefix(BOM) if first else text
            first = first and not text
        yield decoder.decode(b"", final=True)


def _nature(stream: Any) -> tuple[int, bool, bool]:
    """Return the number of a stream, whether it is a regular file, and whether `select` can wait for it."""
    try:
        number = stream.fileno()
        if stat.S_ISREG(os.fstat(number).st_mode):
            return number, True, False
        select.select([number], [], [], 0)
    except (AttributeError, OSError, ValueError):  # ValueError: select takes small numbers only
        return -1, False, False
    return number, False, True


def name_of(file: Readable | Writable, standard: str = "<stdout>") -> str:
    """Return the name of a file for messages, `standard` for "-"."""
    if isinstance(file, (str, os.PathLike)):
        return standard if file == "-" else os.fspath(file)
    name = getattr(file, "name", None)  # some streams have none, or a number
    return name if isinstance(name, str) else "<stream>"


def write_chunks(chunks: Iterable[str | bytes], target: Writable) -> None:
    """Write pieces of text: to a path all or nothing, to a stream as they come.

    A path that ends in .gz is compressed. A pipe or a device that a path names is written directly.
    """
    opened: Any = nullcontext(target)
    if target == "-":
        sys.stdout.flush()  # below it are bytes: UTF-8 and \n in every locale
        opened = nullcontext(sys.stdout.buffer if isinstance(sys.stdout, io.TextIOWrapper) else sys.stdout)
    elif isinstance(target, (str, os.PathLike)):
        opened = _replacing(os.path.realpath(target), name_of(target))
    with opened as stream:
        binary = isinstance(stream, (io.RawIOBase, io.BufferedIOBase)) or "b" in str(getattr(stream, "mode", ""))
        first = True
        try:
            for chunk in chunks:
                if isinstance(chunk, bytes):
                    if not binary:
                        raise CorpusError("is a stream of text, and these are bytes", name_of(target))
                    stream.write(chunk)
                    continue
                if first and chunk:
                    # Readers drop a leading U+FEFF as a byte-order mark; a token's own needs one before it.
                    chunk, first = (BOM + chunk if chunk.startswith(BOM) else chunk), False
                try:
                    stream.write(chunk.encode("utf-8") if binary else chunk)
                except UnicodeEncodeError as error:
                    wrong = f"{error.encoding} cannot hold the character {error.object[error.start]!r}"
                    raise CorpusError(wrong, name_of(stream)) from None
        except Exception:
            stream.flush()  # everything before the mistake is good; but a signal does not wait for a reader
            raise
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
        from ..resources.store import unfinished  # not needed to read, or to write to stdout

        with unfinished(Path(path).parent) as part:
            with open(part, "wb") as stream:
                if name.endswith(".gz"):
                    # Neither time nor name inside: the same corpus gives the same bytes.
                    with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                        yield packed  # type: ignore[misc]
                else:
                    yield stream
            part.chmod(stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
            os.replace(part, path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CorpusError(f"cannot be written: {error.strerror or error}", name) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class CannotHold(ValueError):
    """A format cannot write this example; the message says what and why."""


def each_written(examples: Iterable[Example], write: Callable[[Example, int], str]) -> Iterator[str | CannotHold]:
    """Yield the text of each example, or in its place why it has none.

    `write` gets the example and its number among those that are written, from 1.
    """
    number = 1
    for example in examples:
        piece: str | CannotHold
        try:
            piece = write(example, number)
            if not piece.isascii():
                piece.encode("utf-8")
            number += 1
        except CannotHold as error:
            piece = error
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            piece = CannotHold(
                f"this format cannot hold {half!r}, which is half a surrogate pair and no character"
            )
        yield piece


def per_line(
    source: Source, parse: Callable[[str], T], *, skip_blank: bool = False, header: bool = False
) -> Iterator[T | CorpusError | None]:
    """Parse each line; a ValueError becomes a CorpusError in place of the item, and a pause of the source None.

    `header` tells whether the first line of such files may name the columns, which leaves it out.
    """
    for numbered in source.lines():
        if numbered is None:
            yield None
            continue
        number, raw = numbered
        try:
            line = source.decode(number, raw)
            if skip_blank and not line.strip(" \t\r"):
                continue
            if number == 1 and header and takes_header(source, line):
                continue
            item: T | CorpusError = parse(line)
        except CorpusError as error:
            item = error
        except ValueError as error:
            item = CorpusError(str(error), source.name, number)
        yield item


def takes_header(source: Source, line: str) -> bool:
    """Whether the first line names the columns; a ValueError if it names them in another order."""
    if source.header is not None:
        return source.header
    found, short = columns(line), 0
    for column in found:
        short += column.count(" ") <= NAME_BLANKS
    if short < 2:  # sentences: most files need no list of names
        return False
    from ._header import recognised

    return recognised(found, source.name)


def columns(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    if "|||" in line:
        return [column.strip(" ") for column in _BARS.split(line)]
    return [line]


def split_tokens(text: str) -> tuple[str, ...]:
    """Split at spaces and tabs only: a no-break space or U+2028 is part of its token."""
    tokens = text.split(" ")
    if "" in tokens or "\t" in text:
        tokens = [token for token in _SPACE.split(text) if token]
    return tuple(tokens)


def join_tokens(tokens: Sequence[str], forbidden: Iterable[str] = ()) -> str:
    """Join tokens by spaces; CannotHold if a reader would not split them in the same way."""
    line = " ".join(tokens)
    simple = line.count(" ") == max(0, len(tokens) - 1) and not any(c in line for c in "\t\n\r")
    if not simple or "" in tokens or any(piece in line for piece in forbidden):
        _blame(tokens, forbidden)
    return line


def _blame(tokens: Sequence[str], forbidden: Iterable[str]) -> None:
    for token in tokens:
        for piece in (" ", "\t", "\n", "\r", *forbidden):
            if piece in token:
                raise CannotHold(f"this format cannot hold the token {quote(token)}, which has {piece!r} in it")
        if not token:
            raise CannotHold("this format cannot hold an empty token")


def linked(pair: SentencePair, links: tuple[Iterable[Link], Iterable[Link]]) -> Alignment:
    """Make an alignment of sure and possible links; a ValueError if they are out of range."""
    return Alignment(len(pair.source), len(pair.target), frozenset(links[0]), frozenset(links[1]))


def alignment_of(example: Example) -> Alignment:
    """Return the alignment; CannotHold if there is none to write or it is of other sentences."""
    gold = example.gold
    if gold is None:
        raise CannotHold("the pair has no alignment; the formats text and jsonl hold pairs without")
    sizes = len(example.pair.source), len(example.pair.target)
    if (gold.n_source, gold.n_target) != sizes:
        raise CannotHold(f"an alignment of {gold.n_source} x {gold.n_target} tokens for {sizes[0]} x {sizes[1]}")
    return gold
