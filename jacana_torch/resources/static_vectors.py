"""Static word vectors, normalised and memory-mapped, whatever format they came in.

In: a resource's name, or a file that a user has. Out: Vectors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..errors import JacanaError, MissingResource
from .catalogue import CATALOGUE
from .lookup import located
from .store import Arrays, Writer, compiled
from .strings import StringTable, write_strings
from .vector_formats import Block, read_vectors, source_files

VERSION = 2
_HALF_ABOVE = 1 << 30  # bytes of single precision above which half precision is kept


def locate(name_or_path: str) -> Path:
    """The file (or directory of files) behind a resource's name or a path."""
    name = os.fspath(name_or_path)
    if name in CATALOGUE:
        found = located(name)
        only = CATALOGUE[name].files
        return found / only[0] if len(only) == 1 and found.is_dir() else found
    path = Path(name).expanduser()
    if not path.exists():
        raise MissingResource(
            f"there are no vectors at {name!r}, and no resource is called that: give a file in word2vec, GloVe or "
            ".npy format, or one of glove-840b, glove-6b"
        )
    return path.resolve()


@lru_cache(maxsize=8)
def load(path: Path) -> Vectors:
    """The vectors in a file, compiled at their first use."""

    def build(writer: Writer) -> None:
        _compile(path, writer)

    return Vectors(compiled("vectors", VERSION, source_files(path), build), path)


def _compile(path: Path, writer: Writer) -> None:
    seen: dict[str, None] = {}
    dtype = None
    for block in read_vectors(path):
        if dtype is None:
            dtype = np.float16 if block.expected_rows * block.matrix.shape[1] * 4 > _HALF_ABOVE else np.float32
        keep = []
        for k, word in enumerate(block.words):
            if word not in seen:  # of a word's vectors the first counts
                seen[word] = None
                keep.append(k)
        writer.append("matrix", _normalised(block, path)[keep].astype(dtype))
    if not seen:
        raise JacanaError(f"{path} holds no vectors")
    write_strings(writer, "words", seen)


def _normalised(block: Block, path: Path) -> np.ndarray:
    matrix = np.asarray(block.matrix, dtype=np.float64)
    finite = np.isfinite(matrix).all(1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise JacanaError(f"{path}: the vector of {block.words[row]!r} has a figure that is not finite")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(norms > 0, norms, 1.0)  # a zero vector stays zero: similar to nothing


class Vectors:
    """`matrix` [words, dim] has rows of length 1 (float32, or float16 where large); cast what you gather."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self.matrix: np.ndarray = arrays["matrix"]
        self.path = path
        self._words = StringTable(arrays, "words")
        if len(self._words) != len(self.matrix):
            raise JacanaError(f"{path}: {len(self._words)} words and {len(self.matrix)} vectors")

    def __len__(self) -> int:
        return len(self._words)

    def __reduce__(self):  # worker processes map the same file rather than copy it
        return load, (self.path,)

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def word(self, row: int) -> str:
        return self._words[row]

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """The row of each word (as it is, else lower case, else Capitalised), -1 where there is none."""
        rows = self._words.lookup(words)
        for change in (str.lower, str.capitalize):
            missing = np.flatnonzero(rows < 0)
            if not len(missing):
                break
            rows[missing] = self._words.lookup([change(words[k]) for k in missing.tolist()])
        return rows

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """float32 vectors of the given rows; zeros where the row is -1."""
        ids = np.asarray(ids, dtype=np.int64)
        found = self.matrix[np.maximum(ids, 0)].astype(np.float32)
        found[ids < 0] = 0.0
        return found
