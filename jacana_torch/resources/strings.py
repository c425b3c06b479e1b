"""Many strings as arrays, found through a sorted hash: opens in no time, whatever their number.

In: strings. Out: row numbers, -1 where a string is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

import numpy as np

from .store import Arrays, Writer

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no power of it vanishes modulo 2**64
_WORDS_AT_ONCE = 1 << 16


def _packed(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The words' bytes one after the other, and where each begins (with the end of the last)."""
    text = "".join(words)
    if text.isascii():
        blob, lengths = text.encode("ascii"), map(len, words)
    else:
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        blob, lengths = b"".join(encoded), map(len, encoded)
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(words)), out=starts[1:])
    return np.frombuffer(blob, dtype=np.uint8), starts


def _within(lengths: np.ndarray) -> np.ndarray:
    """0, 1, ... up to each length, one run after the other."""
    begins = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(begins, lengths)


def _hashes(blob: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Of each word a polynomial in its bytes; sums wrap around modulo 2**64, and so do their differences."""
    lengths = np.diff(starts)
    powers = np.cumprod(np.full(lengths.max(initial=0) + 1, _BASE, dtype=np.uint64))
    sums = np.zeros(len(blob) + 1, np.uint64)
    np.cumsum((blob + np.uint64(1)) * powers[_within(lengths)], out=sums[1:])
    return sums[starts[1:]] - sums[starts[:-1]]


def write_strings(writer: Writer, name: str, words: Iterable[str]) -> None:
    """Store the words under `name`; of equal words the first row is the one that will be found."""
    remaining = iter(words)
    hashes, ends, end = [np.zeros(0, np.uint64)], [np.zeros(1, np.int64)], 0
    writer.append(f"{name}.bytes", np.zeros(0, np.uint8))
    while batch := list(islice(remaining, _WORDS_AT_ONCE)):
        blob, starts = _packed(batch)
        writer.append(f"{name}.bytes", blob)
        hashes.append(_hashes(blob, starts))
        ends.append(starts[1:] + end)
        end += len(blob)
    hashed = np.concatenate(hashes)
    order = np.argsort(hashed, kind="stable")
    writer.append(f"{name}.starts", np.concatenate(ends))
    writer.append(f"{name}.hashes", hashed[order])
    writer.append(f"{name}.order", order.astype(np.int64))


class StringTable:
    """The strings that `write_strings` stored."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._bytes, self._starts = arrays[f"{name}.bytes"], arrays[f"{name}.starts"]
        self._hashes, self._order = arrays[f"{name}.hashes"], arrays[f"{name}.order"]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, row: int) -> str:
        encoded = self._bytes[self._starts[row] : self._starts[row + 1]].tobytes()
        return encoded.decode("utf-8", "surrogatepass")

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """The row of each word, -1 where there is none."""
        rows = np.full(len(words), -1, dtype=np.int64)
        if not len(self) or not len(words):
            return rows
        blob, starts = _packed(words)
        wanted = _hashes(blob, starts)
        asked, at = np.arange(len(words)), np.searchsorted(self._hashes, wanted)
        while len(asked):  # once, unless hashes collide
            hit = self._hashes[np.minimum(at, len(self) - 1)] == wanted[asked]
            hit &= at < len(self)
            asked, at = asked[hit], at[hit]
            found = self._order[at]
            same = self._equal(found, blob, starts[asked], starts[asked + 1])
            rows[asked[same]] = found[same]
            asked, at = asked[~same], at[~same] + 1
        return rows

    def _equal(self, rows: np.ndarray, blob: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Whether the string of each row is blob[begin:end]."""
        own, lengths = self._starts[rows], ends - begins
        same: np.ndarray = self._starts[rows + 1] - own == lengths
        lengths = np.where(same, lengths, 0)
        within = _within(lengths)
        differs = self._bytes[np.repeat(own, lengths) + within] != blob[np.repeat(begins, lengths) + within]
        same[np.repeat(np.arange(len(rows)), lengths)[differs]] = False
        return same

    def all(self) -> list[str]:
        """Every string in row order."""
        blob, starts = self._bytes.tobytes(), self._starts.tolist()
        if blob.isascii():
            text = blob.decode("ascii")
            return [text[start:end] for start, end in pairwise(starts)]
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]
