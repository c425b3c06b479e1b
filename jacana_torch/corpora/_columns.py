"""Corpora: lines of columns, `source TAB target [TAB links]` or the same with ` ||| `. In and out: a line, a pair.

This is what text, pharaoh and talp have in common. A line with a tab in it is split at tabs, any other at ` ||| `.
A blank line is an empty pair, because a line that vanished would shift all that come after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..types import Example, Link, Sentence, SentencePair
from ._links import CannotHold, Links, alignment_of, join_tokens, parse_links, split_tokens
from ._source import quote

_BARS = re.compile(r"(?<![^ ])\|\|\|(?![^ ])")
_ANY_LINKS = re.compile(r" *[0-9]+[-p][0-9]+( +[0-9]+[-p][0-9]+)* *")

LinkText = Callable[[Sequence[Link], Sequence[Link]], str]


def columns(line: str) -> list[str]:
    if "\t" in line:
        return line.split("\t")
    if "|||" in line:
        return [column.strip(" ") for column in _BARS.split(line)]
    return [line]


def looks_like_links(text: str) -> bool:
    return _ANY_LINKS.fullmatch(text) is not None


def link_texts(lines: Sequence[str]) -> list[str]:
    """The only or third columns that are not blank, if the first of them looks like links; else none."""
    found = [c[-1] for line in lines if len(c := columns(line)) in (1, 3) and c[-1].strip()]
    return found if found and looks_like_links(found[0]) else []


def pair_of(source: str, target: str, *, raw: bool) -> SentencePair:
    """The two sentences; `raw` keeps their text too, which says that their tokens are only its split."""
    return SentencePair(
        Sentence(split_tokens(source), text=source if raw else None),
        Sentence(split_tokens(target), text=target if raw else None),
    )


def parse_pair(line: str, *, possible: bool) -> Example:
    """A line of pharaoh or talp with its text."""
    found = columns(line)
    if not line.strip(" "):
        return Example(pair_of("", "", raw=False))
    if len(found) == 1:
        if looks_like_links(line):
            raise ValueError(
                "the line has links but no sentences: this is an aligner's output, which can be evaluated against "
                "a file that has them, or read together with one (text=)"
            )
        raise ValueError(f"no tab and no ' ||| ' in {quote(line)}: expected source, target and links")
    if len(found) > 3:
        raise ValueError(f"{len(found)} columns instead of source, target and links")
    pair = pair_of(found[0], found[1], raw=False)
    if len(found) == 2:
        return Example(pair)
    sure, maybe = parse_links(found[2], possible=possible)
    return Example(pair, Links(sure, maybe).over(len(pair.source), len(pair.target)))


def parse_bare(line: str, *, possible: bool) -> Links:
    """A line of links alone."""
    return Links(*parse_links(line, possible=possible))


def format_pair(example: Example, links: LinkText) -> str:
    pair = example.pair
    line = f"{join_tokens(pair.source.tokens)}\t{join_tokens(pair.target.tokens)}"
    if example.gold is None:
        return line + "\n"
    gold = alignment_of(example)
    return f"{line}\t{links(sorted(gold.sure), sorted(gold.possible))}\n"


def format_bare(example: Example, links: LinkText) -> str:
    gold = alignment_of(example)
    return links(sorted(gold.sure), sorted(gold.possible)) + "\n"


def raw_text(sentence: Sentence) -> str:
    """The sentence as its reader had it, or its tokens with spaces between."""
    if sentence.text is None:
        return join_tokens(sentence.tokens)
    for character in "\t\n\r":
        if character in sentence.text:
            raise CannotHold(f"this format cannot hold {quote(sentence.text)}, which has {character!r} in it")
    return sentence.text
