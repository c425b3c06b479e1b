"""The vectors family: static word vectors, and whether another word of the sentence would be closer.

In: a `Grid`, and one or more sets of vectors (a resource's name or a file). Out: for each the cosine of the two
words, in steps for a linear model; where it stands in its row and column; and the cosines of two-word phrases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..annotate.normalise import matching_form
from ..errors import ConfigError
from .base import Block, NodeBlocks
from .grid import Grid, Words

if TYPE_CHECKING:
    from ..resources.static_vectors import Vectors as Store

PAIRS_AT_A_TIME = 20_000
CLEARLY = 1e-5  # closer by less is rounding, and would change with the company a pair is in


@dataclass(frozen=True)
class Vectors:
    """`vectors`: names or paths. `steps`: a column for cosines from each on, of words not identical.

    `phrases` adds the cosines of a word with the other word and its neighbour together.
    """

    vectors: tuple[str, ...] = ("glove-840b",)
    steps: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    phrases: bool = True
    name: str = "vectors"
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [self.vectors] if isinstance(self.vectors, str) else list(self.vectors)
        object.__setattr__(self, "vectors", tuple(given))
        object.__setattr__(self, "steps", tuple(self.steps))
        labels = [label_of(v) for v in given]
        if not given or len(set(labels)) < len(labels):
            raise ConfigError(f"vectors={given}: there must be at least one, and no two of the same name")

    def __call__(self, grid: Grid) -> NodeBlocks:
        from .. import resources

        link: list[Block] = []
        null: list[Block] = []
        for which in self.vectors:
            found = _Cosines.of(grid, resources.vectors(which))
            prefix = label_of(which)
            link.append(_pair_block(prefix, found, self.steps))
            beside = _competition(grid, found)
            if self.phrases:
                beside |= _phrases(grid, found)
            link.append(
                Block(tuple(f"{prefix}.{n}" for n in beside), np.column_stack(list(beside.values())), None)
            )
            null.append(_null_block(prefix, grid, found))
        return NodeBlocks(tuple(link), tuple(null))


def label_of(name_or_path: str) -> str:
    """What a set of vectors is called in the columns' names: the same wherever the file lies."""
    return Path(name_or_path).stem if "/" in name_or_path or "\\" in name_or_path else name_or_path


@dataclass(frozen=True)
class _Cosines:
    """`raw` [U] the cosine of each distinct pair of words, 0 where one is unknown; `cosine` has 1 for identical.

    `vectors` [W, d] of the grid's words, zero where unknown; `known` [W].
    """

    words: Words
    vectors: np.ndarray
    known: np.ndarray
    raw: np.ndarray
    cosine: np.ndarray
    identical: np.ndarray

    @staticmethod
    def of(grid: Grid, store: Store) -> _Cosines:
        words = grid.words(matching_form)
        found = grid.shared(("vectors.cosines", store.path), lambda: _Cosines._found(words, store))
        return replace(found, words=words)

    @staticmethod
    def _found(words: Words, store: Store) -> _Cosines:
        row = np.asarray(store.lookup(words.values), dtype=np.int64)
        known = row >= 0
        vectors = np.zeros((len(row), store.dim), dtype=np.float32)
        vectors[known] = store.matrix[row[known]]
        norm = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(norm > 0, norm, 1.0)  # half precision is not quite normalised
        known &= norm[:, 0] > 0
        raw = dots(vectors, words.left, words.right)
        lower: dict[str, int] = {}
        ids = np.array([lower.setdefault(w.lower(), len(lower)) for w in words.values], dtype=np.int64)
        identical = ids[words.left] == ids[words.right]
        return _Cosines(words, vectors, known, raw, np.where(identical, 1.0, raw), identical)


def dots(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] products of rows, a few at a time so that only these are copied."""
    out = np.zeros(len(left))
    for start in range(0, len(left), PAIRS_AT_A_TIME):
        at = slice(start, start + PAIRS_AT_A_TIME)
        out[at] = np.einsum("ud,ud->u", vectors[left[at]], vectors[right[at]])
    return np.clip(out, -1.0, 1.0)


def _pair_block(prefix: str, found: _Cosines, steps: tuple[float, ...]) -> Block:
    words, unlike = found.words, np.where(found.identical, 0.0, np.maximum(found.raw, 0.0))
    left, right = found.known[words.left], found.known[words.right]
    columns = {
        "cosine": found.cosine,
        "cosine.not_identical": unlike,
        "cosine.not_identical.squared": unlike**2,
        "known.both": left & right,
        "known.one": left != right,
        "known.neither": ~left & ~right,
        **{f"cosine>={step}": unlike >= step for step in steps},
    }
    table = np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    return Block(tuple(f"{prefix}.{name}" for name in columns), table, words.cell)


def _best_in_row(grid: Grid, values: np.ndarray) -> np.ndarray:
    """[C] the best value of the other cells in each cell's row; 0 where there is no other."""
    return _best_of_others(values, grid.source_token, grid.row_max)


def _best_in_column(grid: Grid, values: np.ndarray) -> np.ndarray:
    return _best_of_others(values, grid.target_token, grid.column_max)


