"""Sentence pairs as word numbers, and the translation table: P(source word | target word), row by target word.

A table holds the word pairs that occur together in the training text and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from ... import corpora
from ...aligners.base import State, numbers_in, words_in
from ...annotate.tokens import matching_form, tokenize
from ...errors import ConfigError
from ...features.wordlists import stem, variant
from ...types import Example, Sentence
from ...util.batches import like_sizes
from ...util.geometry import positions, starts
from .hmm_lattice import Chains

WordPair = tuple[Sequence[str], Sequence[str]]  # the words of two sentences

NEVER = 1e-9  # of words that never occur together: less than of a word that is linked to NULL
SPELLING = 0.85  # least Jaro-Winkler similarity of two unknown words that may be the same


def _lower(token: str) -> str:
    return matching_form(token).lower()


@lru_cache(maxsize=1 << 13)
def _stemmed(token: str) -> str:
    return stem(variant(_lower(token))) or token


FORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {"exact": matching_form, "lower": _lower, "stem": _stemmed}
)


def words_of(sentence: Sentence, form: str, raw: bool = False) -> list[str]:
    """The word forms of a sentence. A `raw` sentence is tokenised first if it was only split at spaces."""
    tokens = tokenize(sentence.text) if raw and sentence.text is not None else sentence.tokens
    return list(map(FORMS[form], tokens))


def read_text(examples: Sequence[Example], files: Sequence[str], form: str, flip: bool) -> list[WordPair]:
    """The words of all pairs with words on both sides: those of the examples, then those of the files."""
    found: list[WordPair] = []
    found += [(words_of(e.pair.source, form), words_of(e.pair.target, form)) for e in examples]
    for path in files:
        for example in corpora.read(path):
            pair = example.pair.flip() if flip else example.pair
            found.append((words_of(pair.source, form, raw=True), words_of(pair.target, form, raw=True)))
    return [pair for pair in found if pair[0] and pair[1]]


def lexicon(pairs: Sequence[WordPair]) -> dict[str, int]:
    """How often each word of the text might be linked with itself, at least once."""
    counts: Counter[str] = Counter()
    for source, target in pairs:
        counts.update(Counter(source) & Counter(target))
    words = dict.fromkeys(word for pair in pairs for side in pair for word in side)
    return {word: max(counts[word], 1) for word in words}


def numbered(words: Iterable[str], number: dict[str, int]) -> np.ndarray:
    """The number of each word; new words are added."""
    return np.array([number.setdefault(word, len(number)) for word in words], dtype=np.int64)


@dataclass(frozen=True)
class Batch:
    """Pairs of similar size. `cell` [M, B, N] is the number of each word pair among the distinct ones of the text,
    `word` [M, B] that of each source word in its vocabulary; padding has the number after the last."""

    cell: Tensor
    word: Tensor
    sizes: Tensor
    targets: Tensor
    weight: Tensor

    def chains(self, values: Tensor, null: Tensor) -> Chains:
        """The pairs under these probabilities of word pairs and of words given NULL, each with a 0 at its end."""
        link = values.index_select(0, self.cell.flatten()).view(self.cell.shape)
        alone = null.index_select(0, self.word.flatten()).view(self.word.shape)
        return Chains(link, alone, self.sizes, self.targets, self.weight)


class Text:
    """Pairs with words on both sides, and the vocabularies `source` and `target` of the sides.

    `keys` [U] are the distinct word pairs, sorted: target * len(source) + source.
    """

    def __init__(self, pairs: Sequence[WordPair], weights: Sequence[float] | None = None) -> None:
        self.n_source = np.array([len(s) for s, _ in pairs], dtype=np.int64)
        self.n_target = np.array([len(t) for _, t in pairs], dtype=np.int64)
        self.weights = np.ones(len(pairs)) if weights is None else np.asarray(weights, dtype=np.float64)
        source: dict[str, int] = {}
        target: dict[str, int] = {}
        self._words = numbered((word for s, _ in pairs for word in s), source)
        targets = numbered((word for _, t in pairs for word in t), target)
        self.source, self.target = list(source), list(target)
        width = np.repeat(self.n_target, self.n_source)  # [Ts] cells of each source token
        first = np.repeat(np.repeat(starts(self.n_target), self.n_source), width)
        cell_keys = targets[first + positions(width)] * len(source) + np.repeat(self._words, width)
        self.keys, places = np.unique(cell_keys, return_inverse=True)
        self._cells = places.reshape(-1).astype(np.int32)

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the source word and of the target word of each distinct pair: two arrays [U]."""
        return self.keys % len(self.source), self.keys // len(self.source)

    def groups(self, most_cells: int) -> list[np.ndarray]:
        """Which pairs go into a batch together.

        Best paths need a square of target positions for each pair, so a long target counts as a long source too.
        """
        return like_sizes(np.maximum(self.n_source, self.n_target), self.n_target, most_cells)

    def batch(self, pairs: np.ndarray, device: str) -> Batch:
        m, n = self.n_source[pairs], self.n_target[pairs]
        token, cell = starts(self.n_source)[pairs], starts(self.n_source * self.n_target)[pairs]
        row, column = np.arange(m.max())[:, None, None], np.arange(n.max())  # [M, 1, 1], [N]
        inside = (row < m[:, None]) & (column < n[:, None])  # [M, B, N]
        cells = np.full(inside.shape, len(self.keys), dtype=np.int32)
        cells[inside] = self._cells[(cell[:, None] + row * n[:, None] + column)[inside]]
        words = np.full((len(row), len(pairs)), len(self.source), dtype=np.int32)
        real = row[:, :, 0] < m
        words[real] = self._words[(token + row[:, :, 0])[real]]
        return Batch(
            *(torch.as_tensor(array, device=device) for array in (cells, words, m, n, self.weights[pairs]))
        )


