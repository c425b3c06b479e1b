"""A grid of characters for terminals: words, links of a kind and confidences in, lines of text out."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .kind import ASIDE, HIT, INVENTION, LINK, MISS
from .layout import clean, columns

if TYPE_CHECKING:
    from ..types import Link

UNICODE = {HIT: "█", LINK: "█", MISS: "○", INVENTION: "✕", ASIDE: "◇", None: "·"}
ASCII = {HIT: "#", LINK: "#", MISS: "o", INVENTION: "x", ASIDE: "?", None: "."}
SHADES = (("█", "#", 0.75), ("▓", "+", 0.5), ("▒", "-", 0.25), ("░", "~", 0.0))  # at least as probable
NAMES = {HIT: "hit", MISS: "missed", INVENTION: "invented", ASIDE: "possible"}


def grid(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    ascii: bool = False,
) -> str:
    """Source words down, target words across and letter below letter; a link is darker the more probable it is.
    `ascii` marks links by ASCII characters; words stay what they are."""
    rows = [clean(token) for token in source]
    margin = max(map(columns, rows), default=0)
    lines = [" " * margin + line for line in _headings([_letters(clean(token)) for token in target])]
    for i, word in enumerate(rows):
        marks = (_mark(links.get((i, j)), (confidence or {}).get((i, j), 1.0), ascii) for j in range(len(target)))
        lines.append(word + " " * (margin - columns(word)) + "".join(f"  {mark}" for mark in marks))
    signs = ASCII if ascii else UNICODE
    told = [f"{signs[kind]} {name}" for kind, name in NAMES.items() if kind in links.values()]
    return "\n".join(
        [*(line.rstrip() for line in lines), *([" " * margin + "  " + "  ".join(told)] if told else [])]
    )


def _mark(kind: str | None, chance: float, ascii: bool) -> str:
    if kind in (LINK, HIT):
        return next((plain if ascii else shade for shade, plain, least in SHADES if chance >= least), "~")
    return (ASCII if ascii else UNICODE)[kind]


def _letters(word: str) -> list[str]:
    """Characters with the marks that stand on them."""
    letters: list[str] = []
    for character in word:
        if letters and unicodedata.combining(character):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


def _headings(words: list[list[str]]) -> list[str]:
    """The words set downwards, their last letters next to the grid."""
    height = max(map(len, words), default=0)
    lines = []
    for line in range(height):
        letters = (word[line - height + len(word)] if line >= height - len(word) else " " for word in words)
        # Three columns a word, which a wide letter fills to the right.
        lines.append("".join(f" {letter}" if columns(letter) == 2 else f"  {letter}" for letter in letters))
    return lines
