"""Many sentence pairs at once, flattened: what feature families compute in.

In: sentence pairs. Out: a `Grid`, which knows where cells are, which words meet in them and what these are to each
other, from either side; and which keeps what several families need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np

from ..errors import ConfigError
from ..types import SentencePair
from ..util.geometry import Geometry
from .lexicon import Lexicon
from .padded_grid import Canvas
from .word_pairs import Meeting, Memory, Signal, WordKey

T = TypeVar("T")
Named = tuple[tuple[str, ...], np.ndarray]  # columns' names and a table
MARGIN = 3  # padding around each pair in a padded grid: as far as most families look beyond an edge
PART_PLACES = 40_000  # of a padded grid: what the computations on a part touch stays in the CPU's cache
WIDEST = 1.5  # width of the widest pair of a part, as a multiple of the first one's


@dataclass(frozen=True)
class Words:
    """The distinct words of a grid under some key, and where each pair of them meets.

    `values`   the W distinct keys, in order of first appearance (source tokens, then target tokens).
    `source`   [Ts] word of each source token;  `target`  [Tt] word of each target token.
    `left`, `right`  [U] the words of each distinct (source word, target word) pair that meets in a cell.
    `cell`     [C] which of the U pairs meets in each cell.
    """

    values: list
    source: np.ndarray
    target: np.ndarray
    left: np.ndarray
    right: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True)
class Laid:
    """A grid on a canvas: `place` [C] of each cell, `line` [Ts] of each row, `column_line` [Tt] of each column."""

    canvas: Canvas
    place: np.ndarray
    line: np.ndarray
    column_line: np.ndarray

    @staticmethod
    def of(canvas: Canvas, grid: Grid) -> Laid:
        place = np.flatnonzero(canvas.inside)
        line = canvas.line(grid.source_pair, grid.source_position)
        return Laid(canvas, place, line, canvas.turn.line(grid.target_pair, grid.target_position))

    def turn(self, mirror: Grid) -> Laid:
        """For the other side's grid: the same places in its order."""
        return Laid(self.canvas.turn, self.place[mirror.by_column], self.column_line, self.line)


_OTHER_SIDE = {"row": "column", "column": "row", "source": "target", "target": "source"}


@lru_cache(maxsize=1024)
def _other_side(name: str) -> str:
    return re.sub("row|column|source|target", lambda found: _OTHER_SIDE[found[0]], name)


