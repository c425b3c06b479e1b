"""NLTK's averaged perceptron tagger, vectorised: tags many sentences in lock-step.

NLTK scores a token with fourteen feature strings. Four of them depend on the two tags before the token; the other
ten are summed for a whole batch at once. Then every step tags one token of each part of a sentence.

A new part begins at the start of a sentence, and after two tokens in a row that the tag dictionary decides: what
follows does not depend on anything before. So even a single long sentence is tagged in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..resources.catalogue import TAGGER_JSON, TAGGER_PICKLE
from ..resources.store import Arrays, StringTable, compiled

if TYPE_CHECKING:
    from ..resources.build import Writer

VERSION = 1
Words = Sequence[str]

# Cells around each sentence. The tags of the first two are tagger_files.START_TAGS.
_PADS = ("-START-", "-START2-", "-END-", "-END2-")
# Offset of a context word from the token to tag, and the columns of the word's row that count at this offset.
_OFFSETS = (0, -1, -2, 1, 2)
_COLUMNS = ((0, 1, 2), (3, 4), (5,), (6, 7), (8,))
_BLOCK, _FORCED = 9, 10  # columns: the word's row in `tag_word`, its tag in the tag dictionary or -1
_CACHED_WORDS = 1 << 14  # 1.8 kB each
_TOKENS_AT_ONCE = 1 << 14
# Scores this close are summed again in NLTK's order of features, because its rounding decides ties.
_NEAR = 1e-6


@lru_cache(maxsize=1)
def load(path: Path) -> LockstepTagger:
    """The tagger in a directory or zip, compiled at its first use."""

    def fill(writer: Writer) -> None:
        from ..resources import tagger_files

        tagger_files.compile_tagger(tagger_files.load(path), writer)

    files = TAGGER_JSON if path.stem.endswith("_eng") else (TAGGER_PICKLE,)
    sources = map(path.joinpath, files) if path.is_dir() else (path,)
    return LockstepTagger(compiled("tagger", VERSION, sources, fill))


class LockstepTagger:
    """Tags exactly as `nltk.tag.perceptron.PerceptronTagger` with the same weights (see tagger_files.py)."""

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
        # The cache: a number for each word, its rows in `matrix`, and their sums by offset. The pads come first.
        self._ids: dict[str, int] = {}
        self._rows = np.zeros((0, 11), np.int32)
        self._sums = np.zeros((0, len(_OFFSETS), self._matrix.shape[1]))

    def tag(self, sentences: Iterable[Words]) -> list[tuple[str, ...]]:
        """Return the tags of each sentence."""
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

    def _tag_batch(self, batch: Sequence[Words]) -> list[tuple[str, ...]]:
        """Tag a batch, whose tokens and pads are laid out in one row of cells."""
        lengths = np.fromiter(map(len, batch), np.int64, len(batch))
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        begins = bounds[:-1] + len(_PADS) * np.arange(len(batch))
        of_token = np.arange(bounds[-1]) + 2 + len(_PADS) * np.repeat(np.arange(len(batch)), lengths)
        words = np.empty(bounds[-1] + len(_PADS) * len(batch), np.int64)  # numbers in the cache
        words[begins], words[begins + 1] = 0, 1
        words[begins + lengths + 2], words[begins + lengths + 3] = 2, 3
        words[of_token] = self._numbered(list(chain.from_iterable(batch)))
        tags = self._rows[words, _FORCED].astype(np.int64)
        undecided, steps = _schedule(tags, words == 0)
        sums = self._sums.reshape(len(self._sums) * len(_OFFSETS), -1)
        fixed = np.zeros((len(undecided), sums.shape[1]))  # all that does not depend on tags
        for k, offset in enumerate(_OFFSETS):
            fixed += sums.take(words[undecided + offset] * len(_OFFSETS) + k, axis=0)
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
        names = self._names[tags[of_token]].tolist()
        tagged: list[tuple[str, ...]] = []
        for begin, end in pairwise(bounds.tolist()):
            tagged.append(tuple(names[begin:end]))
        return tagged

    def _numbered(self, tokens: Sequence[str]) -> np.ndarray:
        """Return the number of each token in the cache. New words are entered; a full cache is emptied first.

        The cache changes only when all is computed: a call that fails or is interrupted leaves it whole.
        """
        words, ids, cached, cached_sums = set(tokens), self._ids, self._rows, self._sums
        pads: tuple[str, ...] = ()
        new = words.difference(ids)
        at = len(ids) + len(_PADS)
        if at + len(new) > len(cached):
            room = max(_CACHED_WORDS, len(words)) + len(_PADS)
            cached = np.zeros((room, 11), np.int32)
            cached_sums = np.zeros((room, *cached_sums.shape[1:]))
            ids, new, pads, at = {}, words, _PADS, 0
        if new or pads:
            entered, forms = [*pads, *new], [*pads, *map(normalised, new)]
            ends: list[str] = []  # the suffix and the initial of each word, and the suffix of its form
            for word, form in zip(entered, forms, strict=True):
                ends += word[-3:], word[:1], form[-3:]
            end_rows = self._end_rows[self._ends.lookup(ends)].reshape(len(entered), 3, -1)
            own, first, end = end_rows[:, 0], end_rows[:, 1], end_rows[:, 2]
            whole = self._form_rows[self._forms.lookup(forms)]
            forced = self._forced_tags[self._forced.lookup(entered)]
            rows = cached[at : at + len(entered)]
            rows[:] = np.column_stack(
                [own[:, 0], first[:, 1], whole[:, :2], end[:, 2], whole[:, 2:4], end[:, 3], whole[:, 4:], forced]
            )
            if pads:  # any tag does after the end
                rows[: len(pads), _FORCED] = len(self.tags) - 2, len(self.tags) - 1, 0, 0
            sums = cached_sums[at : at + len(entered)]
            sums[:] = 0.0  # an interrupted call may have left something
            sums[:, 0] = self._matrix[self._bias]
            for k, columns in enumerate(_COLUMNS):
                for column in columns:
                    sums[:, k] += self._matrix[rows[:, column]]
            ids.update(zip(new, range(at + len(pads), at + len(entered)), strict=True))
            self._ids, self._rows, self._sums = ids, cached, cached_sums
        return np.fromiter(map(self._ids.__getitem__, tokens), np.int64, len(tokens))

    def _exact_scores(self, words: np.ndarray, tags: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """[R, C]: scores summed feature by feature in NLTK's order, so that rounding is the same."""
        own, left, left2, right, right2 = (self._rows[words[cells + offset]] for offset in _OFFSETS)
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
    """Return the form that NLTK's features use: one for years, one for numbers, one for hyphenated words."""
    if "-" in word and word[0] != "-":
        return "!HYPHEN"
    if word.isdigit() and len(word) == 4:
        return "!YEAR"
    if word and word[0].isdigit():
        return "!DIGITS"
    return word.lower()


def _schedule(tags: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order the cells without a tag, and cut them into steps that depend only on earlier steps."""
    known = tags >= 0
    fresh = starts.copy()  # cells where a part begins
    fresh[2:] |= known[1:-1] & known[:-2]
    count = np.cumsum(~known)  # undecided cells up to and including this one
    begins = np.maximum.accumulate(np.where(fresh, np.arange(len(tags)), 0))
    rank: np.ndarray = count - (count[begins] - ~known[begins])  # 1, 2, ... within the part
    undecided = np.flatnonzero(~known)
    order = np.argsort(rank[undecided], kind="stable")
    steps = np.concatenate([[0], np.cumsum(np.bincount(rank[undecided])[1:])]) if len(order) else np.zeros(1, int)
    return undecided[order], steps