@dataclass(frozen=True)
class Table:
    """`probability` [E] of the word pairs `keys` [E], sorted: target * len(source) + source. `null` [V] of source
    words given NULL. A pair with an unknown word gets a probability by the similarity of the two spellings."""

    source: Sequence[str] = ()
    target: Sequence[str] = ()
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    probability: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    null: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)

    @cached_property
    def source_number(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.source)}

    @cached_property
    def target_number(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.target)}

    @cached_property
    def same(self) -> float:
        """The median probability of a word given itself."""
        numbers = [(self.target_number.get(word, -1), i) for i, word in enumerate(self.source)]
        keys = np.array([t * len(self.source) + s for t, s in numbers if t >= 0], dtype=np.int64)
        found = self.lookup(keys)
        return float(np.median(found[found > 0])) if (found > 0).any() else 0.5

    def __len__(self) -> int:
        return len(self.keys)

    def lookup(self, keys: np.ndarray) -> np.ndarray:
        """[K] the probability of each pair, 0 if it is not in the table."""
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.probability[place], 0.0)

    def between(self, text: Text) -> np.ndarray:
        """[U] the probability of each distinct word pair of a text, with known words or not."""
        s, t = text.numbers
        known_s = np.array([self.source_number.get(word, -1) for word in text.source], dtype=np.int64)[s]
        known_t = np.array([self.target_number.get(word, -1) for word in text.target], dtype=np.int64)[t]
        known = (known_s >= 0) & (known_t >= 0)
        found = np.zeros(len(s))
        found[known] = self.lookup(known_t[known] * len(self.source) + known_s[known])
        unseen = np.flatnonzero(~known)
        if len(unseen):
            left, right = [text.source[k] for k in s[unseen]], [text.target[k] for k in t[unseen]]
            found[unseen] = self.same * _spelling_similarity(left, right)
        return np.maximum(found, NEVER)

    def of_null(self, words: Sequence[str]) -> np.ndarray:
        """[K] the probability of each word given NULL."""
        number = np.array([self.source_number.get(word, -1) for word in words], dtype=np.int64)
        unknown = 1.0 / (len(self.source) + 1)
        found: np.ndarray = np.maximum(np.append(self.null, unknown)[number], NEVER)  # -1 takes the last
        return found

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return {
            "source": list(self.source), "target": list(self.target),
            "pair_source": (self.keys % max(len(self.source), 1)).astype(np.int32),
            "pair_target": (self.keys // max(len(self.source), 1)).astype(np.int32),
            "probability": self.probability, "null": self.null,
        }  # fmt: skip

    @classmethod
    def of_state(cls, state: State) -> Table:
        source, target = words_in(state, "source"), words_in(state, "target")
        s, t = (numbers_in(state, name, None).astype(np.int64) for name in ("pair_source", "pair_target"))
        probability, null = (numbers_in(state, name, None) for name in ("probability", "null"))
        keys = t * len(source) + s
        if not (len(s) == len(t) == len(probability) and len(null) == len(source)) or (np.diff(keys) <= 0).any():
            raise ConfigError(
                f"the translation table has {len(s)} source words, {len(t)} target words and {len(probability)} "
                "probabilities of word pairs, or its pairs are not in order: the model's files are damaged"
            )
        if len(s) and not (0 <= s.min() and s.max() < len(source) and 0 <= t.min() and t.max() < len(target)):
            raise ConfigError(
                "the translation table has word pairs outside its vocabulary: the model's files are damaged"
            )
        for values in (probability, null):
            if not ((values >= 0) & (values <= 1 + 1e-6)).all():
                raise ConfigError(
                    "the translation table has probabilities that are not between 0 and 1: the model's files are "
                    "damaged"
                )
        return cls(source, target, keys, probability, null)


def _spelling_similarity(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """[K] 1 for equal words, 0 for words that are spelt differently."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cpdist

    similarity = cpdist(left, right, scorer=JaroWinkler.similarity, dtype=np.float64)
    return np.where(similarity >= SPELLING, similarity**8, 0.0)
