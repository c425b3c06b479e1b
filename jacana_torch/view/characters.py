"""Draw an alignment as a grid of characters, for terminals."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .drawing import CORRECT, LINK, MISSED, NAMES, POSSIBLE, SPURIOUS, clean, columns

if TYPE_CHECKING:
    from ..types import Link

_UNICODE = {CORRECT: "█", LINK: "█", MISSED: "○", SPURIOUS: "✕", POSSIBLE: "◇", None: "·"}
_ASCII = {CORRECT: "#", LINK: "#", MISSED: "o", SPURIOUS: "x", POSSIBLE: "?", None: "."}
_SHADES = (("█", "#", 0.75), ("▓", "+", 0.5), ("▒", "-", 0.25), ("░", "~", 0.0))  # from this probability on


def grid(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    ascii: bool = False,
) -> str:
    """Lines of text with source words down and target words across, written downwards letter by letter.

    `ascii` restricts the marks of links to ASCII, not the words.
    """
    rows = [clean(token) for token in source]
    margin = max(map(columns, rows), default=0)
    lines = [" " * margin + line for line in _headings([_letters(clean(token)) for token in target])]
    for i, word in enumerate(rows):
        marks = (_mark(links.get((i, j)), (confidence or {}).get((i, j), 1.0), ascii) for j in range(len(target)))
        lines.append(word + " " * (margin - columns(word)) + "".join(f"  {mark}" for mark in marks))
    signs = _ASCII if ascii else _UNICODE
    legend = [f"{signs[kind]} {name}" for kind, name in NAMES.items() if kind in links.values()]
    return "\n".join(
        [*(line.rstrip() for line in lines), *([" " * margin + "  " + "  ".join(legend)] if legend else [])]
    )


def _mark(kind: str | None, probability: float, ascii: bool) -> str:
    if kind in (LINK, CORRECT):
        return next((plain if ascii else shade for shade, plain, least in _SHADES if probability >= least), "~")
    return (_ASCII if ascii else _UNICODE)[kind]


def _letters(word: str) -> list[str]:
    """The characters of a word, each with its combining marks."""
    letters: list[str] = []
    for character in word:
        if letters and unicodedata.combining(character):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


def _headings(words: list[list[str]]) -> list[str]:
    """The words written downwards, ending next to the grid."""
    height = max(map(len, words), default=0)
    lines = []
    for line in range(height):
        letters = (word[line - height + len(word)] if line >= height - len(word) else " " for word in words)
        # Three columns a word; a wide letter takes the last two.
        lines.append("".join(f" {letter}" if columns(letter) == 2 else f"  {letter}" for letter in letters))
    return lines
