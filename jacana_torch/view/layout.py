"""Where the words and the curves of a picture are, in pixels, whatever it is drawn with.

Sentences that are too wide take several lines. Curves pass between the words of other lines, not through them, and
words that are written from right to left stand as their readers expect.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .drawing import SIGNS, clean, columns

if TYPE_CHECKING:
    from ..types import Link

COLUMN, LETTERS = 9.2, 15  # width of a letter, size of letters
_LINE, _LINES = 30, 40  # height of a single line, and of one of several
_BETWEEN, _MARGIN = 84, 12  # between the sentences, around the picture
_UNDER = 27  # from the top of a line to what is free below its words
_BASELINE = 20
_GAP = 1.7  # columns between two words
_BESIDE = 10  # pixels beside a line that curves may use

Point = tuple[float, float]


class Word(NamedTuple):
    """A word and its place: the middle of its baseline."""

    text: str
    x: float
    y: float


class Curve(NamedTuple):
    """A link: points that it leaves and reaches vertically, and where its sign is, if it has one."""

    link: Link
    kind: str
    probability: float
    points: tuple[Point, ...]
    sign: Word | None

    def steps(self) -> Iterator[tuple[Point, Point, Point, Point]]:
        """Cubic Bézier curves, one after the other."""
        for (x, y), (u, v) in zip(self.points, self.points[1:], strict=False):
            pull = (v - y) * 0.5
            yield (x, y), (x, y + pull), (u, v - pull), (u, v)


class Figure(NamedTuple):
    """A picture in pixels: its size, words and curves."""

    width: float
    height: float
    words: list[Word]
    curves: list[Curve]


def figure(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    most: float = 110,
) -> Figure:
    """Lay out a picture whose lines have at most so many columns."""
    above, a, lines_above = places([clean(token) for token in source], most)
    below, b, lines_below = places([clean(token) for token in target], most)
    line = _LINE if lines_above == lines_below == 1 else _LINES
    width = max(a, b, 4.0) * COLUMN + 2 * _MARGIN
    bottom = _MARGIN + (lines_above - 1) * line + _LINE + _BETWEEN if lines_above else _MARGIN + _BETWEEN
    height = bottom + max(lines_below - 1, 0) * line + _LINE + _MARGIN / 2
    upper = _Side(source, above, (max(a, b) - a) / 2, _MARGIN, line)
    lower = _Side(target, below, (max(a, b) - b) / 2, bottom, line)
    curves = []
    for (i, j), kind in links.items():
        points = _route(upper, lower, i, j)
        (x, y), (u, v) = points[_middle(upper, i)], points[_middle(upper, i) + 1]
        sign = Word(SIGNS[kind], (x + u) / 2, (y + v) / 2) if kind in SIGNS else None
        curves.append(Curve((i, j), kind, (confidence or {}).get((i, j), 1.0), points, sign))
    return Figure(width, height, [*upper.words, *lower.words], curves)


class _Side:
    """A sentence with its place in the picture: words, and gaps between them that curves pass."""

    def __init__(
        self, tokens: Sequence[str], spots: list[tuple[float, int]], indent: float, top: float, line: float
    ) -> None:
        self.spots = [(_MARGIN + (x + indent) * COLUMN, number) for x, number in spots]
        self.words = [
            Word(clean(token), x, top + number * line + _BASELINE)
            for token, (x, number) in zip(tokens, self.spots, strict=True)
        ]
        self.tops = [top + number * line for number in range(1 + max((number for _, number in spots), default=-1))]
        self._used: dict[tuple[int, float, float], int] = {}
        self._gaps = [self._between(number) for number in range(len(self.tops))]

    def _between(self, number: int) -> list[tuple[float, float]]:
        """The gaps of a line, from left to right."""
        spans = sorted(
            (x - max(columns(word.text), 1) * COLUMN / 2, x + max(columns(word.text), 1) * COLUMN / 2)
            for word, (x, line) in zip(self.words, self.spots, strict=True)
            if line == number
        )
        edges = [spans[0][0] - _BESIDE, *(edge for span in spans for edge in span), spans[-1][1] + _BESIDE]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def passed(self, number: int, x: float) -> list[Point]:
        """Where a curve passes a line: in the gap that is nearest to x, beside those that pass there."""

        def cost(gap: tuple[float, float]) -> float:
            return max(gap[0] - x, x - gap[1], 0.0) + 4 * self._used.get((number, *gap), 0)

        left, right = gap = min(self._gaps[number], key=cost)
        rank = self._used[number, left, right] = self._used.get((number, *gap), 0) + 1
        # The middle first, then left and right of it.
        share = 0.5 + (0.14 * (rank // 2) * (-1) ** rank if rank < 7 else 0)
        at = left + share * (right - left)
        return [(at, self.tops[number] + 2), (at, self.tops[number] + _UNDER)]


def _middle(upper: _Side, i: int) -> int:
    """The point from which a curve crosses the space between the sentences."""
    return 2 * (len(upper.tops) - 1 - upper.spots[i][1])


def _route(upper: _Side, lower: _Side, i: int, j: int) -> tuple[Point, ...]:
    (x, line), (u, other) = upper.spots[i], lower.spots[j]
    start, end = (x, upper.tops[line] + _UNDER), (u, lower.tops[other] + 4)

    def straight(y: float) -> float:
        return x + (u - x) * (y - start[1]) / (end[1] - start[1])

    points = [start]
    for side, lines in ((upper, range(line + 1, len(upper.tops))), (lower, range(other))):
        for number in lines:
            points += side.passed(number, straight(side.tops[number]))
    return (*points, end)


def places(tokens: Sequence[str], most: float) -> tuple[list[tuple[float, int]], float, int]:
    """(middle, line) of each token in columns, the width of the widest line, and the number of lines.

    No line is wider than `most`, unless a single word is. Lines are centred and about equally wide.
    """
    widths = [max(columns(token), 1) for token in tokens]
    lines = _broken(widths, most)
    if len(lines) > 1:  # search for the smallest width that needs no more lines
        low, high = most / len(lines) / 2, most
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if len(_broken(widths, middle)) <= len(lines) else (middle, high)
        lines = _broken(widths, high)
    lengths = [sum(line) + _GAP * (len(line) - 1) for line in lines]
    widest = max(lengths, default=0.0)
    directions = _directions(tokens)
    turned = directions.count("R") > directions.count("L")
    out = [(0.0, 0)] * len(tokens)
    first = 0
    for number, (line, length) in enumerate(zip(lines, lengths, strict=True)):
        x = (widest - length) / 2
        for k in _visual(directions[first : first + len(line)], turned):
            out[first + k] = (x + line[k] / 2, number)
            x += line[k] + _GAP
        first += len(line)
    return out, widest, len(lines)


def _broken(widths: Sequence[float], most: float) -> list[list[float]]:
    lines: list[list[float]] = []
    room = -1.0
    for width in widths:
        if not lines or room < width + _GAP:
            lines.append([])
            room = most + _GAP
        lines[-1].append(width)
        room -= width + _GAP
    return lines


def _directions(tokens: Sequence[str]) -> list[str]:
    """For each token the direction of its first letter: L, R, or nothing for figures and punctuation."""
    kinds = ((unicodedata.bidirectional(character) for character in token) for token in tokens)
    return [
        next(("L" if kind == "L" else "R" for kind in kind_of if kind in ("L", "R", "AL")), "")
        for kind_of in kinds
    ]


def _visual(directions: Sequence[str], turned: bool) -> list[int]:
    """The numbers of a line's tokens from left to right; `turned` if the sentence runs from right to left."""
    if not turned and "R" not in directions:
        return list(range(len(directions)))
    base = "R" if turned else "L"
    runs: list[tuple[str, list[int]]] = []
    for k, own in enumerate(directions):
        if not own:  # as its neighbours, if they agree
            before = next((one for one in reversed(directions[:k]) if one), base)
            own = before if before == next((one for one in directions[k:] if one), base) else base
        if runs and runs[-1][0] == own:
            runs[-1][1].append(k)
        else:
            runs.append((own, [k]))
    ordered = [run[::-1] if own == "R" else run for own, run in (reversed(runs) if turned else runs)]
    return [k for run in ordered for k in run]
