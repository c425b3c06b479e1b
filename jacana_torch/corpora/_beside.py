"""Corpora: links whose text is elsewhere: in a corpus file of any format, in two files of sentences, or in memory.

A corpus file gives its pairs, and its own links are ignored. Two files have one sentence per line each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ..errors import CorpusError, quote
from ..types import Alignment, Example, Sentence, SentencePair
from . import Format, Links, Numbered, format_named, formats, guess
from ._files import Readable, Source, TextSource, columns, linked, per_line, split_tokens
from ._guess import head_lines

_TAGGED = re.compile(r"[ \t]*<s\s+snum=\"?([0-9]{1,9})\"?\s*>(.*)</s>[ \t]*", re.IGNORECASE)

# The number that a file of links has for a pair, and the pair, which may be bad. Its own links are not read.
NumberedPair = tuple[int, Example | CorpusError]


def read_beside(source: Source, format: str, text: TextSource) -> Iterator[Example | CorpusError]:
    """Yield the links of `source` with the pairs of `text`."""
    found = format_named(format)
    pairs = _two_files(*text) if isinstance(text, tuple) else _pairs(text)
    if found.read_numbered is not None:
        yield from _by_number(source, found.read_numbered(source), pairs)
    elif found.read_links is not None:
        yield from _by_order(source, found.read_links(source), pairs)
    else:
        able = formats(lambda one: one.read_links is not None or one.read_numbered is not None)
        raise CorpusError(f"{format} has its own text; links without are in {', '.join(able)}", source.name)


def _pairs(text: Readable) -> Iterator[NumberedPair]:
    source = Source(text)
    try:
        name = guess(source.name, source.head)
        read = format_named(name).read
        if read is None:
            raise CorpusError(f"{name} holds links without the sentences: name a file that has them", source.name)
        for number, item in enumerate(read(source), start=1):
            if item is not None:
                if isinstance(item, Example):
                    item = Example(item.pair.without_text(), None, item.extra)
                yield number, item
    finally:
        source.close()


def _two_files(source: Readable, target: Readable) -> Iterator[NumberedPair]:
    """Yield the sentences of two files, plain or in the form of the shared tasks, `<s snum=0001> … </s>`."""
    files = Source(source), Source(target)
    try:
        both = zip_longest(per_line(files[0], _tagged), per_line(files[1], _tagged))
        for line, sides in enumerate(both, start=1):
            if None in sides:
                short, long = (files[0], files[1]) if sides[0] is None else (files[1], files[0])
                raise CorpusError(f"ends after {line - 1} lines, but {long.name} has more", short.name, line)
            yield _join(line, sides, files)
    finally:
        for file in files:
            file.close()


def _tagged(line: str) -> tuple[str | None, Sentence]:
    match = _TAGGED.fullmatch(line)
    if match is None:
        return None, Sentence(split_tokens(line))
    return match[1], Sentence(split_tokens(match[2]))


def _join(line: int, sides: Sequence[Any], files: Sequence[Source]) -> NumberedPair:
    for side in sides:
        if isinstance(side, CorpusError):
            return line, side
    (source_tag, source), (target_tag, target) = sides
    tags = [int(tag) if tag is not None else None for tag in (source_tag, target_tag)]
    if tags[0] != tags[1]:
        wrong = f"the sentence is number {target_tag} here and {source_tag} in {files[0].name}"
        return line, CorpusError(wrong, files[1].name, line)
    return tags[0] if tags[0] is not None else line, Example(SentencePair(source, target, source_tag))


def _by_order(
    source: Source, items: Iterable[Links | CorpusError | None], pairs: Iterable[NumberedPair]
) -> Iterator[Example | CorpusError]:
    for line, (links, numbered) in enumerate(zip_longest(items, pairs), start=1):
        if numbered is None:
            raise CorpusError(f"has links for more pairs than the text, which has {line - 1}", source.name, line)
        if links is None:
            raise CorpusError(
                f"ends after {line - 1} lines of links, but the text has more pairs", source.name, line
            )
        example = numbered[1]
        if isinstance(example, CorpusError):
            yield example
            continue
        if isinstance(links, CorpusError):
            yield links
            continue
        try:
            yield replace(example, gold=linked(example.pair, links))
        except ValueError as error:
            yield CorpusError(str(error), source.name, line)


def _by_number(
    source: Source, found: tuple[Numbered, list[CorpusError]], pairs: Iterable[NumberedPair]
) -> Iterator[Example | CorpusError]:
    sentences, errors = found
    yield from errors
    for number, example in pairs:
        _, align = sentences.pop(number, (0, Alignment))
        if isinstance(example, CorpusError):
            yield example
            continue
        try:
            yield replace(example, gold=align(len(example.pair.source), len(example.pair.target)))
        except CorpusError as error:
            yield error
    for number, (line, _) in sentences.items():
        yield CorpusError(f"there is no sentence {number} in the text", source.name, line)


def records_of(gold: Sequence[Example], predicted: Readable, format: str | None = None) -> list[Example]:
    """See `jacana_torch.corpora.align_to`: the records that hold these links."""
    source = Source(predicted)
    try:
        lines = head_lines(source.head)
        if format is None:
            format = guess(source.name, source.head) if lines else "pharaoh"  # blank lines: nothing is linked
        found = format_named(format)
        pairs: Iterable[NumberedPair] = enumerate(gold, start=1)
        if found.read_numbered is not None:
            return [_checked(item) for item in _by_number(source, found.read_numbered(source), pairs)]
        if found.read_links is not None and (not lines or len(columns(lines[0])) == 1):
            return [_checked(item) for item in _by_order(source, found.read_links(source), pairs)]
        return _with_text(gold, source, found)
    finally:
        source.close()


def _checked(item: Example | CorpusError) -> Example:
    if isinstance(item, CorpusError):
        raise item
    return item


def _with_text(gold: Sequence[Example], source: Source, format: Format) -> list[Example]:
    found: list[Example] = []
    for item in format.read(source) if format.read is not None else ():
        if isinstance(item, CorpusError):
            raise item
        if item is not None:
            found.append(item)
    if len(found) != len(gold):
        raise CorpusError(f"has {len(found)} pairs, and gold has {len(gold)}", source.name)
    records = []
    for number, (wanted, example) in enumerate(zip(gold, _in_order_of(gold, found), strict=True), start=1):
        pair, mine = wanted.pair, example.pair
        which = f"pair {number}" + (f" ({quote(pair.id)})" if pair.id is not None else "")
        if example.gold is None:
            raise CorpusError(f"{which} has no alignment", source.name)
        for side, theirs, ours in (("source", pair.source, mine.source), ("target", pair.target, mine.target)):
            if len(theirs) != len(ours):
                raise CorpusError(
                    f"the {side} of {which} has {len(ours)} tokens and {len(theirs)} in gold: "
                    f"{quote(ours)} and {quote(theirs)}",
                    source.name,
                )
        records.append(example)
    return records


def _in_order_of(gold: Sequence[Example], found: list[Example]) -> list[Example]:
    """Sort by id if both sides have the same ids, each once."""
    by_id = {example.pair.id: example for example in found}
    wanted = [example.pair.id for example in gold]
    if None in by_id or len(by_id) != len(found) or len(set(wanted)) != len(wanted) or by_id.keys() != set(wanted):
        return found
    return [by_id[each] for each in wanted]
