"""The vectors family: static word vectors, and whether another word of the sentence would be closer.

In: a `Grid`, and one or more sets of vectors (a resource's name or a file). Out: for each the cosine of the two
words, in steps for a linear model; where it stands in its row and column; and the cosines of two-word phrases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..errors import ConfigError
from .api import Block, NodeBlocks
from .grid import Grid, Named
from .lexicon import Lexicon
from .padded_grid import Canvas, table_of
from .string_similarity import FORM, identical, identical_words
from .word_pairs import Signal, WordKey, WordPairs

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
    key: ClassVar[WordKey] = FORM

    def __post_init__(self) -> None:
        given = [self.vectors] if isinstance(self.vectors, str) else list(self.vectors)
        object.__setattr__(self, "vectors", tuple(given))
        object.__setattr__(self, "steps", tuple(self.steps))
        labels = [label_of(v) for v in given]
        if not given or len(set(labels)) < len(labels):
            raise ConfigError(f"vectors={given}: there must be at least one, and no two of the same name")

    def word_blocks(self, pairs: WordPairs) -> tuple[Block, ...]:
        return tuple(_prefixed(label_of(which), *self._cosines(_store(which), pairs)) for which in self.vectors)

    def __call__(self, grid: Grid) -> NodeBlocks:
        laid = grid.laid_out()
        link: list[Block] = []
        null: list[Block] = []
        for which in self.vectors:
            found = _Cosines(grid, _store(which))
            beside = self._beside(grid, which, found)
            link += [_prefixed(label_of(which), names, table, laid.place) for names, table in beside]
            null.append(_prefixed(label_of(which), *_null_columns(found)))
        return NodeBlocks(tuple(link), tuple(null))

    def _beside(self, grid: Grid, which: str, found: _Cosines) -> list[Named]:
        """What the vectors of the words around two words say."""
        said = [grid.from_either_side(("vectors.rivals", which), lambda: table_of(_competition(found)))]
        if self.phrases:
            said.append(grid.from_either_side(("vectors.phrases", which), lambda: table_of(_phrases(found))))
        return said

    def _cosines(self, store: Store, pairs: WordPairs) -> Named:
        """What the vectors of two words say of them."""
        raw, same, known = raw_cosine(store, pairs), identical(pairs), _known(store, pairs.lexicon)
        unlike = np.where(same, 0.0, np.maximum(raw, 0.0))
        left, right = known[pairs.left], known[pairs.right]
        columns = {
            "cosine": np.where(same, 1.0, raw),
            "cosine.not_identical": unlike,
            "cosine.not_identical.squared": unlike**2,
            "known.both": left & right,
            "known.one": left != right,
            "known.neither": ~left & ~right,
            **{f"cosine>={step}": unlike >= step for step in self.steps},
        }
        return tuple(columns), np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])


def label_of(name_or_path: str) -> str:
    """What a set of vectors is called in the columns' names: the same wherever the file lies."""
    return Path(name_or_path).stem if "/" in name_or_path or "\\" in name_or_path else name_or_path


def _prefixed(prefix: str, names: tuple[str, ...], table: np.ndarray, index: np.ndarray | None = None) -> Block:
    return Block(tuple(f"{prefix}.{name}" for name in names), table, index)


def _store(which: str) -> Store:
    from .. import resources

    return resources.vectors(which)


# Words


def _rows(store: Store, lexicon: Lexicon) -> np.ndarray:
    """[W] the store's row of each word, -1 where it has none."""
    return lexicon.attribute(("vectors.row", store.path), lambda words: np.asarray(store.lookup(words), np.int64))


def _known(store: Store, lexicon: Lexicon) -> np.ndarray:
    """[W] whether a word has a vector that points anywhere."""

    def compute(words: list[str]) -> np.ndarray:
        row = _rows(store, lexicon)[-len(words) :]
        return (row >= 0) & store.matrix[np.maximum(row, 0)].any(axis=1)

    return lexicon.attribute(("vectors.known", store.path), compute)


def _vectors(store: Store, lexicon: Lexicon, words: np.ndarray) -> np.ndarray:
    """[k, d] of length 1, or zero where unknown."""
    vectors = store.rows(_rows(store, lexicon)[words])
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(norm > 0, norm, 1.0)  # half precision is not quite normalised
    return vectors


def products(store: Store, lexicon: Lexicon, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] cosines of words by their numbers, 0 where one is unknown; each word's vector is fetched once."""
    row, out = _rows(store, lexicon), np.zeros(len(left))
    ask = np.flatnonzero((row[left] >= 0) & (row[right] >= 0))
    used, place = np.unique(np.concatenate([left[ask], right[ask]]), return_inverse=True)
    out[ask] = dots(_vectors(store, lexicon, used), place[: len(ask)], place[len(ask) :])
    return out


