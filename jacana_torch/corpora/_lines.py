"""Parse and write lines: columns, tokens and links, as the line formats share them.

A line with a tab is split at tabs, any other at ` ||| `. A blank line is an empty pair: to drop it would shift all
lines after it. Parsers raise a ValueError with a message for the user; `per_line` adds the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..errors import CorpusError
from ..types import Alignment, Example, Link, Sentence, SentencePair
from ._files import Source, quote

T = TypeVar("T")

# Sure and possible links of a line that has no text.
Links = tuple[list[Link], list[Link]]

_SURE = re.compile(r" *(?:[0-9]{1,9}-[0-9]{1,9}(?: +|$))*")
_EITHER = re.compile(r" *(?:[0-9]{1,9}[-p][0-9]{1,9}(?: +|$))*")
_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")
_SPACE = re.compile(r"[ \t]+")
_BARS = re.compile(r"(?<![^ ])\|\|\|(?![^ ])")
_ANY_LINKS = re.compile(r" *[0-9]+[-p][0-9]+( +[0-9]+[-p][0-9]+)* *")


class CannotHold(ValueError):
    """A format cannot write this example; the message says what and why."""


def per_line(
    source: Source, parse: Callable[[str], T], *, skip_blank: bool = False
) -> Iterator[T | CorpusError | None]:
    """Parse each line; a ValueError becomes a CorpusError in place of the item, and a pause of the source None."""
    for numbered in source.lines():
        if numbered is None:
            yield None
            continue
        number, raw = numbered
        try:
            line = source.decode(number, raw)
            if skip_blank and not line.strip():
                continue
            item: T | CorpusError = parse(line)
        except CorpusError as error:
            item = error
        except ValueError as error:
            item = CorpusError(str(error), source.name, number)
        yield item


def columns(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    if "|||" in line:
        return [column.strip(" ") for column in _BARS.split(line)]
    return [line]


def looks_like_links(text: str) -> bool:
    return _ANY_LINKS.fullmatch(text) is not None


def link_texts(lines: Sequence[str]) -> list[str]:
    """Return the only or third columns that are not blank if the first of them looks like links, else none."""
    found = [c[-1] for line in lines if len(c := columns(line)) in (1, 3) and c[-1].strip()]
    return found if found and looks_like_links(found[0]) else []


def split_tokens(text: str) -> tuple[str, ...]:
    """Split at spaces and tabs only: a no-break space or U+2028 is part of its token."""
    tokens = text.split(" ")
    if "" in tokens or "\t" in text:
        tokens = [token for token in _SPACE.split(text) if token]
    return tuple(tokens)


def join_tokens(tokens: Sequence[str], forbidden: Iterable[str] = ()) -> str:
    """Join tokens by spaces; CannotHold if a reader would not split them in the same way."""
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


def pair_of(source: str, target: str, *, raw: bool) -> SentencePair:
    """Make a pair of two texts; `raw` keeps them too: their tokens are only a split at spaces."""
    return SentencePair(
        Sentence(split_tokens(source), text=source if raw else None),
        Sentence(split_tokens(target), text=target if raw else None),
    )


def parse_links(text: str, *, possible: bool = True) -> tuple[list[Link], list[Link]]:
    """Parse links such as `0-0 1p2` into sure and possible ones; without `possible`, `ipj` is an error."""
    if not (_EITHER if possible else _SURE).fullmatch(text):
        for piece in _SPACE.split(text.strip(" \t")):
            if not _EITHER.fullmatch(piece):
                raise ValueError(
                    f"{quote(piece)} is not a link: a link is two positions, counted from 0, as in 0-0"
                )
            if not _SURE.fullmatch(piece) and not possible:
                raise ValueError(
                    f"{quote(piece)} is a possible link, which only the format talp can hold (--from talp)"
                )
        text = text.replace("\t", " ")
    if "p" not in text:
        return [(int(i), int(j)) for i, _, j in _LINK.findall(text)], []
    sure: list[Link] = []
    maybe: list[Link] = []
    for i, mark, j in _LINK.findall(text):
        (sure if mark == "-" else maybe).append((int(i), int(j)))
    return sure, maybe


def linked(pair: SentencePair, links: Links) -> Alignment:
    """Make an alignment of sure and possible links; a ValueError if they are out of range."""
    return Alignment(len(pair.source), len(pair.target), frozenset(links[0]), frozenset(links[1]))


def parse_pair(line: str, *, possible: bool) -> Example:
    """Parse a line of pharaoh or talp with its text."""
    found = columns(line)
    if not line.strip(" "):
        return Example(pair_of("", "", raw=False))
    if len(found) == 1:
        if looks_like_links(line):
            raise ValueError(
                "the line has links but no sentences: this is an aligner's output; evaluate it against a file "
                "that has them, or read it together with one (text=)"
            )
        raise ValueError(f"no tab and no ' ||| ' in {quote(line)}: expected source, target and links")
    if len(found) > 3:
        raise ValueError(f"{len(found)} columns instead of source, target and links")
    pair = pair_of(found[0], found[1], raw=False)
    if len(found) == 2:
        return Example(pair)
    return Example(pair, linked(pair, parse_links(found[2], possible=possible)))


def format_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """Write links in reading order, `i-j` for sure and `ipj` for possible ones."""
    marked = dict.fromkeys(possible, "p") | dict.fromkeys(sure, "-")
    return " ".join([f"{i}{marked[i, j]}{j}" for i, j in sorted(marked)])


def alignment_of(example: Example) -> Alignment:
    """Return the alignment; CannotHold if there is none to write or it is of other sentences."""
    gold = example.gold
    if gold is None:
        raise CannotHold("the pair has no alignment; the formats text and jsonl hold pairs without")
    sizes = len(example.pair.source), len(example.pair.target)
    if (gold.n_source, gold.n_target) != sizes:
        raise CannotHold(f"an alignment of {gold.n_source} x {gold.n_target} tokens for {sizes[0]} x {sizes[1]}")
    return gold


def format_line(example: Example, *, text: bool, possible: bool) -> str:
    """Write a line of pharaoh or talp: links, with `text` after the two sentences."""
    tokens = ""
    if text:
        tokens = f"{join_tokens(example.pair.source.tokens)}\t{join_tokens(example.pair.target.tokens)}"
        if example.gold is None:
            return f"{tokens}\n"
        tokens += "\t"
    gold = alignment_of(example)
    return f"{tokens}{format_links(gold.sure, gold.possible if possible else ())}\n"
