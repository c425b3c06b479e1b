"""Rows under codes, in a table of fixed size that keeps what is asked for again.

Distinct codes and rows go in; rows of codes that were kept come out. Each code may have any of a few slots side by
side. A new one takes an empty slot, or that of a code which was not asked for since it came; where all were, it
finds no place, and they have to be asked for once more before the next new one comes. So what comes once, as most
pairs of words do, goes soon, and what is common stays.
"""

from __future__ import annotations

import numpy as np

_WAYS = 4  # slots that a code may have: from its own, the numbers that differ in the last bits
_SCATTER = np.uint64(0x9E3779B97F4A7C15)


class Slots:
    """`rows` [slots] under a `code` [slots] each, -1 where there is none; `taken` of them are not empty."""

    def __init__(self, bits: int, row: np.dtype) -> None:
        self.bits, self.taken = bits, 0
        self.code = np.full(1 << bits, -1, dtype=np.int64)
        self.rows = np.zeros(1 << bits, row)
        self._again = np.zeros(1 << bits, dtype=bool)  # asked for since it came
        self._claims = np.zeros(1 << bits, dtype=np.int32)
        self._ways = min(_WAYS, 1 << bits)

    def _own(self, code: np.ndarray) -> np.ndarray:
        return ((code.view(np.uint64) * _SCATTER) >> np.uint64(64 - self.bits)).view(np.int64)

    def look_up(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[C] rows, and [C] whether they are those of the codes."""
        slot = self._own(code)
        found = self.code[slot] == code
        others = np.flatnonzero(~found)  # most are in their own
        for way in range(1, self._ways):
            place = slot[others] ^ way
            there = self.code[place] == code[others]
            slot[others[there]], found[others[there]] = place[there], True
            others = others[~there]
        self._again[slot[found]] = True
        return self.rows.take(slot), found

    def keep(self, code: np.ndarray, rows: np.ndarray) -> None:
        """Rows under distinct codes that are not there."""
        rows, left = _bare(rows), np.arange(len(code), dtype=np.int32)
        for _ in range(self._ways):  # of several for one slot, one gets it; the others try again
            slot, worth = self._free(code[left])
            slot, left = slot[worth], left[worth]
            self._claims[slot] = left
            first = self._claims[slot] == left
            self._put(slot[first], code[left[first]], rows[left[first]])
            left = left[~first]

    def _free(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[C] the slot that each may have, and whether it may: where all were asked for again, it may not."""
        ways = self._own(code)[:, None] ^ np.arange(self._ways)
        rank = np.where(self.code[ways] < 0, 0, 1 + self._again[ways])
        slot, worth = np.take_along_axis(ways, rank.argmin(1)[:, None], 1)[:, 0], rank.min(1) < 2
        self._again[ways[~worth]] = False
        return slot, worth

    def _put(self, slot: np.ndarray, code: np.ndarray, rows: np.ndarray) -> None:
        self.taken += np.count_nonzero(self.code[slot] < 0)
        self.code[slot] = -1  # an interruption must not leave figures of one pair under another's code
        _bare(self.rows)[slot] = rows
        self._again[slot] = False
        self.code[slot] = code


def _bare(rows: np.ndarray) -> np.ndarray:
    """Rows as plain numbers, which numpy copies three times as quickly as rows with fields."""
    return rows.view(np.uint32).reshape(len(rows), rows.itemsize // 4)


NOTHING = Slots(0, np.dtype([]))
