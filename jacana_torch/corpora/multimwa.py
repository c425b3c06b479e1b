"""The format multimwa: the MultiMWA TSV. Columns 0 id, 1 source, 3 target, 7 sure and 8 possible links.

The links are `i-j`, counted from 0. Columns 2 and 4 (N/A) and 5 and 6 (1) say nothing about the alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..errors import quote
from ..types import Example, Sentence, SentencePair
from . import Format
from ._files import CannotHold, alignment_of, each_written, join_tokens, linked, per_line, split_tokens
from .pharaoh import format_links, parse_links


def _sniff(lines: Sequence[str]) -> bool:
    found = lines[0].split("\t") if lines else []
    if len(found) < 8:
        return False
    try:
        parse_links(found[7], possible=False)
    except ValueError:
        return False
    return True


def _parse(line: str) -> Example:
    found = line.split("\t")
    if len(found) < 8:
        raise ValueError(
            f"{len(found)} columns instead of 8 or more (sure links are in the eighth): {quote(line)}"
        )
    pair = SentencePair(Sentence(split_tokens(found[1])), Sentence(split_tokens(found[3])), found[0] or None)
    sure, _ = parse_links(found[7], possible=False)
    maybe, _ = parse_links(found[8], possible=False) if len(found) > 8 else ([], [])
    return Example(pair, linked(pair, (sure, maybe)))


def _line(example: Example, number: int) -> str:
    gold, pair = alignment_of(example), example.pair
    if any(c in (pair.id or "") for c in "\t\n\r"):
        raise CannotHold(f"this format cannot hold the id {quote(pair.id)}, which has a tab or line end in it")
    source, target = join_tokens(pair.source.tokens), join_tokens(pair.target.tokens)
    fields = (pair.id or "", source, "N/A", target, "N/A", "1", "1")
    return "\t".join((*fields, format_links(gold.sure), format_links(gold.possible), "")) + "\n"


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=_parse, skip_blank=True, header=True),
    write=partial(each_written, write=_line),
    header=True,
    cut="lines",
)
