"""The baseline of MacCartney et al. (2008), §5.1: align each target word to the source word spelt most like it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from ..aligners.base import numbers_in, words_in
from ..aligners.training import TrainingReport, Watcher
from ..errors import CorpusError, ModelError
from ..types import Alignment, Example, Sentence, SentencePair, trusted
from ..util.build import OnDisk, OneOf, Share, Within, check_bounds

TIES = ("nearest", "first", "last")
CELLS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class _Counts:
    """How many of `total` documents (or running words) contain a word."""

    total: int
    of: Mapping[str, int]

    def idf(self, word: str) -> float:
        """log(N / N_w), after adding one document of all words, so that unseen words have a value."""
        return math.log((self.total + 1) / (min(self.of.get(word, 0), self.total) + 1))


@dataclass
class BagOfWords:
    """Aligns every target word to the source word whose lemma is most similar by edit distance.

    `ties`    breaks ties: "nearest" by relative position, "first" or "last". The paper does not say; nearest is
    best. `least`   target words whose best similarity is lower stay unaligned. The paper has no such limit.
    `floor`   lower bound of similarities in the score, where the logarithm of 0 would be infinite. `frequencies`
    a file of `word count` lines for inverse document frequencies. Without it, `fit` counts them, with
              each sentence as a document. Without either, all words weigh the same.

    `score` is the paper's: the mean of idf x log similarity over the target words.
    """

    ties: Annotated[str, OneOf(TIES)] = "nearest"
    least: Share = 0.0
    floor: Annotated[float, Within(above=0, most=1)] = 0.01
    frequencies: Annotated[str, OnDisk()] | None = None
    needs_training: ClassVar[bool] = False
    _counts: _Counts | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_bounds(BagOfWords, vars(self))

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
        """Return the best source word of each target word in `part`, and its similarity."""
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        table = cdist(target[part], source, scorer=Levenshtein.normalized_similarity, dtype=np.float64)
        highest = table.max(axis=1)
        if self.ties == "first":
            return table.argmax(axis=1), highest
        if self.ties == "last":
            return len(source) - 1 - table[:, ::-1].argmax(axis=1), highest
        j, i = np.arange(part.start, part.stop)[:, None], np.arange(len(source))
        away = np.abs((2 * j + 1) * len(source) - (2 * i + 1) * len(target))  # integers, so that ties are exact
        away[table < highest[:, None]] = 2 * (len(source) + 1) * (len(target) + 1)
        return away.argmin(axis=1), highest

    def _score(self, target: list[str], similarity: np.ndarray) -> float:
        if not target:
            return 0.0
        weight = np.array([1.0 if self._counts is None else self._counts.idf(word) for word in target])
        return float(weight @ np.log(np.maximum(similarity, self.floor))) / len(target)

    # Training counts words

    def fit(
        self, examples: Sequence[Example], dev: Sequence[Example] = (), watch: Watcher | None = None
    ) -> TrainingReport:
        """Count the sentences of each word. Gold links are not used."""
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
        if not state:  # saved without counts
            self._counts = None
            return
        words, counts = words_in(state, "words"), numbers_in(state, "counts", None, least=0).astype(int).tolist()
        if len(words) != len(counts):
            raise ModelError(f"{len(counts)} counts for {len(words)} words")
        self._counts = _Counts(
            int(numbers_in(state, "total", 1, least=0)[0]), dict(zip(words, counts, strict=True))
        )


def _lemmas(sentence: Sentence) -> list[str]:
    return [str(lemma).lower() for lemma in sentence.layer("lemma")]


def _read(path: Path) -> _Counts:
    """Read a file of `word count` lines."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"the word frequencies cannot be read ({error})", str(path)) from None
    counts: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not (fields[1].isascii() and fields[1].isdigit()):
            raise CorpusError(f"expected a word and its count, not {line.strip()[:60]!r}", str(path), number)
        counts[fields[0].lower()] += int(fields[1])
    if not counts:
        raise CorpusError("contains no word frequencies", str(path))
    return _Counts(sum(counts.values()), counts)
