"""Split a text into sentences, and those into tokens with their places in the text."""

from __future__ import annotations

import re

from ..annotate.tokens import spans
from ..types import Sentence

_END = frozenset(".?!…") | {"...", "?!", "!!", "。"}
_CLOSING = frozenset(")]}\"'”’»''") | {"''", "”", "’"}
_OPENING = frozenset("([{\"'“‘«-–—•*#") | {"``"}
_ITEM = re.compile(r"[ \t]*(?:[-*•>]|\d+[.)])[ \t]")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\|)")  # headings and rows of tables
_FENCES = ("```", "~~~")
_LONGEST = 400  # tokens: a longer run without a full stop is cut, as aligning takes quadratic memory


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text; the offsets of their tokens count characters of the whole text.

    A sentence ends after a full stop, a question or exclamation mark, with quotes and brackets that close after
    it, if no lower-case word follows; and at a blank line or a new item of a list. In Markdown, a heading, a row
    of a table and a line of code are sentences.

    >>> [str(s) for s in sentences('He left. "Why?" she asked. Mr. Ito (from 3 p.m.) stayed.')]
    ['He left .', '" Why ? "', 'she asked .', 'Mr. Ito ( from 3 p.m. ) stayed .']
    """
    places = spans(text)
    tokens = [text[start:end] for start, end in places]
    breaks = _breaks(text)
    found: list[Sentence] = []
    begin = 0
    for k in range(len(tokens)):
        if _ends(text, places, tokens, k, breaks) or k - begin + 1 >= _LONGEST:
            found.append(Sentence(tokens[begin : k + 1], offsets=places[begin : k + 1]))
            begin = k + 1
    if begin < len(tokens):
        found.append(Sentence(tokens[begin:], offsets=places[begin:]))
    return found


def _breaks(text: str) -> set[int]:
    """Ends of lines at which a sentence ends, whatever its words."""
    found = {match.start() for match in re.finditer("\f", text)}
    start, alone, code = 0, False, False
    for line in text.split("\n"):
        before = alone
        fence = line.lstrip()[:3] if line.lstrip().startswith(_FENCES) else ""
        alone = code or bool(fence) or _ALONE.match(line) is not None
        if start and (before or alone or not line.strip() or _ITEM.match(line)):
            found.add(start - 1)
        if fence and line.count(fence) == 1:
            code = not code
        start += len(line) + 1
    return found


def _ends(text: str, places: list[tuple[int, int]], tokens: list[str], k: int, breaks: set[int]) -> bool:
    """Whether a sentence ends with token k."""
    if k + 1 == len(tokens):
        return True
    between = text[places[k][1] : places[k + 1][0]]
    if "\n" in between or "\f" in between:
        if any(places[k][1] <= at < places[k + 1][0] for at in _near(breaks, places[k][1], places[k + 1][0])):
            return True
    if not between:
        return False  # a closing quote follows, or a point inside a token
    last = k
    while last > 0 and tokens[last] in _CLOSING and places[last - 1][1] == places[last][0]:
        last -= 1
    if tokens[last] not in _END and tokens[last][:1] not in "?!…":
        return False
    following = tokens[k + 1]
    return not (following[:1].islower() and tokens[last] in (".", "…", "..."))


def _near(breaks: set[int], start: int, end: int) -> list[int]:
    return [at for at in range(start, end) if at in breaks]
