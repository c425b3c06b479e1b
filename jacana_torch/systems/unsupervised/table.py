"""The translation table: how likely a source word is, given the target word that it stands for.

Word pairs in, probabilities out; it holds the pairs that were seen together and nothing else, row by target word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...errors import ConfigError

NEVER = 1e-9  # what words get that were never seen together: less than a word that stands for nothing
SPELLING = 0.85  # Jaro-Winkler similarity from which two unknown words may be one


@dataclass(frozen=True)
class Table:
    """`probability` [E] of the pairs `keys` [E], sorted: target * len(source) + source. `null` [V] of source words
    that stand for nothing. A pair with an unknown word gets as much as it is spelt alike."""

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
        """What a word typically gives for itself."""
        numbers = [(self.target_number.get(word, -1), i) for i, word in enumerate(self.source)]
        keys = np.array([t * len(self.source) + s for t, s in numbers if t >= 0], dtype=np.int64)
        found = self.lookup(keys)
        return float(np.median(found[found > 0])) if (found > 0).any() else 0.5

    def __len__(self) -> int:
        return len(self.keys)

    def lookup(self, keys: np.ndarray) -> np.ndarray:
        """[K] the probability of each pair, 0 where it was never seen."""
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.probability[place], 0.0)

    def between(self, sources: Sequence[str], targets: Sequence[str], s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """[K] the probability of sources[s[k]] given targets[t[k]], whether these words are known or not."""
        known_s = np.array([self.source_number.get(word, -1) for word in sources], dtype=np.int64)[s]
        known_t = np.array([self.target_number.get(word, -1) for word in targets], dtype=np.int64)[t]
        known = (known_s >= 0) & (known_t >= 0)
        found = np.zeros(len(s))
        found[known] = self.lookup(known_t[known] * len(self.source) + known_s[known])
        unseen = np.flatnonzero(~known)
        if len(unseen):
            left, right = [sources[k] for k in s[unseen].tolist()], [targets[k] for k in t[unseen].tolist()]
            found[unseen] = self.same * alike(left, right)
        return np.maximum(found, NEVER)

    def of_null(self, words: Sequence[str]) -> np.ndarray:
        """[K] the probability of each word where it stands for nothing."""
        number = np.array([self.source_number.get(word, -1) for word in words], dtype=np.int64)
        unknown = 1.0 / (len(self.source) + 1)
        return np.maximum(np.append(self.null, unknown)[number], NEVER)  # -1 takes the last

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return {
            "source": list(self.source), "target": list(self.target),
            "pair_source": (self.keys % max(len(self.source), 1)).astype(np.int32),
            "pair_target": (self.keys // max(len(self.source), 1)).astype(np.int32),
            "probability": self.probability, "null": self.null,
        }  # fmt: skip

    @classmethod
    def of_state(cls, state: Mapping[str, np.ndarray | list[str]]) -> Table:
        source, target = list(state["source"]), list(state["target"])
        s, t = (np.asarray(state[name], dtype=np.int64) for name in ("pair_source", "pair_target"))
        probability, null = (np.asarray(state[name], dtype=np.float64) for name in ("probability", "null"))
        keys = t * len(source) + s
        if not (len(s) == len(t) == len(probability) and len(null) == len(source)) or (np.diff(keys) <= 0).any():
            raise ConfigError(
                f"a translation table of {len(s)}, {len(t)} and {len(probability)} pairs out of order"
            )
        if len(s) and not (0 <= s.min() and s.max() < len(source) and 0 <= t.min() and t.max() < len(target)):
            raise ConfigError("a translation table with pairs of words that it does not hold")
        for values in (probability, null):
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise ConfigError("a translation table with probabilities that are none")
        return cls(source, target, keys, probability, null)


def alike(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """[K] how alike two words are spelt: 1 for one word, 0 for words that have little in common."""
    from rapidfuzz.distance import JaroWinkler
    from rapidfuzz.process import cpdist

    similarity = cpdist(left, right, scorer=JaroWinkler.similarity, dtype=np.float64)
    return np.where(similarity >= SPELLING, similarity**8, 0.0)
