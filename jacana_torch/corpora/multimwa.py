"""Corpora, format multimwa: the MultiMWA TSV. Columns 0 id, 1 source, 3 target, 7 sure and 8 possible links.

The links are `i-j`, 0-based. Columns 2 and 4 (N/A there) and 5, 6 (1 there) say nothing about the alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..errors import CorpusError
from ..types import Example, Sentence, SentencePair
from ._links import CannotHold, Links, alignment_of, format_links, join_tokens, parse_links, split_tokens
from ._source import Source, per_line_and_pauses, quote

SUFFIXES = (".multimwa",)


def sniff(lines: Sequence[str]) -> bool:
    found = lines[0].split("\t") if lines else []
    if len(found) < 8:
        return False
    try:
        parse_links(found[7], possible=False)
    except ValueError:
        return False
    return True


def read(source: Source) -> Iterator[Example | CorpusError | None]:
    return per_line_and_pauses(source, _parse, skip_blank=True)


def _parse(line: str) -> Example:
    found = line.split("\t")
    if len(found) < 8:
        raise ValueError(
            f"{len(found)} columns instead of 8 or more (sure links are in the eighth): {quote(line)}"
        )
    pair = SentencePair(Sentence(split_tokens(found[1])), Sentence(split_tokens(found[3])), found[0] or None)
    sure, _ = parse_links(found[7], possible=False)
    maybe, _ = parse_links(found[8], possible=False) if len(found) > 8 else ([], [])
    return Example(pair, Links(sure, maybe).over(len(pair.source), len(pair.target)))


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        gold, pair = alignment_of(example), example.pair
        if any(c in (pair.id or "") for c in "\t\n\r"):
            raise CannotHold(f"this format cannot hold the id {quote(pair.id)}, which has a tab or line end in it")
        source, target = join_tokens(pair.source.tokens), join_tokens(pair.target.tokens)
        fields = (pair.id or "", source, "N/A", target, "N/A", "1", "1")
        yield "\t".join((*fields, format_links(gold.sure), format_links(gold.possible), "")) + "\n"
