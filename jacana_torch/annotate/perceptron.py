"""NLTK's averaged perceptron tagger, many sentences in lock-step: weights and token lists in, Penn tags out.

NLTK scores a token with fourteen feature strings, of which four depend on the two tags before it. Here the other
ten are gathered for a whole batch at once, and the tags are decided one step at a time for all sentences
together. A token of the tag dictionary needs no step, and two of them in a row (or a sentence's start) make what
follows independent of what went before, so that even one long sentence splits into parts that go in parallel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

Words = Sequence[str]
Table = dict[str, int]

_START_WORDS, _END_WORDS = ("-START-", "-START2-"), ("-END-", "-END2-")
# The first token has -START- as the tag before it and -START2- as the word before it, as NLTK trained the weights.
_START_TAGS = ("-START2-", "-START-")
_WORD_FAMILIES = (
    "i suffix", "i pref1", "i word", "i-1 word", "i-1 suffix", "i-2 word", "i+1 word", "i+1 suffix", "i+2 word",
)  # fmt: skip
_AROUND = ((0, (0, 1, 2)), (-1, (3, 4)), (-2, (5,)), (1, (6, 7)), (2, (8,)))  # which word has which columns above
_BLOCK, _FORCED = 9, 10  # columns after them: the word's row in `_tag_word`, its tag in the tag dictionary or -1
_CACHED_WORDS = 1 << 17
_TOKENS_AT_ONCE = 1 << 14
_NEAR = 1e-6  # scores this close are summed again in NLTK's own order, so that rounding breaks ties as there


class LockstepTagger:
    """Tags exactly as `nltk.tag.perceptron.PerceptronTagger` with the same weights does."""

    def __init__(
        self,
        weights: Mapping[str, Mapping[str, float]],
        tagdict: Mapping[str, str],
        classes: Collection[str],
    ) -> None:
        self.classes = sorted(classes, reverse=True)  # NLTK takes the greatest (score, tag), argmax the first
        forced = {tag for tag in tagdict.values() if tag}
        self.tags = [*self.classes, *sorted(forced - set(self.classes)), *_START_TAGS]
        self._tag_ids = {tag: k for k, tag in enumerate(self.tags)}
        self._forced = {word: self._tag_ids[tag] for word, tag in tagdict.items() if tag}
        self._matrix, families = _compiled(weights, self.classes)  # [F + 1, C], row 0 is "no such feature"
        self._word_tables = [families.get(name, {}) for name in _WORD_FAMILIES]
        self._bias = families.get("bias", {}).get("", 0)
        self._tag_tables(families)
        self._cache: dict[str, tuple[int, ...]] = {}

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

    def _tag_tables(self, families: Mapping[str, Table]) -> None:
        """Rows for the tags before: singly, as pairs, their sum ready made, and with the word itself."""
        n = len(self.tags)
        self._tag1 = np.array([families.get("i-1 tag", {}).get(tag, 0) for tag in self.tags])
        self._tag2 = np.array([families.get("i-2 tag", {}).get(tag, 0) for tag in self.tags])
        pairs = families.get("i tag+i-2 tag", {})
        self._tag12 = np.array([[pairs.get(f"{tag} {before}", 0) for before in self.tags] for tag in self.tags])
        m = self._matrix
        history = m[self._tag1][:, None] + m[self._tag2][None] + m[self._tag12]  # [K, K, C]
        self._history = history.reshape(n * n, -1)
        self._blocks: Table = {}
        with_word = families.get("i-1 tag+i word", {})
        for feature in with_word:
            self._blocks.setdefault(feature.partition(" ")[2], len(self._blocks) + 1)
        self._tag_word = np.zeros((len(self._blocks) + 1, n), dtype=np.int32)  # row 0: a word without any
        for feature, row in with_word.items():
            tag, _, word = feature.partition(" ")
            if tag in self._tag_ids:
                self._tag_word[self._blocks[word], self._tag_ids[tag]] = row

    def _rows(self, word: str, form: str) -> tuple[int, ...]:
        """The matrix rows of a word's features, in the order of the columns; `form` is the word normalised."""
        ends = word[-3:], word[:1], form, form, form[-3:], form, form, form[-3:], form
        rows = [table.get(end, 0) for table, end in zip(self._word_tables, ends, strict=True)]
        return (*rows, self._blocks.get(form, 0), self._forced.get(word, -1))

    def _flattened(self, batch: Sequence[Words]) -> tuple[np.ndarray, np.ndarray]:
        """Word ids of all sentences, each between two start and two end cells; the rows [U, 11] of the words."""
        if len(self._cache) > _CACHED_WORDS:
            self._cache.clear()
        rows = [self._rows(word, word) for word in _START_WORDS + _END_WORDS]
        ids: dict[str, int] = {}
        cells: list[int] = []
        for sentence in batch:
            cells += (0, 1)
            for word in sentence:
                known = ids.get(word)
                if known is None:
                    known = ids[word] = len(rows)
                    cached = self._cache.get(word)
                    if cached is None:
                        cached = self._cache[word] = self._rows(word, normalised(word))
                    rows.append(cached)
                cells.append(known)
            cells += (2, 3)
        return np.array(cells), np.array(rows)

    def _tag_batch(self, batch: Sequence[Words]) -> list[tuple[str, ...]]:
        words, rows = self._flattened(batch)
        tags = rows[words, _FORCED]
        tags[words == 0], tags[words == 1] = len(self.tags) - 2, len(self.tags) - 1
        tags[(words == 2) | (words == 3)] = 0  # end cells have no tag, and none to be decided
        undecided, steps = _schedule(tags, words == 0)
        fixed = self._fixed_scores(words, rows, undecided)  # [T, C]
        blocks = rows[words[undecided], _BLOCK]
        for begin, end in zip(steps, steps[1:], strict=False):
            cells = undecided[begin:end]
            before, before2 = tags[cells - 1], tags[cells - 2]
            scores = fixed[begin:end] + self._history[before * len(self.tags) + before2]
            scores += self._matrix[self._tag_word[blocks[begin:end], before]]
            best = scores.argmax(1)
            near = scores >= scores[np.arange(len(best)), best, None] - _NEAR
            if np.count_nonzero(near) > len(best):
                close = np.flatnonzero(near.sum(1) > 1)
                best[close] = self._exact_scores(words, rows, tags, cells[close]).argmax(1)
            tags[cells] = best
        names, tagged, at = self.tags, [], 2
        decided = tags.tolist()
        for sentence in batch:
            tagged.append(tuple(names[k] for k in decided[at : at + len(sentence)]))
            at += len(sentence) + 4
        return tagged

    def _fixed_scores(self, words: np.ndarray, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """[T, C]: what the words around say at these cells, summed per distinct word and then gathered."""
        total = np.broadcast_to(self._matrix[self._bias], (len(cells), len(self.classes))).copy()
        for shift, columns in _AROUND:
            of_word = self._matrix[rows[:, columns[0]]]  # [U, C]
            for column in columns[1:]:
                of_word += self._matrix[rows[:, column]]
            total += of_word[words[cells + shift]]
        return total

    def _exact_scores(
        self, words: np.ndarray, rows: np.ndarray, tags: np.ndarray, cells: np.ndarray
    ) -> np.ndarray:
        """[R, C]: scores added one feature after the other in the order in which NLTK adds them."""
        own, left, left2 = rows[words[cells]], rows[words[cells - 1]], rows[words[cells - 2]]
        right, right2 = rows[words[cells + 1]], rows[words[cells + 2]]
        before, before2 = tags[cells - 1], tags[cells - 2]
        total = np.zeros((len(cells), len(self.classes)))
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


def _compiled(
    weights: Mapping[str, Mapping[str, float]], classes: Sequence[str]
) -> tuple[np.ndarray, dict[str, Table]]:
    """The weights as a matrix [F + 1, C] with a row of zeros first, and the row of each feature by family."""
    column = {tag: k for k, tag in enumerate(classes)}
    families: dict[str, Table] = {}
    at: list[int] = []
    values: list[float] = []
    for row, (feature, by_tag) in enumerate(weights.items(), start=1):
        family, value = _parsed(feature)
        families.setdefault(family, {})[value] = row
        for tag, weight in by_tag.items():
            if tag in column:
                at.append(row * len(classes) + column[tag])
                values.append(weight)
    matrix = np.zeros((len(weights) + 1) * len(classes))
    matrix[at] = values
    return matrix.reshape(-1, len(classes)), families


def _parsed(feature: str) -> tuple[str, str]:
    """Family and value of a feature's name: ("i suffix", "ing"), ("i-1 tag+i word", "DT cat"), ("bias", "")."""
    for family in ("i tag+i-2 tag", "i-1 tag+i word"):
        if feature.startswith(family + " "):
            return family, feature[len(family) + 1 :]
    first, _, rest = feature.partition(" ")
    second, _, value = rest.partition(" ")
    return (f"{first} {second}", value) if second else (first, "")