def _best_of_others(values: np.ndarray, group: np.ndarray, maximum: Callable) -> np.ndarray:
    best = maximum(values)
    top = values == best[group]
    runner = maximum(np.where(top, -np.inf, values))
    alone = top & (np.bincount(group[top], minlength=len(best))[group] == 1)
    out = np.where(alone, runner[group], best[group])
    return np.where(np.isneginf(out), 0.0, out)


def _competition(grid: Grid, found: _Cosines) -> dict[str, np.ndarray]:
    """A cell against the rest of its row and column, and among the words that have no identical partner."""
    cosine, identical = found.cosine[found.words.cell], found.identical[found.words.cell]
    n_source, n_target = len(grid.source_pair), len(grid.target_pair)
    row = cosine - _best_in_row(grid, cosine)
    column = cosine - _best_in_column(grid, cosine)
    taken_source = np.bincount(grid.source_token[identical], minlength=n_source) > 0
    taken_target = np.bincount(grid.target_token[identical], minlength=n_target) > 0
    free = ~taken_source[grid.source_token] & ~taken_target[grid.target_token]
    value = np.where(free, np.maximum(cosine, 0.0), 0.0)
    free_row = free & (value > _best_in_row(grid, value) + CLEARLY)
    free_column = free & (value > _best_in_column(grid, value) + CLEARLY)
    columns = {
        "row.best": row > CLEARLY,
        "column.best": column > CLEARLY,
        "both.best": (row > CLEARLY) & (column > CLEARLY),
        "row.margin": np.clip(row, -1.0, 1.0),
        "column.margin": np.clip(column, -1.0, 1.0),
        "free": free,
        "free.cosine": value,
        "free.row.best": free_row,
        "free.column.best": free_column,
        "free.both.best": free_row & free_column,
        "free.both.best.cosine": value * (free_row & free_column),
    }
    return {name: np.asarray(c, dtype=np.float64) for name, c in columns.items()}


def _phrases(grid: Grid, found: _Cosines) -> dict[str, np.ndarray]:
    """Cosines of two neighbours' sum with the other word, and of two such sums.

    All follow from the cosines of single words: (a + b)·c = a·c + b·c, and |a + b|² = |a|² + |b|² + 2 a·b.
    """
    raw = np.append(found.raw[found.words.cell], 0.0)  # index -1 is outside the pair: 0
    source = _phrase_norms(found, found.words.source, grid.source_pair)
    target = _phrase_norms(found, found.words.target, grid.target_pair)
    s, t = grid.source_token, grid.target_token
    here, known_s, known_t = raw[:-1], found.known[found.words.source][s], found.known[found.words.target][t]
    out = {}
    for name, step in (("next", 1), ("previous", -1)):
        norm_s, norm_t = source[step][s], target[step][t]
        down, right, both = raw[grid.shift(step, 0)], raw[grid.shift(0, step)], raw[grid.shift(step, step)]
        out[f"phrase.source_{name}"] = _over(here + down, norm_s * known_t)
        out[f"phrase.target_{name}"] = _over(here + right, norm_t * known_s)
        out[f"phrase.both_{name}"] = _over(here + down + right + both, norm_s * norm_t)
    best = np.maximum.reduce([value for name, value in out.items() if "both" not in name])
    identical = found.identical[found.words.cell]
    out["phrase.gain"] = np.where(identical, 0.0, np.maximum(best - np.maximum(here, 0.0), 0.0))
    return out


def _phrase_norms(found: _Cosines, word: np.ndarray, pair: np.ndarray) -> dict[int, np.ndarray]:
    """The length of each token's vector plus its neighbour's; 0 where there is no neighbour."""
    joined = pair[:-1] == pair[1:]
    a, b = word[:-1], word[1:]
    square = found.known[a].astype(np.float64) + found.known[b] + 2 * dots(found.vectors, a, b)
    norm = np.where(joined, np.sqrt(np.maximum(square, 0.0)), 0.0)
    if not len(word):
        return {1: np.zeros(0), -1: np.zeros(0)}
    return {1: np.append(norm, 0.0), -1: np.insert(norm, 0, 0.0)}


def _over(part: np.ndarray, norm: np.ndarray) -> np.ndarray:
    usable = norm > 1e-3  # nearly opposite vectors cancel, and what is left is rounding
    return np.clip(np.where(usable, part / np.where(usable, norm, 1.0), 0.0), -1.0, 1.0)


def _null_block(prefix: str, grid: Grid, found: _Cosines) -> Block:
    words = found.words
    cosine = found.cosine[words.cell]
    unlike = np.where(found.identical, 0.0, np.maximum(found.raw, 0.0))[words.cell]
    best = grid.row_max(np.column_stack([np.maximum(cosine, 0.0), unlike, found.identical[words.cell]]))
    known = found.known[words.source]
    lonely = (best[:, 2] == 0) & known
    columns = {
        "row_max": best[:, 0],
        "row_max.not_identical": best[:, 1],
        "row_max.free": np.where(best[:, 2] == 0, best[:, 1], 0.0),
        "unknown": ~known,
        "nothing_near": lonely & (best[:, 1] < 0.4),
        "nothing_at_all": lonely & (best[:, 1] < 0.25),
    }
    table = np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
    return Block(tuple(f"{prefix}.{name}" for name in columns), table, None)
