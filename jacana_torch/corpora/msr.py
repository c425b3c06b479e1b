"""The format msr: the MSR RTE2 files, which are GIZA's A3 with possible links. Three lines per pair:

    # sentence pair 7
    the premise , which is the source
    NULL ({ / / }) each ({ 4 p1 / / }) word ({ / / }) of the hypothesis with the positions it is linked to, from 1

`p` marks a possible link; the part after a slash is not about links. Byte-order marks may be anywhere, even inside
lines, and are dropped. In a file of GIZA itself the plain line is the side that GIZA calls the target.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from functools import partial

from ..errors import CorpusError, quote
from ..types import Alignment, Example, Link, Sentence, SentencePair
from . import Format
from ._files import BOM, CannotHold, Source, alignment_of, each_written, join_tokens, split_tokens

log = logging.getLogger(__name__)

_HEADER = re.compile(r"# *sentence pair(?: +(?:\(([0-9]+)\).*|(.*)))?", re.IGNORECASE)
# The last ) of a line may be missing, as in one of the published files; what it closes is complete.
_WORD = re.compile(r"[ \t]*([^ \t]+) \(\{([^{}]*)\}(?:\)|$)")
_POSITION = re.compile(r"(p?)([0-9]{1,9})")


def _sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and _HEADER.fullmatch(lines[0].replace(BOM, "").strip()) is not None


def _read(source: Source) -> Iterator[Example | CorpusError]:
    """Read blocks that end where the next header begins, so that one bad pair costs one pair."""
    block: list[tuple[int, bytes]] = []
    for numbered in source.lines():
        if numbered is None:  # a pause
            continue
        number, raw = numbered
        if b"#" in raw[:80] and _is_header(raw):
            if block:
                yield _parse_block(source, block)
            block = [(number, raw)]
        elif block or raw.replace(b"\xef\xbb\xbf", b"").strip():
            block.append((number, raw))
    if block:
        yield _parse_block(source, block)


def _is_header(raw: bytes) -> bool:
    return _HEADER.fullmatch(_clean(raw.decode("utf-8", "replace"))) is not None


def _clean(line: str) -> str:
    return line.replace(BOM, "").strip(" \t\r\n")


def _parse_block(source: Source, block: Sequence[tuple[int, bytes]]) -> Example | CorpusError:
    source.line = block[0][0]
    try:
        # Blank lines at the end separate blocks; a blank line inside is an empty premise.
        lines = [_clean(source.decode(number, raw)) for number, raw in block]
        while len(lines) > 3 and not lines[-1]:
            lines.pop()
        header = _HEADER.fullmatch(lines[0])
        if header is None:
            raise CorpusError(f"expected '# sentence pair …' and not {quote(lines[0])}", source.name, block[0][0])
        if len(lines) != 3:
            wrong = f"{len(lines)} lines for this pair instead of three: header, source, target with its links"
            raise CorpusError(wrong, source.name, block[0][0])
    except CorpusError as error:
        return error
    try:
        example = _parse_pair(header[1] or header[2] or None, split_tokens(lines[1]), lines[2])
    except ValueError as error:
        return CorpusError(str(error), source.name, block[2][0])
    if not lines[2].endswith(")"):
        log.warning("%s:%d: the line lacks its last ), and is read as if it were there", source.name, block[2][0])
    return example


def _parse_pair(pair_id: str | None, source: tuple[str, ...], line: str) -> Example:
    words: list[str] = []
    links: tuple[set[Link], set[Link]] = (set(), set())
    end = 0
    while match := _WORD.match(line, end):  # it begins where the last one ends: a search would take quadratic time
        end = match.end()
        # The first word is NULL: its links are no links.
        for possible, i in _positions(match[2]):
            if words:
                links[possible].add((i - 1, len(words) - 1))
        words.append(match[1])
    if line[end:].strip() or not words or words[0] != "NULL":
        rest = line[end:] if words and words[0] == "NULL" else line
        raise ValueError(f"expected 'NULL ({{ / / }}) word ({{ 1 p2 / / }}) …' and not {quote(rest.strip())}")
    pair = SentencePair(Sentence(source), Sentence(tuple(words[1:])), pair_id)
    return Example(pair, Alignment(len(source), len(words) - 1, frozenset(links[0]), frozenset(links[1])))


def _positions(inside: str) -> Iterator[tuple[bool, int]]:
    for piece in inside.split("/", 1)[0].split():
        match = _POSITION.fullmatch(piece)
        if match is None or int(match[2]) == 0:
            raise ValueError(f"{quote(piece)} is not a position, which counts from 1 and may have a p before it")
        yield bool(match[1]), int(match[2])


def _lines(example: Example, number: int) -> str:
    gold, pair = alignment_of(example), example.pair
    header = f"# sentence pair {number if pair.id is None else pair.id}"
    match = _HEADER.fullmatch(_clean(header))
    if match is None or (pair.id is not None and pair.id != (match[1] or match[2])):
        raise CannotHold(f"this format cannot hold the id {quote(pair.id)}")
    source = join_tokens(pair.source.tokens, (BOM,))
    if _HEADER.fullmatch(source):
        raise CannotHold(f"this format cannot hold the source {quote(source)}, which looks like a header")
    join_tokens(pair.target.tokens, (BOM, "({", "})"))
    positions: list[list[str]] = [[] for _ in pair.target.tokens]
    for i, j in sorted(gold.sure):
        positions[j].append(f"{i + 1}")
    for i, j in sorted(gold.possible):
        positions[j].append(f"p{i + 1}")
    words = (
        f"{word} ({{ {' '.join((*at, '/ /'))} }}) " for word, at in zip(pair.target.tokens, positions, strict=True)
    )
    return f"{header}\n{source} \nNULL ({{ / / }}) {''.join(words)}\n"


FORMAT = Format(sniff=_sniff, read=_read, write=partial(each_written, write=_lines), suffixes=(".a3",))