def dots(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[U] products of rows, a few at a time so that only these are copied."""
    out = np.zeros(len(left))
    for start in range(0, len(left), PAIRS_AT_A_TIME):
        at = slice(start, start + PAIRS_AT_A_TIME)
        out[at] = np.einsum("ud,ud->u", vectors[left[at]], vectors[right[at]])
    return np.clip(out, -1.0, 1.0)


def raw_cosine(store: Store, pairs: WordPairs) -> np.ndarray:
    """[U] the cosine of two words as their vectors have it, also of one with itself."""
    name = ("vectors.raw", store.path)
    return pairs.shared(name, lambda: products(store, pairs.lexicon, pairs.left, pairs.right))


# Cells


class _Cosines:
    """Cosines in the cells of a grid, on its canvas. `raw` is 0 where a word is unknown, `cosine` 1 for identical
    words."""

    def __init__(self, grid: Grid, store: Store) -> None:
        self.grid, self.store, self.laid = grid, store, grid.laid_out()
        self.canvas = self.laid.canvas
        self.raw_of_cell = grid.figure(Signal(("vectors.raw", store.path), FORM, partial(raw_cosine, store)))
        self.identical_of_cell = grid.figure(identical_words) > 0
        self.meeting = grid.meeting(FORM)

    @cached_property
    def raw(self) -> np.ndarray:
        return self.canvas.field(self.raw_of_cell, self.laid.place)

    @cached_property
    def identical(self) -> np.ndarray:
        return self.canvas.near(self.canvas.field(self.identical_of_cell, self.laid.place), 0, 0)

    @cached_property
    def cosine(self) -> np.ndarray:
        return np.where(self.identical, 1.0, self.canvas.near(self.raw, 0, 0))

    def known(self, words: np.ndarray) -> np.ndarray:
        return _known(self.store, self.meeting.lexicon)[words]


def _best_others(canvas: Canvas, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[size] the best value of the other cells in each cell's row, and column; 0 where there is no other."""
    found = canvas.best_other(np.where(canvas.inside, values, -np.inf))
    row, column = (np.where(np.isneginf(best), 0.0, best) for best in found)
    return row, column


def _competition(found: _Cosines) -> dict[str, np.ndarray]:
    """A cell against the rest of its row and column, and among the words that have no identical partner."""
    canvas, cosine, same = found.canvas, found.cosine, found.identical
    best_row, best_column = _best_others(canvas, cosine)
    row, column = cosine - best_row, cosine - best_column
    taken = canvas.along_rows(canvas.row_count(same) > 0) | canvas.along_columns(canvas.column_count(same) > 0)
    free = canvas.inside & ~taken
    value = np.where(free, np.maximum(cosine, 0.0), 0.0)
    free_row, free_column = (free & (value > best + CLEARLY) for best in _best_others(canvas, value))
    return {
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


def _phrases(found: _Cosines) -> dict[str, np.ndarray]:
    """Cosines of two neighbours' sum with the other word, and of two such sums.

    All follow from the cosines of single words: (a + b)·c = a·c + b·c, and |a + b|² = |a|² + |b|² + 2 a·b.
    """
    canvas, grid, meeting, raw = found.canvas, found.grid, found.meeting, found.raw
    rows, columns = canvas.along_rows, canvas.along_columns
    of_row, of_column = canvas.no_positions()
    of_row, of_column = of_row.astype(np.float64), of_column.astype(np.float64)

    def lines(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_row[found.laid.line], of_column[found.laid.column_line] = source, target
        return rows(of_row), columns(of_column)

    known_s, known_t = lines(found.known(meeting.source), found.known(meeting.target))
    source = _phrase_norms(found, meeting.source, grid.source_pair)
    target = _phrase_norms(found, meeting.target, grid.target_pair)
    here = canvas.near(raw, 0, 0)
    out = {}
    for name, step in (("next", 1), ("previous", -1)):
        norm_s, norm_t = lines(source[step], target[step])
        down, right, both = canvas.near(raw, step, 0), canvas.near(raw, 0, step), canvas.near(raw, step, step)
        out[f"phrase.source_{name}"] = _over(here + down, norm_s * known_t)
        out[f"phrase.target_{name}"] = _over(here + right, norm_t * known_s)
        out[f"phrase.both_{name}"] = _over(here + down + right + both, norm_s * norm_t)
    best = np.maximum.reduce([value for name, value in out.items() if "both" not in name])
    out["phrase.gain"] = np.where(found.identical, 0.0, np.maximum(best - np.maximum(here, 0.0), 0.0))
    return out


def _phrase_norms(found: _Cosines, word: np.ndarray, pair: np.ndarray) -> dict[int, np.ndarray]:
    """The length of each token's vector plus its neighbour's; 0 where there is no neighbour."""
    if not len(word):
        return {1: np.zeros(0), -1: np.zeros(0)}
    joined = pair[:-1] == pair[1:]
    a, b = word[:-1], word[1:]
    between = products(found.store, found.meeting.lexicon, a, b)
    square = found.known(a).astype(np.float64) + found.known(b) + 2 * between
    norm = np.where(joined, np.sqrt(np.maximum(square, 0.0)), 0.0)
    return {1: np.append(norm, 0.0), -1: np.insert(norm, 0, 0.0)}


def _over(part: np.ndarray, norm: np.ndarray) -> np.ndarray:
    usable = norm > 1e-3  # nearly opposite vectors cancel, and what is left is rounding
    return np.clip(np.where(usable, part / np.where(usable, norm, 1.0), 0.0), -1.0, 1.0)


def _null_columns(found: _Cosines) -> Named:
    """[Ts] how near the nearest word of the other sentence is."""
    grid, raw, same = found.grid, np.maximum(found.raw_of_cell, 0.0), found.identical_of_cell
    best, unlike = grid.row_max(np.where(same, 1.0, raw)), grid.row_max(np.where(same, 0.0, raw))
    taken = grid.row_max(same.astype(np.float64)) > 0
    known = found.known(found.meeting.source)
    lonely = ~taken & known
    columns = {
        "row_max": best,
        "row_max.not_identical": unlike,
        "row_max.free": np.where(taken, 0.0, unlike),
        "unknown": ~known,
        "nothing_near": lonely & (unlike < 0.4),
        "nothing_at_all": lonely & (unlike < 0.25),
    }
    return tuple(columns), np.column_stack([np.asarray(c, dtype=np.float64) for c in columns.values()])
