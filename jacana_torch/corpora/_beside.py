"""Corpora: links that come without their text. In: a file of links, and their pairs; out: both as one.

The pairs are a corpus file of any format (its own links are left aside), two files with a sentence a line, or,
for `align_to`, gold examples in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ..errors import CorpusError
from ..types import Alignment, Example, Sentence, SentencePair
from ._columns import columns
from ._formats import formats, guess, head_lines, module_of
from ._links import split_tokens
from ._source import Readable, Source, per_line, quote

TextSource = Readable | tuple[Readable, Readable]

_TAGGED = re.compile(r"[ \t]*<s\s+snum=\"?([0-9]{1,9})\"?\s*>(.*)</s>[ \t]*", re.IGNORECASE)

# A sentence or pair that may be bad, and the number that a file of links knows it by.
Numbered = tuple[int, SentencePair | CorpusError]


def read_beside(source: Source, format: str, text: TextSource) -> Iterator[Example | CorpusError]:
    """The links of `source` with the pairs of `text`."""
    module = module_of(format)
    pairs = _two_files(*text) if isinstance(text, tuple) else _pairs(text)
    if hasattr(module, "read_numbered"):
        yield from _by_number(source, module, pairs)
    elif hasattr(module, "read_links"):
        yield from _by_order(source, module, pairs)
    else:
        able = [each for each in formats() if _has_links(module_of(each))]
        raise CorpusError(f"{format} has its own text; links without are in {', '.join(able)}", source.name)


def _has_links(module: Any) -> bool:
    return hasattr(module, "read_links") or hasattr(module, "read_numbered")


def _pairs(text: Readable) -> Iterator[Numbered]:
    source = Source(text)
    try:
        module = module_of(guess(source.name, source.head))
        for number, item in enumerate(module.read(source), start=1):
            yield number, item if isinstance(item, CorpusError) else _settled(item.pair)
    finally:
        source.close()


def _settled(pair: SentencePair) -> SentencePair:
    """Without raw text: links fix the tokens, so nothing may tokenise it again."""
    if pair.source.text is None and pair.target.text is None:
        return pair
    source, target = (Sentence(side.tokens, side.layers) for side in (pair.source, pair.target))
    return SentencePair(source, target, pair.id)


def _two_files(source: Readable, target: Readable) -> Iterator[Numbered]:
    """Sentences of two files line by line, plain or as the shared tasks had them, `<s snum=0001> … </s>`."""
    files = Source(source), Source(target)
    try:
        both = zip_longest(per_line(files[0], _tagged), per_line(files[1], _tagged))
        for line, sides in enumerate(both, start=1):
            if None in sides:
                short, long = (files[0], files[1]) if sides[0] is None else (files[1], files[0])
                raise CorpusError(f"ends after {line - 1} lines, and {long.name} goes on", short.name, line)
            yield _join(line, sides, files)
    finally:
        for file in files:
            file.close()


def _tagged(line: str) -> tuple[str | None, Sentence]:
    match = _TAGGED.fullmatch(line)
    if match is None:
        return None, Sentence(split_tokens(line))
    return match[1], Sentence(split_tokens(match[2]))


def _join(line: int, sides: Sequence[Any], files: Sequence[Source]) -> Numbered:
    for side in sides:
        if isinstance(side, CorpusError):
            return line, side
    (source_tag, source), (target_tag, target) = sides
    tags = [int(tag) if tag is not None else None for tag in (source_tag, target_tag)]
    if tags[0] != tags[1]:
        wrong = f"the sentence is number {target_tag} here and {source_tag} in {files[0].name}"
        return line, CorpusError(wrong, files[1].name, line)
    return tags[0] if tags[0] is not None else line, SentencePair(source, target, source_tag)


def _by_order(source: Source, module: Any, pairs: Iterable[Numbered]) -> Iterator[Example | CorpusError]:
    for line, (links, numbered) in enumerate(zip_longest(module.read_links(source), pairs), start=1):
        if numbered is None:
            raise CorpusError(f"a line more than there are pairs of text, which are {line - 1}", source.name, line)
        if links is None:
            raise CorpusError(f"ends after {line - 1} lines of links, and there are more pairs", source.name, line)
        pair = numbered[1]
        if isinstance(pair, CorpusError) or isinstance(links, CorpusError):
            yield pair if isinstance(pair, CorpusError) else links
            continue
        try:
            yield Example(pair, links.over(len(pair.source), len(pair.target)))
        except ValueError as error:
            yield CorpusError(str(error), source.name, line)


def _by_number(source: Source, module: Any, pairs: Iterable[Numbered]) -> Iterator[Example | CorpusError]:
    sentences, errors = module.read_numbered(source)
    yield from errors
    for number, pair in pairs:
        entry = sentences.pop(number, None)
        if isinstance(pair, CorpusError):
            yield pair
            continue
        sizes = len(pair.source), len(pair.target)
        try:
            yield Example(pair, entry.over(*sizes, source.name) if entry is not None else Alignment(*sizes))
        except CorpusError as error:
            yield error
    for number, entry in sentences.items():
        line = entry.rows[0][0] if entry.rows else entry.error.line
        yield CorpusError(f"there is no sentence {number} in the text", source.name, line)


def align_to(gold: Sequence[Example], predicted: Readable, format: str | None = None) -> list[Alignment]:
    """Predictions of any format for the pairs of `gold`, in its order.

    Bare links (pharaoh, talp, naacl) get the sizes of gold's sentences. A file with text is matched by its ids
    where it has the same ones as gold in another order, else by order; sizes must agree. Anything amiss is a
    CorpusError.
    """
    source = Source(predicted)
    try:
        lines = head_lines(source.head)
        if format is None:
            format = guess(source.name, source.head) if lines else "pharaoh"  # blank lines: nothing is linked
        module = module_of(format)
        pairs: Iterable[Numbered] = ((number, each.pair) for number, each in enumerate(gold, start=1))
        if hasattr(module, "read_numbered"):
            return [_aligned(item) for item in _by_number(source, module, pairs)]
        if hasattr(module, "read_links") and (not lines or len(columns(lines[0])) == 1):
            return [_aligned(item) for item in _by_order(source, module, pairs)]
        return _with_text(gold, source, module)
    finally:
        source.close()


def _aligned(item: Example | CorpusError) -> Alignment:
    if isinstance(item, CorpusError):
        raise item
    assert item.gold is not None  # both readers above make one
    return item.gold


def _with_text(gold: Sequence[Example], source: Source, module: Any) -> list[Alignment]:
    found: list[Example] = []
    for item in module.read(source):
        if isinstance(item, CorpusError):
            raise item
        found.append(item)
    if len(found) != len(gold):
        raise CorpusError(f"has {len(found)} pairs, and gold has {len(gold)}", source.name)
    alignments = []
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
        alignments.append(example.gold)
    return alignments


def _in_order_of(gold: Sequence[Example], found: list[Example]) -> list[Example]:
    """By id where that is certain: both sides have the same ids, each once."""
    by_id = {example.pair.id: example for example in found}
    wanted = [example.pair.id for example in gold]
    if None in by_id or len(by_id) != len(found) or len(set(wanted)) != len(wanted) or by_id.keys() != set(wanted):
        return found
    return [by_id[each] for each in wanted]
