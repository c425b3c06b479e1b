"""The format text: one pair per line, `source TAB target` or `source ||| target`, without links.

A blank line is an empty pair. The sentences keep their raw text, so that an aligner can tokenise it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..errors import quote
from ..types import Example, Sentence, SentencePair
from . import Format
from ._files import CannotHold, columns, each_written, join_tokens, per_line, split_tokens


def _sniff(lines: Sequence[str]) -> bool:
    """Whether most lines have two columns: one bad line, even the first, should not hide the format."""
    return sum(len(columns(line)) == 2 for line in lines) * 2 > len(lines)


def _parse(line: str) -> Example:
    found = columns(line)
    if not line.strip(" "):
        found = ["", ""]
    if len(found) == 2:
        source = Sentence(split_tokens(found[0]), text=found[0])
        target = Sentence(split_tokens(found[1]), text=found[1])
        return Example(SentencePair(source, target))
    if len(found) == 1:
        raise ValueError(f"no tab and no ' ||| ' between two sentences in {quote(line)}")
    from .pharaoh import looks_like_links

    hint = "; with links in the third, it is --from pharaoh or talp" if looks_like_links(found[2]) else ""
    raise ValueError(f"{len(found)} columns instead of source and target{hint}")


def _line(example: Example, number: int) -> str:
    return f"{_raw_text(example.pair.source)}\t{_raw_text(example.pair.target)}\n"


def _raw_text(sentence: Sentence) -> str:
    if sentence.text is None:
        return join_tokens(sentence.tokens)
    for character in "\t\n\r":
        if character in sentence.text:
            raise CannotHold(f"this format cannot hold {quote(sentence.text)}, which has {character!r} in it")
    return sentence.text


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=_parse, header=True),
    write=partial(each_written, write=_line),
    holds_links=False,
    header=True,
    cut="lines",
)
