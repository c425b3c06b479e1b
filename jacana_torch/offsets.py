"""Where tokens lie in their raw text, as offsets (start, end) in characters.

Corpora rewrite what they tokenise: a quote becomes two backticks, a bracket `-LRB-`, a slash `\\/`. Tokens are
therefore looked for as the text may spell them. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

Offsets = tuple[tuple[int, int], ...]

_WHOLE = {
    "-lrb-": r"\(", "-rrb-": r"\)", "-lsb-": r"\[", "-rsb-": r"\]", "-lcb-": r"\{", "-rcb-": r"\}",
    "``": "[\"“”„‟«»″〝〞＂]|''|``", "''": "[\"“”„‟«»″〝〞＂]|''|``", '"': "[\"“”„‟«»″〝〞＂]|''|``",
    "`": "['‘’‚‛′ʼ´＇`]", "...": r"…|\.\s?\.\s?\.", "…": r"…|\.\s?\.\s?\.", "--": "--+|[–—―-]",
    "&quot;": '"', "&apos;": "['’]", "&amp;": "&", "&lt;": "<", "&gt;": ">", "&#91;": r"\[", "&#93;": r"\]",
    "&#124;": r"\|",
}  # fmt: skip
_SAME = ("'‘’‚‛′ʼ´＇`", '"“”„‟«»″〝〞＂', "-‐‑‒–—―−﹣－")  # each writes the same character
_BETWEEN = re.compile(r"[\s\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]*")  # may lie between two tokens
_FARTHEST = 2000  # characters that may be skipped: tokens need not cover their text
_LONGEST = 1000  # letters of a token that may be spelt otherwise: patterns of longer ones take seconds


def located(tokens: Sequence[str], text: str) -> Offsets | None:
    """Return the offsets of the tokens in the text, or None if they do not lie in it in this order.

    >>> located(("``", "Hi", "''", "-LRB-", "1\\\\/2", "-RRB-"), '"Hi" (1/2)')
    ((0, 1), (1, 3), (3, 4), (5, 6), (6, 9), (9, 10))
    """
    places: list[tuple[int, int]] = []
    at = 0
    for token in tokens:
        if not token:
            places.append((at, at))
            continue
        if not text.startswith(token, at):
            start = text.find(token, at, at + _FARTHEST)
            if start < 0 or not _BETWEEN.fullmatch(text, at, start):
                found = _found(token, text, at) if len(token) <= _LONGEST else None
                if found is None:
                    return None
                places.append(found)
                at = found[1]
                continue
            at = start
        places.append((at, at + len(token)))
        at += len(token)
    return tuple(places)


def _found(token: str, text: str, at: int) -> tuple[int, int] | None:
    """Return the place of a token that is spelt otherwise, or that lies behind something that is no token."""
    pattern = _pattern(token)
    between = _BETWEEN.match(text, at)
    start = between.end() if between else at
    match = pattern.match(text, start) or pattern.match(text, at)
    if match is None:
        far = start + _FARTHEST
        whole = re.compile(rf"(?<!\w)(?:{pattern.pattern})(?!\w)", re.IGNORECASE)
        match = whole.search(text, start, far) or pattern.search(text, start, far)
    return match.span() if match else None


@lru_cache(maxsize=1 << 12)
def _pattern(token: str) -> re.Pattern[str]:
    """Return what matches the spellings of a token."""
    if whole := _WHOLE.get(token.lower()):
        return re.compile(f"{re.escape(token)}|{whole}", re.IGNORECASE)
    parts = []
    for character in unicodedata.normalize("NFC", token.replace("\\/", "/").replace("\\*", "*")):
        same = next((some for some in _SAME if character in some), "")
        part = f"[{re.escape(same)}]" if same else re.escape(character)
        if (apart := unicodedata.normalize("NFD", character)) != character:
            part = f"(?:{part}|{re.escape(apart)})"
        parts.append(part)
    joined = "[\\s\u00ad\u200b\u2060]?".join(parts)  # a token may have a space that was removed, as in 1 000
    return re.compile(f"{re.escape(token)}|{joined}", re.IGNORECASE)


def checked_offsets(offsets: object, length: int) -> Offsets:
    """Return given offsets as a tuple; a ValueError if they are not one (start, end) per token, in order."""
    places: list[tuple[int, int]] = []
    try:
        for start, end in offsets:  # type: ignore[attr-defined]
            if type(start) is not int or type(end) is not int or not 0 <= start <= end:
                raise ValueError(f"the offsets {start!r}, {end!r} are no place in a text")
            if places and start < places[-1][0]:
                raise ValueError(f"the token at {start} comes after that at {places[-1][0]}")
            places.append((start, end))
    except TypeError:
        raise ValueError(f"offsets should be a list of [start, end], not {str(offsets)[:60]!r}") from None
    if len(places) != length:
        raise ValueError(f"there are offsets of {len(places)} tokens for {length} tokens")
    return tuple(places)
