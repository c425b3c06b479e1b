"""The baseline of MacCartney et al. (2008) §5.1: each target word goes to the source word spelt most like it.

Pairs with lemmas in; alignments out, whose score says how well the target's rarer words are covered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..aligners.base import TrainingReport, Watcher
from ..errors import ConfigError, CorpusError, ModelError
from ..types import Alignment, Example, Sentence, SentencePair, trusted

TIES = ("nearest", "first", "last")
CELLS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class _Counts:
    """How many of `total` documents (or running words) hold a word."""

    total: int
    of: Mapping[str, int]

    def idf(self, word: str) -> float:
        """log(N / N_w), with one more document of all words, so that there is a figure for those never seen."""
        return math.log((self.total + 1) / (min(self.of.get(word, 0), self.total) + 1))


@dataclass
class BagOfWords:
    """Every target word is aligned, to the source word whose lemma is the fewest edits away.

    `ties`    which of equally similar words: the nearest by relative position (the paper does not say; it is the
              best), the first or the last.
    `least`   target words whose best similarity is below stay unaligned; the paper has no such limit.
    `floor`   the similarity that a word without any counts as in the score, where its logarithm would be infinite.
    `frequencies`  a file of `word count` lines for inverse document frequencies; without one they are counted by
              `fit`, each sentence of the examples a document; without either, every word weighs the same.

    `score` is the paper's: the sum of idf x log similarity over the target's words, by their number.
    """

    ties: str = "nearest"
    least: float = 0.0
    floor: float = 0.01
    frequencies: str | None = None
    needs_training: ClassVar[bool] = False
    _counts: _Counts | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.ties not in TIES:
            raise ConfigError(f"ties={self.ties!r} is none of {', '.join(TIES)}")
        if not 0 <= self.least <= 1:
            raise ConfigError(f"least={self.least} is not between 0 and 1")
        if not 0 < self.floor <= 1:
            raise ConfigError(f"floor={self.floor} is not above 0 and at most 1")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("lemma",)

    def align(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        if self._counts is None and self.frequencies is not None:
            self._counts = _read(Path(self.frequencies).expanduser())
        return [self._align(_lemmas(pair.source), _lemmas(pair.target)) for pair in pairs]

    def _align(self, source: list[str], target: list[str]) -> Alignment:
        m, n = len(source), len(target)
        best, similarity = np.zeros(n, dtype=np.int64), np.zeros(n)
        if m:
            step = max(1, CELLS_AT_ONCE // m)
            for start in range(0, n, step):
                part = slice(start, min(start + step, n))
                best[part], similarity[part] = self._most_similar(source, target, part)
        aligned = np.flatnonzero(similarity >= self.least).tolist() if m else []
        links = frozenset(zip(best[aligned].tolist(), aligned, strict=True))
        return trusted(m, n, links, score=self._score(target, similarity))

    def _most_similar(self, source: list[str], target: list[str], part: slice) -> tuple[np.ndarray, np.ndarray]:
        """For each of some target words the source word and its similarity."""
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        table = cdist(target[part], source, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
        highest = table.max(axis=1)
        if self.ties == "first":
            return table.argmax(axis=1), highest
        if self.ties == "last":
            return len(source) - 1 - table[:, ::-1].argmax(axis=1), highest
        j, i = np.arange(part.start, part.stop)[:, None], np.arange(len(source))
        away = np.abs((2 * j + 1) * len(source) - (2 * i + 1) * len(target))  # whole numbers: equal is equal
        away[table < highest[:, None]] = 2 * (len(source) + 1) * (len(target) + 1)
        return away.argmin(axis=1), highest

    def _score(self, target: list[str], similarity: np.ndarray) -> float:
        if not target:
            return 0.0
        weight = np.array([1.0 if self._counts is None else self._counts.idf(word) for word in target])
        return float(weight @ np.log(np.maximum(similarity, self.floor))) / len(target)

    # What there is to learn: how common words are

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        """Counts documents; links are not looked at."""
        if self.frequencies is not None:
            self._counts = _read(Path(self.frequencies).expanduser())
        else:
            sentences = [side for e in examples for side in (e.pair.source, e.pair.target)]
            counted = Counter(word for sentence in sentences for word in set(_lemmas(sentence)))
            self._counts = _Counts(len(sentences), counted)
        note = f"{len(self._counts.of)} words counted"
        return TrainingReport(notes=(note,))

    def state(self) -> dict[str, np.ndarray | list[str]]:
        if self._counts is None:
            return {}
        words = sorted(self._counts.of)
        counts = np.array([self._counts.of[word] for word in words], dtype=np.int64)
        return {"words": words, "counts": counts, "total": np.array([self._counts.total], dtype=np.int64)}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        if not state:  # saved before anything was counted
            self._counts = None
            return
        words, counts = list(state["words"]), np.asarray(state["counts"]).tolist()
        if len(words) != len(counts):
            raise ModelError(f"{len(counts)} counts for {len(words)} words")
        self._counts = _Counts(int(np.asarray(state["total"])[0]), dict(zip(words, counts, strict=True)))


def _lemmas(sentence: Sentence) -> list[str]:
    return [str(lemma).lower() for lemma in sentence.layer("lemma")]


def _read(path: Path) -> _Counts:
    try:
        with path.open(encoding="utf-8") as lines:
            return _counted(path, lines)
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"the word frequencies cannot be read ({error})", str(path)) from None


def _counted(path: Path, lines: Iterable[str]) -> _Counts:
    counts: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not (fields[1].isascii() and fields[1].isdigit()):
            told = f"a word and how often it occurs are expected, not {line.strip()[:60]!r}"
            raise CorpusError(told, str(path), number)
        counts[fields[0].lower()] += int(fields[1])
    if not counts:
        raise CorpusError("holds no word frequencies", str(path))
    return _Counts(sum(counts.values()), counts)
