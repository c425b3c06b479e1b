"""The distsim family: distributional similarity, by static vectors, the pair's own sentences or a counted corpus.

Of static vectors: the cosine of the two words, in steps for a linear model; how it compares with the other words
of both sentences; and the cosines of two-word phrases. The other two sources give the measures of Sharma et al.
(2018), Algorithm 2, over the dependencies of the pair (association.py) or over counts (counted_vectors.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from ...errors import ConfigError
from ...resources import vectors as opened
from ...resources.catalogue import CATALOGUE
from ...util.build import Items, OnDisk, Positive, Within
from ...util.geometry import COLUMN, ROW
from ..api import Block, NodeBlocks, prefixed
from ..grid import Grid, Named, table_of
from ..string_similarity import FORM, base_similarity, identical
from ..words import Lexicon, Signal, WordKey, WordPairs

if TYPE_CHECKING:
    from ...resources.static_vectors import Vectors

PAIRS_AT_A_TIME = 1 << 10  # their vectors stay in the cache
VectorFile = Annotated[str, OnDisk(CATALOGUE.__contains__)]
Steps = Annotated[tuple[Annotated[float, Within(-1, 1)], ...], Items(0, 100)]
SHORT = 1e-3  # the length of a sum of nearly opposite vectors, which is mostly rounding
CLEARLY = 1e-5  # equal cosines may differ by rounding, which depends on the batch: neither is the best


@dataclass(frozen=True)
class DistSim:
    """`own`: from the pair's own dependencies, all counts smoothed by `smoothing`.
    `counts`: a file that `jacana-torch count` wrote, or None.
    `vectors`: static vectors, by resource name or path. `steps`: a column for cosines from each step on, of words
    that are not identical. `phrases`: cosines of a word with the other word and its neighbour together.
    """

    name: str = "distsim"
    own: bool = True
    counts: Annotated[str, OnDisk()] | None = None
    smoothing: Positive = 2.0
    vectors: VectorFile | Annotated[tuple[VectorFile, ...], Items(0, 20)] = ()
    steps: Steps = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    phrases: bool = True
    requires: tuple[str, ...] = field(init=False, compare=False, repr=False)
    key: ClassVar[WordKey] = FORM

    def __post_init__(self) -> None:
        vectors = (self.vectors,) if isinstance(self.vectors, str) else tuple(self.vectors)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "steps", tuple(self.steps))
        object.__setattr__(self, "requires", ("head", "deprel") if self.own else ())
        if self.smoothing <= 0:
            raise ConfigError(f"smoothing={self.smoothing}: it must be above 0, or unseen contexts have no value")
        if not self.own and self.counts is None and not vectors:
            raise ConfigError("distsim has nothing to compare: set own=true, a file of counts or vectors")
        if len(set(map(label_of, vectors))) < len(vectors):
            raise ConfigError(f"vectors={list(vectors)}: two have the same name; columns could not be told apart")

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that it reads; vectors given as files are the user's own."""
        names: list[str] = []
        for name in self.vectors:
            if "/" not in name and "." not in name:
                names.append(name)
        return tuple(names)

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        blocks, same = [], identical(pairs)
        for which in self.vectors:
            store = opened(which)
            raw, known = raw_cosine(store, pairs), _rows(store, pairs.lexicon) >= 0
            unlike = np.where(same, 0.0, np.maximum(raw, 0.0))
            left, right = known[pairs.left], known[pairs.right]
            columns = {
                "cosine": np.where(same, 1.0, raw),
                "cosine.not_identical": unlike,
                "cosine.not_identical.squared": unlike**2,
                "known.both": left & right,
                "known.one": left != right,
                "known.neither": ~left & ~right,
            }
            for step in self.steps:
                columns[f"cosine>={step}"] = unlike >= step
            names = prefixed(f"static.{label_of(which)}.", columns)
            blocks.append(Block(names, np.column_stack(list(columns.values()))))
        return tuple(blocks)

    def __call__(self, grid: Grid) -> NodeBlocks:
        link, null = list[Block](), list[Block]()
        if self.own:
            from ..association import own_blocks

            for blocks, more in zip((link, null), own_blocks(grid, self.smoothing), strict=True):
                blocks += more
        if self.counts is not None:
            from ..counted_vectors import corpus_blocks

            for blocks, more in zip((link, null), corpus_blocks(grid, self.counts), strict=True):
                blocks += more
        for which in self.vectors:
            store, place, prefix = opened(which), grid.padded().place, f"static.{label_of(which)}."
            shared = {"best": _competition, "phrase": _phrases} if self.phrases else {"best": _competition}
            for name, columns in shared.items():
                names, table = grid.shared_columns(("vectors", name, which), partial(columns, grid, store))
                link.append(Block(prefixed(prefix, names), table, place))
            raw, same = _cells(grid, store)  # [Ts] how near the nearest word of the other sentence is
            raw, words = np.maximum(raw, 0.0) * ~same, grid.words(FORM)
            unlike, taken = grid.row_max(raw), grid.row_max(same)
            known = (_rows(store, words.lexicon) >= 0)[words.source]
            lonely = ~taken & known
            of_null = {
                "row_max": np.maximum(unlike, taken),
                "row_max.not_identical": unlike,
                "row_max.free": np.where(taken, 0.0, unlike),
                "unknown": ~known,
                "nothing_near": lonely & (unlike < 0.4),
                "nothing_at_all": lonely & (unlike < 0.25),
            }
            table = np.column_stack(list(of_null.values())).astype(np.float64)
            null.append(Block(prefixed(prefix, of_null), table))
        return NodeBlocks(tuple(link), tuple(null))


