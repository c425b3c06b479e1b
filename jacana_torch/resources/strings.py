"""Many strings as arrays, found through a sorted hash: opens in no time, whatever their number.

In: strings. Out: row numbers, -1 where a string is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from .store import Arrays, Writer


def _hash(word: bytes) -> bytes:
    return blake2b(word, digest_size=8).digest()


def write_strings(writer: Writer, name: str, words: Iterable[str]) -> None:
    """Store the words under `name`; of equal words the first row is the one that will be found."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int64) if encoded else np.zeros(0, np.int64)
    hashes = np.frombuffer(b"".join(map(_hash, encoded)), dtype="<u8")
    order = np.argsort(hashes, kind="stable")
    writer.append(f"{name}.bytes", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    writer.append(f"{name}.starts", np.concatenate([np.zeros(1, np.int64), ends]))
    writer.append(f"{name}.hashes", hashes[order])
    writer.append(f"{name}.order", order.astype(np.int64))


class StringTable:
    """The strings that `write_strings` stored."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._bytes, self._starts = arrays[f"{name}.bytes"], arrays[f"{name}.starts"]
        self._hashes, self._order = arrays[f"{name}.hashes"], arrays[f"{name}.order"]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, row: int) -> str:
        return self._encoded(row).decode("utf-8", "surrogatepass")

    def _encoded(self, row: int) -> bytes:
        return self._bytes[self._starts[row] : self._starts[row + 1]].tobytes()

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """The row of each word, -1 where there is none."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        rows = np.full(len(encoded), -1, dtype=np.int64)
        if not len(self) or not encoded:
            return rows
        wanted = np.frombuffer(b"".join(map(_hash, encoded)), dtype="<u8")
        first = np.searchsorted(self._hashes, wanted, side="left")
        hits = np.flatnonzero(self._hashes[np.minimum(first, len(self) - 1)] == wanted)
        for k in hits.tolist():  # bytes are compared, as hashes can collide
            at = int(first[k])
            while at < len(self) and self._hashes[at] == wanted[k]:
                if self._encoded(int(self._order[at])) == encoded[k]:
                    rows[k] = self._order[at]
                    break
                at += 1
        return rows

    def all(self) -> list[str]:
        """Every string in row order."""
        blob, starts = self._bytes.tobytes(), self._starts.tolist()
        if blob.isascii():
            text = blob.decode("ascii")
            return [text[start:end] for start, end in pairwise(starts)]
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]
