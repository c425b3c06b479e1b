"""The format jacana: a JSON array of {"id", "name", "source", "target", "sureAlign", "possibleAlign"}.

The links are written as strings of `i-j`, counted from 0, and the sentences of aligned pairs as strings. Objects
may also be as in jsonl: `jsonl.py` says what they may hold. The array is read object by object, so a corpus
need not fit into memory; an object that is wrong inside can be skipped, an error between objects cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import CorpusError, quote
from ..types import Example
from ..util.json_values import parse_object
from . import CannotHold, Format
from ._files import Source, alignment_of, each_written, join_tokens
from .jsonl import example_of, json_of, left_out, text_or_tokens
from .pharaoh import format_links

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
                item = example_of(parse_object(text), "id", "name")
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


def _write(examples: Iterable[Example]) -> Iterator[str | CannotHold]:
    before = "[\n"
    for piece in each_written(examples, _format):
        if isinstance(piece, CannotHold):
            yield piece
            continue
        yield before + piece
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _left_out(example: Example) -> list[str]:
    # A name would be read as the id that there is not.
    return left_out(example, *(("name",) if example.pair.id is None else ()))


def _format(example: Example, number: int) -> str:
    pair = example.pair
    item: dict[str, object] = {} if pair.id is None else {"id": pair.id, "name": pair.id}
    if example.gold is None:
        item["source"], item["target"] = (text_or_tokens(side, False) for side in (pair.source, pair.target))
    else:
        gold = alignment_of(example)
        item["source"], item["target"] = join_tokens(pair.source.tokens), join_tokens(pair.target.tokens)
        item["sureAlign"], item["possibleAlign"] = format_links(gold.sure), format_links(gold.possible)
    lines = json_of(item, example, _left_out(example), indent=4)
    return "\n".join("    " + line for line in lines.split("\n"))


FORMAT = Format(sniff=_sniff, read=_read, write=_write, suffixes=(".json",), left_out=_left_out)