def label_of(name_or_path: str) -> str:
    """The name of a set of vectors in column names, whatever folder the file is in."""
    return Path(name_or_path).stem if "/" in name_or_path or "\\" in name_or_path else name_or_path


# Static vectors: pairs of words


def raw_cosine(store: Vectors, pairs: WordPairs) -> np.ndarray:
    """[U] the cosine of the two vectors, also of identical words; 0 if one is unknown."""
    compute = partial(_cosines, store, pairs.lexicon, pairs.left, pairs.right)
    return pairs.shared(("vectors.raw", store.path), compute)


def _rows(store: Vectors, lexicon: Lexicon) -> np.ndarray:
    """[W] the row of each word in the store, -1 without a vector."""
    return lexicon.attribute(("vectors.row", store.path), partial(_look_up, store))


def _look_up(store: Vectors, words: Sequence[str]) -> np.ndarray:
    row = np.asarray(store.lookup(words), np.int64)
    return np.where(store.matrix[np.maximum(row, 0)].any(axis=1), row, -1)  # a zero vector has no direction


def _cosines(store: Vectors, lexicon: Lexicon, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] cosines of words by their numbers, 0 if one is unknown; the vector of each word is read once."""
    row, out = _rows(store, lexicon), np.zeros(len(left))
    asked = np.flatnonzero((row[left] >= 0) & (row[right] >= 0))
    used, place = np.unique(np.concatenate([left[asked], right[asked]]), return_inverse=True)
    vectors = store.rows(row[used])
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(norm > 0, norm, 1.0)  # half precision is not quite normalised
    for start in range(0, len(asked), PAIRS_AT_A_TIME):  # so that few rows are copied at once
        some = slice(start, start + PAIRS_AT_A_TIME)
        a, b = vectors[place[: len(asked)][some]], vectors[place[len(asked) :][some]]
        out[asked[some]] = np.clip(np.einsum("ud,ud->u", a, b), -1.0, 1.0)
    return out


# Static vectors: cells


def _cells(grid: Grid, store: Vectors) -> tuple[np.ndarray, np.ndarray]:
    """[C] the cosine of each cell's words, 0 if one is unknown; [C] whether they are identical."""
    raw = grid.per_cell(Signal(("vectors.raw", store.path), FORM, partial(raw_cosine, store)))
    return raw, grid.per_cell(base_similarity) >= 1


