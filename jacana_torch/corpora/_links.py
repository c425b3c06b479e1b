"""Corpora: what the formats share about tokens and links. In: pieces of a line; out: tokens, links, and back.

What is wrong is a ValueError with a message for the user; who knows file and line makes a CorpusError of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..types import Alignment, Example, Link
from ._source import quote

_SURE = re.compile(r" *(?:[0-9]{1,9}-[0-9]{1,9}(?: +|$))*")
_EITHER = re.compile(r" *(?:[0-9]{1,9}[-p][0-9]{1,9}(?: +|$))*")
_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")
_SPACE = re.compile(r"[ \t]+")


class CannotHold(ValueError):
    """A format has no way to write this example; the message says what and why."""


@dataclass(frozen=True)
class Links:
    """Links without their text, as a line of an aligner's output."""

    sure: Collection[Link] = ()
    possible: Collection[Link] = ()
    confidence: Mapping[Link, float] = field(default_factory=dict)

    def over(self, n_source: int, n_target: int) -> Alignment:
        return Alignment(n_source, n_target, frozenset(self.sure), frozenset(self.possible), self.confidence)


def split_tokens(text: str) -> tuple[str, ...]:
    """Split at spaces and tabs only: a no-break space or U+2028 is part of its token."""
    tokens = text.split(" ")
    if "" in tokens or "\t" in text:
        tokens = [token for token in _SPACE.split(text) if token]
    return tuple(tokens)


def join_tokens(tokens: Sequence[str], forbidden: Iterable[str] = ()) -> str:
    """Tokens with spaces between; one that would not come back as it is raises CannotHold."""
    line = " ".join(tokens)
    simple = line.count(" ") == max(0, len(tokens) - 1) and not any(c in line for c in "\t\n\r")
    if not simple or "" in tokens or any(piece in line for piece in forbidden):
        _blame(tokens, forbidden)
    return line


def _blame(tokens: Sequence[str], forbidden: Iterable[str]) -> None:
    for token in tokens:
        for piece in (" ", "\t", "\n", "\r", *forbidden):
            if piece in token:
                raise CannotHold(f"this format cannot hold the token {quote(token)}, which has {piece!r} in it")
        if not token:
            raise CannotHold("this format cannot hold an empty token")


def parse_links(text: str, *, possible: bool = True) -> tuple[list[Link], list[Link]]:
    """Sure and possible links of `0-0 1p2`, 0-based; with `possible=False` an `ipj` is an error."""
    if not (_EITHER if possible else _SURE).fullmatch(text):
        for piece in _SPACE.split(text.strip(" \t")):
            if not _EITHER.fullmatch(piece):
                raise ValueError(f"{quote(piece)} is not a link: a link is two positions from 0 on, as in 0-0")
            if not _SURE.fullmatch(piece) and not possible:
                raise ValueError(
                    f"{quote(piece)} is a possible link, for which the format talp (--from talp) has room"
                )
        text = text.replace("\t", " ")
    if "p" not in text:
        return [(int(i), int(j)) for i, _, j in _LINK.findall(text)], []
    sure: list[Link] = []
    maybe: list[Link] = []
    for i, mark, j in _LINK.findall(text):
        (sure if mark == "-" else maybe).append((int(i), int(j)))
    return sure, maybe


def format_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """All links in reading order, `i-j` sure and `ipj` possible."""
    marked = [(i, j, "-") for i, j in sure] + [(i, j, "p") for i, j in possible]
    return " ".join(f"{i}{mark}{j}" for i, j, mark in sorted(marked))


def alignment_of(example: Example) -> Alignment:
    """The example's links; CannotHold where it has none to write or they are of other sentences."""
    gold = example.gold
    if gold is None:
        raise CannotHold("the pair has no alignment; the formats text and jsonl hold pairs without")
    sizes = len(example.pair.source), len(example.pair.target)
    if (gold.n_source, gold.n_target) != sizes:
        raise CannotHold(f"an alignment of {gold.n_source} x {gold.n_target} tokens for {sizes[0]} x {sizes[1]}")
    return gold
