"""Read files of static word vectors in blocks of bounded memory, and compile them for static_vectors.py.

Formats: word2vec text or binary, and GloVe text (also with spaces in words), each plain, .gz or .zip; or a .npy
matrix with a list of its words next to it.
"""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import JacanaError
from .build import Writer, write_strings
from .static_vectors import npy_and_words

_LINES = 4096  # rows of a block
_PEEK = 1 << 20
_HALF_ABOVE = 1 << 30  # bytes of single precision above which half precision is kept


@dataclass(frozen=True)
class Block:
    """Words and their vectors as they are in the file."""

    words: list[str]
    matrix: np.ndarray  # [len(words), dim]
    expected_rows: int  # in the whole file, possibly an estimate


def compile_vectors(path: Path, writer: Writer) -> None:
    """Write the vectors of a file with unit length, and their words. The first vector of a word counts."""
    seen: dict[str, None] = {}
    dtype: type[np.floating[Any]] | None = None
    for block in read_vectors(path):
        if dtype is None:
            dtype = np.float16 if block.expected_rows * block.matrix.shape[1] * 4 > _HALF_ABOVE else np.float32
        keep = []
        for k, word in enumerate(block.words):
            if word not in seen:
                seen[word] = None
                keep.append(k)
        matrix = np.asarray(block.matrix, dtype=np.float64)
        finite = np.isfinite(matrix).all(1)
        if not finite.all():
            bad = block.words[int(np.flatnonzero(~finite)[0])]
            raise JacanaError(f"{path}: the vector of {bad!r} has a value that is not finite")
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        unit = matrix / np.where(norms > 0, norms, 1.0)  # a zero vector stays zero: similar to nothing
        writer.append("matrix", unit[keep].astype(dtype))
    if not seen:
        raise JacanaError(f"{path} holds no vectors")
    write_strings(writer, "words", seen)


def read_vectors(path: Path) -> Iterator[Block]:
    """All vectors of a file, in its order."""
    if path.is_dir() or path.suffix == ".npy":
        yield from _read_npy(*npy_and_words(path))
        return
    try:
        with _opened(path) as stream:
            head = stream.peek(_PEEK)
            header = _word2vec_header(head)
            if header is None:
                yield from _read_text(stream, path, _dimension(head, path), None, 1)
                return
            first = stream.readline()
            if _is_text(head[len(first) :], header[1]):
                yield from _read_text(stream, path, header[1], header[0], 2)
            else:
                yield from _read_binary(stream, path, *header)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise JacanaError(f"cannot read the vectors in {path}: {error}") from error


def _opened(path: Path) -> BufferedReader:
    """A stream whose first megabyte can be peeked at."""
    if path.suffix == ".gz":
        raw: Any = gzip.open(path)
    elif path.suffix == ".zip":
        archive = zipfile.ZipFile(path)
        inside = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(inside) != 1:
            raise JacanaError(f"{path} holds {len(inside)} files; unpack it and give the one with the vectors")
        raw = archive.open(inside[0])
    else:
        raw = open(path, "rb", buffering=0)
    return BufferedReader(raw, _PEEK)


def _word2vec_header(head: bytes) -> tuple[int, int] | None:
    fields = head.split(b"\n", 1)[0].split()
    if len(fields) == 2 and all(field.isdigit() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def _is_text(rest: bytes, dim: int) -> bool:
    """Whether the first vector after the header is written as decimal numbers."""
    fields = rest.split(b"\n", 1)[0].split()[-dim:]
    try:
        return len(fields) == dim and all(field.isascii() and float(field) is not None for field in fields)
    except ValueError:
        return False


def _dimension(head: bytes, path: Path) -> int:
    """The number of dimensions: one less than the fields of the shortest line, since words may hold spaces."""
    lines = head.split(b"\n")
    if len(lines) > 1:  # the last one may be cut
        lines.pop()
    counts = [len(line.rstrip().split(b" ")) for line in lines if line.strip()]
    if not counts or min(counts) < 2:
        raise JacanaError(f"{path}:1: expected a word and its vector, with spaces between them")
    return min(counts) - 1


def _read_text(stream: BufferedReader, path: Path, dim: int, rows: int | None, line: int) -> Iterator[Block]:
    read = 0
    while lines := list(islice(stream, _LINES)):
        if rows is None:
            rows = max(1, path.stat().st_size // max(1, len(lines[0])))
            announced = None
        elif read == 0:
            announced = rows
        words, numbers = [], []
        for number, text in enumerate(lines, line + read):
            fields = text.rstrip(b"\r\n ").rsplit(b" ", dim)
            if len(fields) != dim + 1:
                raise JacanaError(f"{path}:{number}: {len(fields) - 1} numbers after the word, not {dim}")
            words.append(fields[0].decode("utf-8", "surrogateescape"))
            numbers.append(fields[1:])
        yield Block(words, _parsed(numbers, path, line + read), rows)
        read += len(lines)
    if read and announced is not None and announced != read:
        raise JacanaError(
            f"{path}: its first line promises {announced} words, but it has {read}: is it truncated?"
        )


def _parsed(numbers: list[list[bytes]], path: Path, first_line: int) -> np.ndarray:
    try:
        return np.array(numbers).astype(np.float32)
    except ValueError:
        for number, fields in enumerate(numbers, first_line):
            for field in fields:
                try:
                    float(field)
                except ValueError:
                    raise JacanaError(f"{path}:{number}: {field[:40]!r} is not a number") from None
        raise


def _read_binary(stream: BufferedReader, path: Path, rows: int, dim: int) -> Iterator[Block]:
    for start in range(0, rows, _LINES):
        words, vectors = [], []
        for row in range(start, min(rows, start + _LINES)):
            words.append(_binary_word(stream, path, row))
            raw = stream.read(4 * dim)
            if len(raw) != 4 * dim:
                raise JacanaError(f"{path} ends within word {row + 1} of {rows}: is it truncated?")
            vectors.append(raw)
        yield Block(words, np.frombuffer(b"".join(vectors), dtype="<f4").reshape(-1, dim), rows)


def _binary_word(stream: BufferedReader, path: Path, row: int) -> str:
    word = bytearray()
    while (byte := stream.read(1)) != b" ":
        if not byte or len(word) > 10_000:
            raise JacanaError(
                f"{path}: word {row + 1} has no end: the file is truncated, or not a word2vec binary file"
            )
        word += byte
    return word.lstrip(b"\n").decode("utf-8", "surrogateescape")


def _read_npy(matrix_file: Path, word_file: Path) -> Iterator[Block]:
    try:
        matrix = np.load(matrix_file, mmap_mode="r", allow_pickle=False)
        words = _read_words(word_file)
    except (OSError, ValueError, EOFError) as error:
        raise JacanaError(f"cannot read the vectors in {matrix_file} and {word_file.name}: {error}") from error
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.floating) or len(matrix) != len(words):
        raise JacanaError(
            f"{matrix_file} holds {matrix.dtype} {matrix.shape} and {word_file.name} {len(words)} words: "
            "expected a row of floating-point numbers for each word"
        )
    for start in range(0, len(words), _LINES):
        yield Block(words[start : start + _LINES], matrix[start : start + _LINES], len(words))


def _read_words(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        from .parquet import read_strings

        return read_strings(file.read_bytes())
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    if file.suffix != ".json":
        return text.removesuffix("\n").split("\n")
    words = json.loads(text)
    if isinstance(words, dict):  # word -> row
        words = [word for word, _ in sorted(words.items(), key=lambda item: item[1])]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("expected a list of words, or a mapping from words to rows")
    return words
