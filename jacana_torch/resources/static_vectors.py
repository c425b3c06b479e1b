"""Static word vectors of unit length, memory-mapped. vector_files.py compiles them at their first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import JacanaError
from . import RECEIPT
from .store import Arrays, StringTable, compiled

if TYPE_CHECKING:
    from .build import Writer

VERSION = 2
_WORD_LISTS = (".parquet", ".txt", ".vocab", ".json", ".words")


@lru_cache(maxsize=8)
def load(path: Path) -> Vectors:
    """The vectors in a file, compiled at their first use."""

    def fill(writer: Writer) -> None:
        from .vector_files import compile_vectors

        compile_vectors(path, writer)

    sources = npy_and_words(path) if path.is_dir() or path.suffix == ".npy" else (path,)
    return Vectors(compiled("vectors", VERSION, sources, fill), path)


def npy_and_words(path: Path) -> tuple[Path, Path]:
    """A matrix and the list of its words: `path` is the matrix, or a directory that holds both."""
    folder = path if path.is_dir() else path.parent
    matrices = sorted(folder.glob("*.npy")) if path.is_dir() else [path]
    if len(matrices) != 1:
        raise JacanaError(f"{folder} holds {len(matrices)} .npy files; name the one with the vectors")
    lists = [file for file in sorted(folder.iterdir()) if file.suffix in _WORD_LISTS and file.name != RECEIPT]
    own = [file for file in lists if file.stem == matrices[0].stem]
    for found in (own, lists):
        if len(found) == 1:
            return matrices[0], found[0]
    raise JacanaError(
        f"{len(lists)} files next to {matrices[0]} could list its words; there must be one "
        f"({', '.join(_WORD_LISTS)}), or one called {matrices[0].stem} with such an ending"
    )


class Vectors:
    """`matrix` [words, dim] has rows of length 1 (float32, or float16 if large); cast what you gather."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self.matrix: np.ndarray = arrays["matrix"]
        self.path = path
        self._words = StringTable(arrays, "words")

    def __len__(self) -> int:
        return len(self._words)

    def __reduce__(self) -> tuple[Callable[[Path], Vectors], tuple[Path]]:
        return load, (self.path,)  # worker processes map the same file rather than copy it

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def word(self, row: int) -> str:
        return self._words[row]

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """[words] the row of each word (as it is, else lower case, else Capitalised), -1 if it has none."""
        rows = self._words.lookup(words)
        for change in (str.lower, str.capitalize):
            missing = np.flatnonzero(rows < 0)
            if not len(missing):
                break
            rows[missing] = self._words.lookup(list(map(change, map(words.__getitem__, missing.tolist()))))
        return rows

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """[ids, dim] float32 vectors of these rows; zeros where the row is -1."""
        ids = np.asarray(ids, dtype=np.int64)
        found: np.ndarray = self.matrix[np.maximum(ids, 0)].astype(np.float32)
        found[ids < 0] = 0.0
        return found
