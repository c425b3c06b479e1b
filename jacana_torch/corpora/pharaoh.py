"""The format pharaoh: sure links `0-0 1-2`, counted from 0, one pair per line.

With its text, a line is `source TAB target TAB links` (or ` ||| ` for the tabs); without the third column the pair
is unaligned. Aligners print links alone, one line per pair; to read these you need the sentences, see `align_to`
and `read(..., text=...)`. Only talp can hold possible links. Other formats write their links in the same way.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ..errors import quote
from ..types import Example, Link, Sentence, SentencePair
from . import CannotHold, Format
from ._files import alignment_of, columns, each_written, join_tokens, linked, per_line, split_tokens

log = logging.getLogger(__name__)

_SURE = re.compile(r" *(?:[0-9]{1,9}-[0-9]{1,9}(?: +|$))*")
_EITHER = re.compile(r" *(?:[0-9]{1,9}[-p][0-9]{1,9}(?: +|$))*")
_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")
_ANY_LINKS = re.compile(r" *[0-9]+[-p][0-9]+( +[0-9]+[-p][0-9]+)* *")


def looks_like_links(text: str) -> bool:
    return _ANY_LINKS.fullmatch(text) is not None


def parse_links(text: str, *, possible: bool = True) -> tuple[list[Link], list[Link]]:
    """Parse links such as `0-0 1p2` into sure and possible ones; without `possible`, `ipj` is an error."""
    if not (_EITHER if possible else _SURE).fullmatch(text):
        for piece in split_tokens(text):
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


def format_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """Write links in reading order, `i-j` for sure and `ipj` for possible ones."""
    marked = dict.fromkeys(possible, "p") | dict.fromkeys(sure, "-")
    links = []
    for i, j in sorted(marked):
        links.append(f"{i}{marked[i, j]}{j}")
    return " ".join(links)


def link_texts(lines: Sequence[str]) -> list[str]:
    """Return the only or third columns that are not blank if the first of them looks like links, else none."""
    found = [c[-1] for line in lines if len(c := columns(line)) in (1, 3) and c[-1].strip()]
    return found if found and looks_like_links(found[0]) else []


def _sniff(lines: Sequence[str]) -> bool:
    """Whether the only or the third column has links, none of them possible."""
    texts = link_texts(lines)
    if not texts:  # perhaps pairs with an empty third column: no links were found
        return bool(lines) and all(len(found := columns(line)) == 3 and not found[2].strip() for line in lines)
    return not any("p" in text for text in texts if looks_like_links(text))


def parse_pair(line: str, *, possible: bool) -> Example:
    """Parse a line with its text."""
    found = columns(line)
    if not line.strip(" "):
        return Example(SentencePair(Sentence(()), Sentence(())))
    if len(found) == 1:
        if looks_like_links(line):
            raise ValueError(
                "the line has links but no sentences: this is an aligner's output; evaluate it against a file "
                "that has them, or read it together with one (text=)"
            )
        raise ValueError(f"no tab and no ' ||| ' in {quote(line)}: expected source, target and links")
    if len(found) > 3:
        raise ValueError(f"{len(found)} columns instead of source, target and links")
    pair = SentencePair(Sentence(split_tokens(found[0])), Sentence(split_tokens(found[1])))
    if len(found) == 2:
        return Example(pair)
    return Example(pair, linked(pair, parse_links(found[2], possible=possible)))


def write_lines(examples: Iterable[Example], *, text: bool, possible: bool) -> Iterator[str | CannotHold]:
    """Write a line per pair: its links, with `text` after the two sentences; `possible` links only if wanted."""
    dropped = 0

    def line(example: Example, number: int) -> str:
        nonlocal dropped
        tokens = ""
        if text:
            tokens = f"{join_tokens(example.pair.source.tokens)}\t{join_tokens(example.pair.target.tokens)}"
            if example.gold is None:
                return f"{tokens}\n"
            tokens += "\t"
        gold = alignment_of(example)
        dropped += 0 if possible else len(gold.possible)
        return f"{tokens}{format_links(gold.sure, gold.possible if possible else ())}\n"

    yield from each_written(examples, line)
    if dropped:
        log.warning("left out %d possible links, which pharaoh cannot hold and talp can", dropped)


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=partial(parse_pair, possible=False), header=True),
    read_links=partial(per_line, parse=partial(parse_links, possible=False)),
    write=partial(write_lines, text=True, possible=False),
    write_links=partial(write_lines, text=False, possible=False),
    header=True,
    cut="lines",
)
