"""The lexical paraphrase pairs of PPDB (two words a line with a tab between) as a sorted array of word numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import JacanaError
from .catalogue import PPDB_FILE
from .store import Arrays, StringTable, compiled

if TYPE_CHECKING:
    from .build import Writer

VERSION = 2


@lru_cache(maxsize=2)
def load(path: Path) -> Ppdb:
    """The pairs in a file, or in the directory or zip that holds PPDB_FILE."""
    source = path / PPDB_FILE if path.is_dir() else path

    def fill(writer: Writer) -> None:
        _compile(source, writer)

    return Ppdb(compiled("ppdb", VERSION, [source], fill), path)


def _compile(source: Path, writer: Writer) -> None:
    from .build import write_strings

    number: dict[str, int] = {}
    pairs = set()
    for line, (left, right) in enumerate(_read(source), 1):
        if not left or not right:
            raise JacanaError(
                f"{source}:{line}: expected a pair of words with a tab between them. "
                f"The file is damaged or is not {PPDB_FILE}"
            )
        ids = [number.setdefault(word.lower(), len(number)) for word in (left, right)]
        pairs.add((min(ids), max(ids)))
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    write_strings(writer, "words", number)
    writer.append("keys", ends[:, 0] * len(number) + ends[:, 1])  # sorted, as the pairs are


def _read(source: Path) -> list[tuple[str, str]]:
    """The two fields of each line; two empty ones if it has another number of fields."""
    if source.suffix == ".zip":
        from .build import read_member

        raw = read_member(source, PPDB_FILE)
    else:
        try:
            raw = source.read_bytes()
        except OSError as error:
            raise JacanaError(f"cannot read {source}: {error.strerror or error}") from None
    lines = raw.decode("utf-8", "replace").split("\n")
    fields = [line.rstrip("\r").split("\t") for line in lines]
    if fields and fields[-1] == [""]:
        fields.pop()
    return [(f[0], f[1]) if len(f) == 2 else ("", "") for f in fields]


class Ppdb:
    """A symmetric set of word pairs, compared in lower case."""

    def __init__(self, arrays: Arrays, path: Path) -> None:
        self.path = path
        self._words, self._keys = StringTable(arrays, "words"), arrays["keys"]

    def __len__(self) -> int:
        return len(self._keys)

    def __reduce__(self) -> tuple[Callable[[Path], Ppdb], tuple[Path]]:
        return load, (self.path,)  # worker processes open the same arrays from the cache

    def contains(self, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        """[pairs] whether left[k] and right[k] are paraphrases, in either order."""
        if len(left) != len(right):
            raise ValueError(f"{len(left)} left words do not pair with {len(right)} right words")
        distinct = {word: k for k, word in enumerate(dict.fromkeys([*left, *right]))}
        ids = self._words.lookup([word.lower() for word in distinct])
        here = ids[np.array([distinct[word] for word in left], dtype=np.int64)]
        there = ids[np.array([distinct[word] for word in right], dtype=np.int64)]
        # An unknown word (-1) makes the key negative; keys in the file are not.
        keys = np.minimum(here, there) * len(self._words) + np.maximum(here, there)
        if not len(self):
            return np.zeros(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self) - 1)
        return np.asarray(self._keys[at] == keys)
