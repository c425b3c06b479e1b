"""Where words stand in a picture that no browser lays out: tokens in, the middle of each and its line out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

GAP = 1.7  # columns between two words
STRANGE = "\ufffd"


def clean(token: str) -> str:
    """The token with what neither a terminal nor XML can be shown replaced."""
    return "".join(c if c.isprintable() else STRANGE for c in token)


def columns(text: str) -> int:
    """How many columns of a fixed-width font: none for marks on other letters, two for East Asian ones."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def places(tokens: Sequence[str], most: float) -> tuple[list[tuple[float, int]], float, int]:
    """(middle, line) of each token in columns, the width of the widest line, and how many lines there are.

    No line is wider than `most` unless one word is, and lines are about as wide as each other, and centred.
    """
    widths = [max(columns(token), 1) for token in tokens]
    lines = _broken(widths, most)
    if len(lines) > 1:  # the narrowest that takes no more lines
        low, high = most / len(lines) / 2, most
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if len(_broken(widths, middle)) <= len(lines) else (middle, high)
        lines = _broken(widths, high)
    lengths = [sum(line) + GAP * (len(line) - 1) for line in lines]
    widest = max(lengths, default=0.0)
    out = []
    for number, (line, length) in enumerate(zip(lines, lengths, strict=True)):
        x = (widest - length) / 2
        for width in line:
            out.append((x + width / 2, number))
            x += width + GAP
    return out, widest, len(lines)


def _broken(widths: Sequence[float], most: float) -> list[list[float]]:
    lines: list[list[float]] = []
    room = -1.0
    for width in widths:
        if not lines or room < width + GAP:
            lines.append([])
            room = most + GAP
        lines[-1].append(width)
        room -= width + GAP
    return lines