class Grid(Geometry):
    """Sentence pairs and the coordinates of all their cells."""

    def __init__(self, pairs: Sequence[SentencePair]) -> None:
        self.pairs = list(pairs)
        sides = ([len(p.source) for p in self.pairs], [len(p.target) for p in self.pairs])
        super().__init__(*(np.array(lengths, dtype=np.int64) for lengths in sides))
        self._memory: Memory | None = None
        self._mirror: Grid | None = None
        self._within: tuple[Grid, slice] | None = None
        self._memo: dict[object, object] = {}
        self._shared: dict[object, object] = {}

    def source_layer(self, name: str) -> list:
        """A layer's values for all source tokens, flat. Missing layers are an error that names the annotator."""
        return [value for p in self.pairs for value in p.source.layer(name)]

    def target_layer(self, name: str) -> list:
        return [value for p in self.pairs for value in p.target.layer(name)]

    @cached_property
    def source_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.source.tokens]

    @cached_property
    def target_tokens(self) -> list[str]:
        return [token for p in self.pairs for token in p.target.tokens]

    def flipped(self) -> Grid:
        """The grid of the pairs seen from the other side. What `shared` computes is computed once for the two."""
        if self._mirror is not None:
            return self._mirror
        other = Grid.__new__(Grid)
        Geometry.__init__(other, self.n_target, self.n_source)
        other._memory, other._within = None, None
        other._mirror, other._memo, other._shared = self, {}, self._shared
        return other

    @cached_property
    def pairs(self) -> list[SentencePair]:
        """Set by who makes a grid of pairs; a flipped one seldom needs them."""
        return [pair.flip() for pair in self._mirror.pairs] if self._mirror is not None else []

    @property
    def is_flipped(self) -> bool:
        return self._mirror is not None

    def remember(self, memory: Memory) -> Grid:
        """What two words are to each other is asked of a memory from now on."""
        if self._mirror is not None:
            self._mirror.remember(memory)
        self._memory = self._memory or memory
        return self

    def parts(self) -> Iterator[tuple[slice, Grid]]:
        """Grids that stay in a processor's cache, each of pairs that follow one another, and which these are.

        They are the fewer the more the pairs are in order of their targets' lengths, and made anew at each call.
        """
        if not len(self.n_source):
            yield slice(0, 0), self
        elif self._mirror is not None:
            yield from ((pairs, part.flipped()) for pairs, part in self._mirror.parts())
        else:
            yield from ((pairs, self._part(pairs)) for pairs in self._of_like_width())

    def _of_like_width(self) -> Iterator[slice]:
        """Consecutive pairs that take at most PART_PLACES places of a padded grid, or a single pair."""
        width = self.n_target + MARGIN
        places = np.cumsum((self.n_source + MARGIN) * width)
        first = 0
        while first < len(width):
            most = places[first - 1] if first else 0
            wide = (width[first:] > WIDEST * width[first]) | (width[first:] * WIDEST < width[first])
            last = min(np.searchsorted(places, most + PART_PLACES), first + int(np.append(wide, True).argmax()))
            last = max(int(last), first + 1)
            yield slice(first, last)
            first = last

    def _part(self, pairs: slice) -> Grid:
        part = Grid(self.pairs[pairs])
        part._within = self, pairs
        return part

    def meeting(self, key: WordKey) -> Meeting:
        """The words under a key, numbered for as long as the grid's memory lasts, and what two of them are."""
        return self.memo(("meeting", key), lambda: self._meeting(key))

    def _meeting(self, key: WordKey) -> Meeting:
        if self._mirror is not None:
            return self._mirror.meeting(key).turn(self._mirror.by_column)
        if self._within is not None:
            whole, pairs = self._within
            return whole.meeting(key).slice(*whole.spans(pairs))
        lexicon, known = (Lexicon(key.word), None) if self._memory is None else self._memory.of(key)
        sides = (self.source_tokens, self.source_layer), (self.target_tokens, self.target_layer)
        with lexicon.lock:
            source, target = (lexicon.numbers(key.met(tokens, layer)) for tokens, layer in sides)
        return Meeting(lexicon, known, source, target, (self.source_token, self.target_token))

    def figure(self, signal: Signal, directed: bool = False) -> np.ndarray:
        """[C] a figure of the two words of each cell; the same from either side unless `directed`."""
        if self._mirror is None:
            return self.meeting(signal.key).figure(signal)
        mirror, seen = self._mirror, signal.from_the_other_side if directed else signal
        return self.memo(seen, lambda: mirror.figure(seen)[mirror.by_column])

    def laid_out(self, margin: int = MARGIN) -> Laid:
        """The cells on a canvas with at least this margin."""
        mirror = self._mirror
        if mirror is not None:
            return self.memo(("laid out", margin), lambda: mirror.laid_out(margin).turn(mirror))
        return self.memo(
            ("laid out", margin), lambda: Laid.of(Canvas.of(self.n_source, self.n_target, margin), self)
        )

    def from_either_side(self, key: object, compute: Callable[[], Named]) -> Named:
        """Named columns over the canvas that are the same from either side, but that rows and columns, source and
        target have changed places in their names."""
        flipped, (names, table) = self.shared(key, lambda: (self.is_flipped, compute()))
        return (names if flipped == self.is_flipped else tuple(map(_other_side, names))), table

    def memo(self, key: object, compute: Callable[[], T]) -> T:
        """What several families need of this grid is computed by the first and kept for the others."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]  # type: ignore[return-value]

    def shared(self, key: object, compute: Callable[[], T]) -> T:
        """As `memo`, for what is the same seen from either side: of words, or of pairs of words in any order."""
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]  # type: ignore[return-value]

    def words(self, key: str | Callable[[str], object] = "token", *layers: str) -> Words:
        """Distinct words: by token, by `key(token)`, or by (token, layer values...)."""
        return self.memo(("words", key, layers), lambda: self._distinct(key, layers))

    def _distinct(self, key: str | Callable[[str], object], layers: tuple[str, ...]) -> Words:
        if self._mirror is not None:  # words and their pairs keep their numbers, so that `shared` fits both
            w = self._mirror.words(key, *layers)
            return Words(w.values, w.target, w.source, w.right, w.left, w.cell[self._mirror.by_column])
        source: list = self.source_tokens
        target: list = self.target_tokens
        if callable(key):
            source, target = [key(t) for t in source], [key(t) for t in target]
        if layers:
            source = list(zip(source, *(self.source_layer(x) for x in layers), strict=True))
            target = list(zip(target, *(self.target_layer(x) for x in layers), strict=True))
        number: dict = {}
        source_ids = np.array([number.setdefault(w, len(number)) for w in source], dtype=np.int64)
        target_ids = np.array([number.setdefault(w, len(number)) for w in target], dtype=np.int64)
        size = max(len(number), 1)
        code = source_ids[self.source_token] * size + target_ids[self.target_token]
        distinct, cell = np.unique(code, return_inverse=True)
        return Words(list(number), source_ids, target_ids, distinct // size, distinct % size, cell)


LARGEST_PAIR = 16_000_000  # cells of one pair; the features of more would not fit into a laptop's memory
LONGEST_SIDE = 10_000  # tokens; the steps between any two of them have scores


def grids(pairs: Sequence[SentencePair], most_cells: int) -> Iterator[tuple[list[int], Grid]]:
    """Yield grids of at most `most_cells` cells (a larger pair comes alone), and the places of their pairs.

    Pairs without words on a side are left out, and pairs with short targets come first. A pair beyond LARGEST_PAIR or
    LONGEST_SIDE is an error: it would take an hour.
    """
    sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
    for m, n in sizes:
        if m * n > LARGEST_PAIR or (m and n and max(m, n) > LONGEST_SIDE):
            raise ConfigError(
                f"a pair of {m} x {n} tokens is too large ({LARGEST_PAIR:,} cells and {LONGEST_SIDE:,} tokens a side "
                "are the limits): split it into sentences"
            )
    places: list[int] = []
    cells = 0
    for place in sorted(range(len(pairs)), key=lambda k: sizes[k][1]):
        m, n = sizes[place]
        if places and cells + m * n > most_cells:
            yield places, Grid([pairs[k] for k in places])
            places, cells = [], 0
        if m and n:
            places.append(place)
            cells += m * n
    if places:
        yield places, Grid([pairs[k] for k in places])