def _competition(grid: Grid, store: Vectors) -> Named:
    """Over the padded grid: a cell against its row and column, also among words without an identical one."""
    padded, (raw, same) = grid.padded(), _cells(grid, store)
    same = padded.near(padded.field(same, padded.place), 0, 0)
    cosine = padded.near(padded.field(raw, padded.place), 0, 0) * ~same + same
    taken = padded.along(padded.count(same, ROW) > 0, ROW) | padded.along(padded.count(same, COLUMN) > 0, COLUMN)
    free = padded.inside & ~taken
    value = np.maximum(cosine, 0.0) * free
    best: list[np.ndarray] = []  # the best other cell of each one's row, and of its column; 0 without another
    for values in (cosine, value):
        inside = np.minimum(values, padded.ceiling)
        for axis in (ROW, COLUMN):
            other = padded.best_other(inside, axis)
            best.append(np.where(np.isneginf(other), 0.0, other))
    row, column = cosine - best[0], cosine - best[1]
    free_row, free_column = free & (value > best[2] + CLEARLY), free & (value > best[3] + CLEARLY)
    return table_of(
        {
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
    )


def _phrases(grid: Grid, store: Vectors) -> Named:
    """Over the padded grid: cosines of the sum of two neighbours with the other word, and of two such sums.

    All follow from the cosines of single words: (a + b)·c = a·c + b·c, and |a + b|² = |a|² + |b|² + 2 a·b.
    """
    padded, (raw, same) = grid.padded(), _cells(grid, store)
    norms = grid.per_token(("vectors.norms", store.path), partial(_norms, store))
    source, target = padded.lines(norms[0], ROW), padded.lines(norms[1], COLUMN)
    known_s, known_t = padded.along(source[0], ROW), padded.along(target[0], COLUMN)
    field = padded.field(raw, padded.place)
    here, best, out = padded.near(field, 0, 0), np.full(padded.size, -1.0), dict[str, np.ndarray]()
    for name, step in (("next", 1), ("previous", -1)):
        norm_s, norm_t = padded.along(source[step], ROW), padded.along(target[step], COLUMN)
        down, right = padded.near(field, step, 0), padded.near(field, 0, step)
        both = here + down + right + padded.near(field, step, step)
        out[f"phrase.source_{name}"] = _over(here + down, norm_s * known_t)
        out[f"phrase.target_{name}"] = _over(here + right, norm_t * known_s)
        out[f"phrase.both_{name}"] = _over(both, norm_s * norm_t)
        best = np.maximum.reduce([best, out[f"phrase.source_{name}"], out[f"phrase.target_{name}"]])
    same = padded.near(padded.field(same, padded.place), 0, 0)
    out["phrase.gain"] = np.maximum(best - np.maximum(here, 0.0), 0.0) * ~same
    return table_of(out)


def _norms(store: Vectors, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """[3, T] of each side: the length of each token's vector, alone (0) and plus that of the next (1) or previous
    (-1) token; 0 without one."""
    words = grid.words(FORM)
    word = np.concatenate((words.source, words.target))
    pair = np.concatenate((grid.source_pair, len(grid.n_source) + grid.target_pair))
    known = (_rows(store, words.lexicon) >= 0).astype(np.float64)
    a, b = word[:-1], word[1:]
    square = known[a] + known[b] + 2 * _cosines(store, words.lexicon, a, b)
    norm = np.where(pair[:-1] == pair[1:], np.sqrt(np.maximum(square, 0.0)), 0.0)
    norms = np.array((known[word], np.append(norm, 0.0)[: len(word)], np.append(0.0, norm)[: len(word)]))
    return norms[:, : grid.n_tokens], norms[:, grid.n_tokens :]


def _over(part: np.ndarray, norm: np.ndarray) -> np.ndarray:
    usable = norm > SHORT
    return np.asarray(np.clip(part * usable / np.maximum(norm, SHORT), -1.0, 1.0))
