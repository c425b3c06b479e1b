"""NLTK's averaged perceptron tagger, many sentences in lock-step: weights and token lists in, Penn tags out.

NLTK scores a token with fourteen feature strings, of which four depend on the two tags before it. Here the other
ten are gathered for a whole batch at once, and the tags are decided one step at a time for all sentences
together. A token of the tag dictionary needs no step, and two of them in a row (or a sentence's start) make what
follows independent of what went before, so that even one long sentence splits into parts that go in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..resources.strings import StringTable

if TYPE_CHECKING:
    from ..resources.store import Arrays

Words = Sequence[str]

# The cells around each sentence, and the tags of those before it (tagger_arrays.START_TAGS).
_PADS = ("-START-", "-START2-", "-END-", "-END2-")
# Columns of a word's rows, and which of them count where the word is 0, -1, -2, 1 and 2 cells from the one to tag.
_SHIFTS = (0, -1, -2, 1, 2)
_COLUMNS = ((0, 1, 2), (3, 4), (5,), (6, 7), (8,))
_BLOCK, _FORCED = 9, 10  # the word's row in `tag_word`, its tag in the tag dictionary or -1
_CACHED_WORDS = 1 << 13  # 1.8 kB each
_TOKENS_AT_ONCE = 1 << 14
_NEAR = 1e-6  # scores this close are summed again in NLTK's own order, so that rounding breaks ties as there


class LockstepTagger:
    """Tags exactly as `nltk.tag.perceptron.PerceptronTagger` with the same weights (tagger_arrays.py) does."""

    def __init__(self, arrays: Arrays) -> None:
        self.tags: list[str] = arrays.meta["tags"]
        self._names = np.array(self.tags, dtype=object)
        self._matrix, self._history = arrays["matrix"], arrays["history"]  # [F + 1, C], [K * K, C]
        self._bias = int(arrays["bias"][0])
        self._tag1, self._tag2, self._tag12 = arrays["tag1"], arrays["tag2"], arrays["tag12"]
        self._tag_word = arrays["tag_word"]
        self._forms, self._form_rows = StringTable(arrays, "forms"), arrays["form_rows"]
        self._ends, self._end_rows = StringTable(arrays, "ends"), arrays["end_rows"]
        self._forced, self._forced_tags = StringTable(arrays, "forced"), arrays["forced_tags"]
        self._forget(_CACHED_WORDS)

    def tag(self, sentences: Iterable[Words]) -> list[tuple[str, ...]]:
        """The tags of each sentence."""
        tagged: list[tuple[str, ...]] = []
        batch: list[Words] = []
        size = 0
        for sentence in sentences:
            if batch and size + len(sentence) > _TOKENS_AT_ONCE:
                tagged += self._tag_batch(batch)
                batch, size = [], 0
            batch.append(sentence)
            size += len(sentence)
        return tagged + self._tag_batch(batch) if batch else tagged

    def _forget(self, room: int) -> None:
        """Start the tables anew with the pads and room for some words, which takes memory as it is filled."""
        self._ids: dict[str, int] = {}
        self._rows = np.zeros((room + len(_PADS), 11), np.int32)
        self._sums = np.zeros((room + len(_PADS), len(_SHIFTS), self._matrix.shape[1]))
        self._learn(_PADS, _PADS, 0)
        self._rows[: len(_PADS), _FORCED] = len(self.tags) - 2, len(self.tags) - 1, 0, 0  # ends want no decision

    def _learn(self, words: Sequence[str], forms: Sequence[str], at: int) -> None:
        """Enter words, as they are and normalised: their rows, and what these say at each distance."""
        ends = self._ends.lookup([w[-3:] for w in words] + [w[:1] for w in words] + [f[-3:] for f in forms])
        own, first, end = self._end_rows[ends].reshape(3, len(words), self._end_rows.shape[1])
        form = self._form_rows[self._forms.lookup(forms)]
        forced = self._forced_tags[self._forced.lookup(words)]
        rows = np.column_stack(
            [own[:, 0], first[:, 1], form[:, :2], end[:, 2], form[:, 2:4], end[:, 3], form[:, 4:], forced]
        )
        self._rows[at : at + len(words)] = rows
        sums = self._sums[at : at + len(words)]
        sums[:, 0] = self._matrix[self._bias]
        for k, columns in enumerate(_COLUMNS):
            for column in columns:
                sums[:, k] += self._matrix[rows[:, column]]

    def _numbered(self, tokens: Sequence[str]) -> np.ndarray:
        """The table row of each token; words that are not in the tables are entered."""
        words = set(tokens)
        new = words.difference(self._ids)
        if len(new) + len(self._ids) + len(_PADS) > len(self._rows):
            self._forget(max(_CACHED_WORDS, len(words)))
            new = words
        at = len(self._ids) + len(_PADS)
        self._learn([*new], [*map(normalised, new)], at)
        self._ids.update(zip(new, range(at, at + len(new)), strict=True))
        return np.fromiter(map(self._ids.__getitem__, tokens), np.int64, len(tokens))

    def _tag_batch(self, batch: Sequence[Words]) -> list[tuple[str, ...]]:
        lengths = np.fromiter(map(len, batch), np.int64, len(batch))
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        cell = np.arange(bounds[-1]) + 2 + len(_PADS) * np.repeat(np.arange(len(batch)), lengths)  # of each token
        begins = bounds[:-1] + len(_PADS) * np.arange(len(batch))
        words = np.empty(bounds[-1] + len(_PADS) * len(batch), np.int64)
        words[begins], words[begins + 1] = 0, 1
        words[begins + lengths + 2], words[begins + lengths + 3] = 2, 3
        words[cell] = self._numbered(list(chain.from_iterable(batch)))
        tags = self._decided(words)
        names = self._names[tags[cell]].tolist()
        return [tuple(names[begin:end]) for begin, end in pairwise(bounds.tolist())]

    def _decided(self, words: np.ndarray) -> np.ndarray:
        """The tag of each cell, where `words` are the table rows of all cells."""
        tags = self._rows[words, _FORCED].astype(np.int64)
        undecided, steps = _schedule(tags, words == 0)
        fixed = self._fixed_scores(words, undecided)  # [T, C]
        blocks = self._rows[words[undecided], _BLOCK]
        for begin, end in pairwise(steps.tolist()):
            cells = undecided[begin:end]
            before, before2 = tags[cells - 1], tags[cells - 2]
            scores = fixed[begin:end]
            scores += self._history.take(before * len(self.tags) + before2, axis=0)
            scores += self._matrix.take(self._tag_word[blocks[begin:end], before], axis=0)
            best = scores.argmax(1)
            near = scores >= scores[np.arange(len(best)), best, None] - _NEAR
            if np.count_nonzero(near) > len(best):
                close = np.flatnonzero(near.sum(1) > 1)
                best[close] = self._exact_scores(words, tags, cells[close]).argmax(1)
            tags[cells] = best
        return tags

    def _fixed_scores(self, words: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """[T, C]: what the words around say at these cells."""
        sums = self._sums.reshape(len(self._sums) * len(_SHIFTS), -1)
        total = np.zeros((len(cells), sums.shape[1]))
        for k, shift in enumerate(_SHIFTS):
            total += sums.take(words[cells + shift] * len(_SHIFTS) + k, axis=0)
        return total

    def _exact_scores(self, words: np.ndarray, tags: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """[R, C]: scores added one feature after the other in the order in which NLTK adds them."""
        own, left, left2, right, right2 = (self._rows[words[cells + shift]] for shift in _SHIFTS)
        before, before2 = tags[cells - 1], tags[cells - 2]
        total = np.zeros((len(cells), self._matrix.shape[1]))
        for features in (
            np.full(len(cells), self._bias), own[:, 0], own[:, 1],
            self._tag1[before], self._tag2[before2], self._tag12[before, before2],
            own[:, 2], self._tag_word[own[:, _BLOCK], before],
            left[:, 3], left[:, 4], left2[:, 5], right[:, 6], right[:, 7], right2[:, 8],
        ):  # fmt: skip
            total += self._matrix[features]
        return total


def normalised(word: str) -> str:
    """The form in which NLTK's features name a word: years, numbers and hyphenated words are one each."""
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit() and len(word) == 4:
        return "!YEAR"
    if word and word[0].isdigit():
        return "!DIGITS"
    return word.lower()


def _schedule(tags: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cells without a tag, ordered so that each slice between two bounds depends on earlier slices only."""
    known = tags >= 0
    fresh = np.zeros(len(tags), dtype=bool)  # cells whose two predecessors are both known: a part begins
    fresh[2:] = known[1:-1] & known[:-2]
    fresh |= starts
    count = np.cumsum(~known)  # undecided cells up to and with this one
    begins = np.maximum.accumulate(np.where(fresh, np.arange(len(tags)), 0))
    rank: np.ndarray = count - (count[begins] - ~known[begins])  # 1, 2, ... within the part
    undecided = np.flatnonzero(~known)
    order = np.argsort(rank[undecided], kind="stable")
    steps = np.concatenate([[0], np.cumsum(np.bincount(rank[undecided])[1:])]) if len(order) else np.zeros(1, int)
    return undecided[order], steps
