"""Names in sentences: spans of entities and of capitalised words, and the words that acronyms may abbreviate.

Spans are (first, behind) positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..types import Sentence
from .grid import Grid
from .wordlists import FUNCTION_WORDS

Span = tuple[int, int]

LINKING = frozenset(
    "of the and for in on at to & de du la le der van von a an".split()
)  # acronyms leave these out
_ACRONYM = re.compile(r"((?:[A-Z]\.){2,}[A-Z]?|[A-Z]\.[A-Z]|[A-Z]{2,8})(?:s|'s)?")
_PART = re.compile(r"[^\W\d_]")
SHORTEST_ORDINARY = 3  # letters of an acronym for words that are not names ("gdp" yes, "it" no)


@lru_cache(maxsize=1 << 13)
def acronym_letters(token: str) -> str:
    """The letters of a token that looks like an acronym (U.N., NATO), in upper case; otherwise empty."""
    match = _ACRONYM.fullmatch(token)
    return match[1].replace(".", "") if match else ""


def entity_spans(labels: Sequence[str]) -> list[Span]:
    """Spans of BIO labels; an I- after another type, or after O, begins a span."""
    spans: list[Span] = []
    current = ""
    for i, label in enumerate(labels):
        prefix, _, this = label.partition("-")
        if prefix == "I" and spans and spans[-1][1] == i and this == current:
            spans[-1] = (spans[-1][0], i + 1)
        elif prefix in ("B", "I"):
            spans.append((i, i + 1))
        current = this
    return spans


def name_spans(tokens: Sequence[str]) -> list[Span]:
    """Runs of capitalised words, perhaps with linking words inside ("Bank of England").

    A run does not begin with a function word.
    """
    spans: list[Span] = []
    for i, token in enumerate(tokens):
        if not token[:1].isupper() or token.lower() in FUNCTION_WORDS:
            continue
        if spans and all(t.lower() in LINKING for t in tokens[spans[-1][1] : i]):
            spans[-1] = (spans[-1][0], i + 1)
        else:
            spans.append((i, i + 1))
    return spans


def _initials(tokens: Sequence[str], spans: Sequence[Span]) -> tuple[str, list[int]]:
    """Return the initials of the words of each span, "\\n" between spans, and the position of each word."""
    letters, positions = ["\n"], [-1]
    for first, behind in spans:
        for i in range(first, behind):
            if tokens[i].lower() in LINKING:
                continue
            for part in tokens[i].split("-"):
                if part and _PART.match(part):
                    letters.append(part[0].upper()[0])
                    positions.append(i)
        letters.append("\n")
        positions.append(-1)
    return "".join(letters), positions


def _plain_runs(tokens: Sequence[str]) -> list[Span]:
    """Runs of words in any case, without punctuation or numbers."""
    spans: list[Span] = []
    for i, token in enumerate(tokens):
        if _PART.match(token):
            if spans and spans[-1][1] == i:
                spans[-1] = (spans[-1][0], i + 1)
            else:
                spans.append((i, i + 1))
    return spans


class Expansions:
    """The words of one sentence that acronyms may abbreviate."""

    def __init__(self, sentence: Sentence, entities: bool) -> None:
        tokens = sentence.tokens
        named = name_spans(tokens)
        if entities:
            named = [*named, *entity_spans(sentence.layer("ner"))]
        self.named = _initials(tokens, named)
        self.plain = _initials(tokens, _plain_runs(tokens))

    def of(self, letters: str) -> dict[str, set[int]]:
        """Positions of words whose initials are `letters`: a whole name, part of a name, ordinary words."""
        found: dict[str, set[int]] = {"whole": set(), "part": set(), "ordinary": set()}
        text, positions = self.named
        for at in _occurrences(text, letters):
            whole = text[at - 1] == "\n" and text[at + len(letters)] == "\n"
            found["whole" if whole else "part"].update(positions[at : at + len(letters)])
        if len(letters) >= SHORTEST_ORDINARY:
            text, positions = self.plain
            for at in _occurrences(text, letters):
                found["ordinary"].update(positions[at : at + len(letters)])
        found["part"] -= found["whole"]
        found["ordinary"] -= found["whole"] | found["part"]
        return found


def _occurrences(text: str, letters: str) -> list[int]:
    found, at = [], text.find(letters)
    while at >= 0:
        found.append(at)
        at = text.find(letters, at + 1)
    return found


def acronym_cells(grid: Grid, entities: bool) -> dict[str, np.ndarray]:
    """[C] bool for "whole", "part" and "ordinary": one word is an acronym that the other one is part of."""
    cells: dict[str, list[int]] = {"whole": [], "part": [], "ordinary": []}
    for p, pair in enumerate(grid.pairs):
        width, start = len(pair.target), int(grid.cell_start[p])
        sides = ((pair.source, pair.target, width, 1), (pair.target, pair.source, 1, width))
        for here, there, step_here, step_there in sides:
            expansions = None
            for i, letters in enumerate(map(acronym_letters, here.tokens)):
                if not letters:
                    continue
                expansions = expansions or Expansions(there, entities)
                for kind, positions in expansions.of(letters).items():
                    cells[kind] += [start + i * step_here + j * step_there for j in positions]
    out = {}
    for kind, found in cells.items():
        out[kind] = np.zeros(grid.n_cells, dtype=bool)
        out[kind][found] = True
    return out
