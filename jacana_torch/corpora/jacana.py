"""The format jacana: a JSON array of {"id", "name", "source", "target", "sureAlign", "possibleAlign"}.

The sentences are strings, the links strings of `i-j`, counted from 0. The array is read object by object, so a
corpus need not fit into memory; an object that is wrong inside can be skipped, an error between objects cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import CorpusError
from ..types import Example, Sentence, SentencePair
from . import Format
from ._files import Source, alignment_of, format_links, join_tokens, linked, parse_links, quote, split_tokens
from .jsonl import identifier, parse_object, string

_BLANK = re.compile(r"[ \t\r\n]*")
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}"]', re.DOTALL)
_LONGEST = 1 << 26


def _sniff(lines: Sequence[str]) -> bool:
    start = "".join(lines[:3]).lstrip(" \t")
    rest = start[1:].lstrip(" \t")
    return start.startswith("[") and (rest in ("", "]") or rest.startswith("{"))


class _Window:
    """The part of the file that is in memory; `at` is the position in it, `line` the number of its line."""

    def __init__(self, source: Source) -> None:
        self._name, self._chunks = source.name, source.chunks()
        self.text, self.at, self.line = "", 0, 1

    def error(self, message: str) -> CorpusError:
        return CorpusError(message, self._name, self.line)

    def advance(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def more(self) -> bool:
        """Read at least as much as is unread, so that repeated scans stay cheap; false at the end."""
        parts, size = [self.text[self.at :]], 0
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size > len(parts[0]):
                break
        self.text, self.at = "".join(parts), 0
        return size > 0

    def peek(self) -> str:
        """Return the next character that is not blank, "" at the end of the file."""
        while True:
            self.advance(_BLANK.match(self.text, self.at).end())  # type: ignore[union-attr]
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def take_object(self) -> str:
        """Return the text from { to its }; braces inside strings do not count."""
        while (end := self._object_end()) is None:
            if len(self.text) - self.at > _LONGEST or not self.more():
                raise self.error(f"the object that begins here has no end: {quote(self.text[self.at :])}")
        taken = self.text[self.at : end]
        self.advance(end)
        return taken

    def _object_end(self) -> int | None:
        depth = 0
        for match in _PIECE.finditer(self.text, self.at):
            piece = match[0]
            if piece == "{":
                depth += 1
            elif piece == "}":
                depth -= 1
                if depth == 0:
                    return match.end()
            elif piece == '"':
                return None
        return None


def _read(source: Source) -> Iterator[Example | CorpusError]:
    window = _Window(source)
    _expect(window, "[", "a JSON array begins with [ (an object a line is --from jsonl)")
    if window.peek() != "]":
        while True:
            if window.peek() != "{":
                raise window.error(f"expected an object {{…}} and not {_here(window)}")
            source.line = line = window.line
            text = window.take_object()
            item: Example | CorpusError
            try:
                item = _parse(text)
            except ValueError as error:
                item = CorpusError(str(error), source.name, line)
            yield item
            if window.peek() != ",":
                break
            window.advance(window.at + 1)
    _expect(window, "]", "after an object comes , or ]")
    if window.peek():
        raise window.error(f"the array has ended, and there is more: {_here(window)}")


def _expect(window: _Window, character: str, rule: str) -> None:
    if window.peek() != character:
        raise window.error(f"{rule}, and here is {_here(window)}")
    window.advance(window.at + 1)


def _here(window: _Window) -> str:
    return quote(window.text[window.at : window.at + 100]) if window.peek() else "the end of the file"


def _parse(text: str) -> Example:
    item = parse_object(text)
    source, target = string(item, "source"), string(item, "target")
    pair = SentencePair(
        Sentence(split_tokens(source)), Sentence(split_tokens(target)), identifier(item, "id", "name")
    )
    if item.get("sureAlign") is None and item.get("possibleAlign") is None:
        return Example(pair)
    sure, maybe = (
        parse_links(string(item, name), possible=False)[0] if item.get(name) is not None else []
        for name in ("sureAlign", "possibleAlign")
    )
    return Example(pair, linked(pair, (sure, maybe)))


def _write(examples: Iterable[Example]) -> Iterator[str]:
    before = "[\n"
    for example in examples:
        yield before + _format(example)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _format(example: Example) -> str:
    pair = example.pair
    item = {} if pair.id is None else {"id": pair.id, "name": pair.id}
    item["source"], item["target"] = join_tokens(pair.source.tokens), join_tokens(pair.target.tokens)
    if example.gold is not None:
        gold = alignment_of(example)
        item["sureAlign"], item["possibleAlign"] = format_links(gold.sure), format_links(gold.possible)
    lines = json.dumps(item, ensure_ascii=False, indent=4)
    return "\n".join("    " + line for line in lines.split("\n"))


FORMAT = Format(sniff=_sniff, read=_read, write=_write, suffixes=(".json",))
