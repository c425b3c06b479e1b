"""Tables: files whose records have named columns, two of which hold the sentences of a pair.

`read(..., columns=("premise", "hypothesis"))` says which. Without, the header has to have names that corpora give
to them (`_header.py`). The other columns pass through: a `Row` in `Example.extra` keeps the record as it was, and
a table that is written has all of it and the columns of the alignment, in place of those of an earlier one:

    links              `0-0 1-2`, sure ones `i-j` and possible ones `ipj`, counted from 0
    probabilities      of these links, in their order
    premise_tokens     what the links count, for each side

Without --columns, a column `links` is read as gold: of the tokens, if their columns are there, else of what spaces
separate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import filterfalse
from typing import Any

from ..errors import CorpusError, quote
from ..types import Alignment, Example, Sentence, SentencePair
from ..util.json_values import encodable
from ._files import CannotHold, alignment_of, linked, split_tokens
from ._header import name_columns
from .pharaoh import format_links, parse_links

LINKS, PROBABILITIES, ID = "links", "probabilities", "id"
_MOST_NAMED = 12  # columns that a message names

Columns = tuple[str, str]


@dataclass(frozen=True)
class Added:
    """What a table gets besides the links; `empty` returns a record of the input if there was none to align."""

    tokens: bool = False
    probabilities: bool = False
    empty: Callable[[], Row | None] = lambda: None


@dataclass(frozen=True)
class Table:
    """The columns of a file: all names, those of the two sides, and those of an alignment that it may have."""

    names: tuple[str, ...]
    source: str
    target: str
    gold: bool = False  # whether its links are read

    @property
    def tokens(self) -> tuple[str, str]:
        return f"{self.source}_tokens", f"{self.target}_tokens"

    @property
    def aligned(self) -> tuple[str, ...]:
        """The columns of an alignment, which are written anew."""
        return (LINKS, *self.tokens, PROBABILITIES)

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The columns that pass through, the two sides among them."""
        return tuple(filterfalse({*self.aligned}.__contains__, self.names))


class Row(Mapping[str, Any]):
    """A record of a table. As a mapping, it has the columns that are neither read nor written anew."""

    def __init__(self, table: Table, values: Sequence[Any]) -> None:
        self.table, self._values = table, values

    def value(self, name: str) -> Any:
        """The value of any column, as it was read."""
        return self._values[self.table.places[name]]

    def plain(self, name: str) -> Any:
        """The value as JSON can hold it."""
        return self.value(name)

    def texts(self) -> dict[str, Any]:
        """The columns of the two sides."""
        return {name: self.plain(name) for name in (self.table.source, self.table.target)}

    def __getitem__(self, name: str) -> Any:
        if name not in self.table.places:
            raise KeyError(name)
        return self.plain(name)

    def __iter__(self) -> Iterator[str]:
        table = self.table
        return (name for name in table.kept if name not in (table.source, table.target, ID))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)})"


class BadRow(CorpusError):
    """A record that cannot be aligned; what takes its place keeps its other columns."""

    def __init__(self, message: str, file: str, line: int | None, row: Row) -> None:
        super().__init__(message, file, line)
        self.row = row

    def replaced_by(self, instead: Example) -> Example:
        return replace(instead, extra=self.row)


def table_of(names: Sequence[str], columns: Columns | None, file: str) -> Table:
    """Find the two sides among the names of a header; a CorpusError if they are not there."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise CorpusError(f"two columns are called {quote(name)}: rename one", file, 1)
    if columns is None:
        places = name_columns(names)
        if places is None:
            raise CorpusError(
                f"which columns hold the sentences? Name them (--columns NAME,NAME); {_listed(names)}",
                file, 1,
            )  # fmt: skip
        source, target = (names[place] for place in places)
        return Table(tuple(names), source, target, LINKS in names)
    for name in columns:
        if name not in names:
            raise CorpusError(f"there is no column {quote(name)}; {_listed(names)}", file, 1)
    return Table(tuple(names), *columns)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"there are {', '.join(quote(name, 30) for name in names[:_MOST_NAMED])}{more}"


def example_of(row: Row, file: str, number: int) -> Example | BadRow:
    """Make an example of a record, or say what is wrong with it."""
    table = row.table
    try:
        found = row.value(ID) if ID in table.names else None
        pair_id = None if found in (None, "") else encodable(str(found))
        if table.gold:
            source, target = (
                _final(row, tokens if tokens in table.names else name)
                for name, tokens in zip((table.source, table.target), table.tokens, strict=True)
            )
            pair = SentencePair(source, target, pair_id)
            return Example(pair, _gold(row, pair), row)
        source, target = (_raw(row.value(name), name) for name in (table.source, table.target))
        return Example(SentencePair(source, target, pair_id), None, row)
    except ValueError as error:
        return BadRow(str(error), file, number, row)


def _gold(row: Row, pair: SentencePair) -> Alignment:
    table, found = row.table, row.value(LINKS)
    try:
        gold = linked(pair, parse_links(encodable(_text(found, LINKS))))
    except ValueError as error:
        hint = "" if table.tokens[0] in table.names else " (align with --tokens to have what links count)"
        raise ValueError(f"{LINKS}: {error}{hint}") from None
    if PROBABILITIES not in table.names:
        return gold
    given = row.value(PROBABILITIES)
    listed = given.split() if isinstance(given, str) else list(given or ())
    if not listed:
        return gold
    if len(listed) != len(gold.all_links):
        raise ValueError(f"there are {len(listed)} {PROBABILITIES} of {len(gold.all_links)} links")
    confidence = dict(zip(gold.all_links, map(_number, listed), strict=True))
    return Alignment(gold.n_source, gold.n_target, gold.sure, gold.possible, confidence)


def _number(value: Any) -> float:
    try:
        number = float(value)
        if math.isfinite(number):
            return number
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{PROBABILITIES}: {quote(value)} is not a number")


def _final(row: Row, name: str) -> Sentence:
    found = row.value(name)
    if isinstance(found, (list, tuple)):
        return _raw(found, name)
    return Sentence(split_tokens(encodable(_text(found, name))))


def _raw(found: Any, name: str) -> Sentence:
    """A sentence whose text is yet to be tokenised, or whose tokens are listed."""
    if isinstance(found, (list, tuple)):
        if not all(isinstance(token, str) and token for token in found):
            raise ValueError(f"{quote(name)} should be a text or a list of words, and has {quote(found)}")
        encodable("".join(found))
        return Sentence(tuple(found))
    text = encodable(_text(found, name))
    return Sentence(split_tokens(text), text=text)


def _text(found: Any, name: str) -> str:
    if isinstance(found, str):
        return found
    if found is None:
        raise ValueError(f"{quote(name)} has no value (null)")
    raise ValueError(f"{quote(name)} should be a text, and is {quote(found)}")


class Layout:
    """The columns of a table that is written, which the first example decides."""

    def __init__(self, added: Added, row: Row | None, example: Example | None = None) -> None:
        """Without a row, there are those of the example itself: its id, its sides, its other keys."""
        self.tokens = added.tokens
        self.probabilities = added.probabilities or (example is not None and _has_probabilities(example))
        self.of_rows = row is not None
        self.has_id = row is None and example is not None and example.pair.id is not None
        extra = () if row is not None or example is None or not example.extra else example.extra
        self.links = example is None or example.gold is not None
        self.table = row.table if row is not None else Table(("source", "target"), "source", "target")
        own = {*self.table.aligned, "source", "target", ID}
        self.others = tuple(key for key in extra if key not in own)
        self.kept = self.table.kept if row is not None else (*((ID,) if self.has_id else ()), "source", "target")

    @property
    def names(self) -> tuple[str, ...]:
        """The header."""
        tokens = self.table.tokens if self.tokens else ()
        probabilities = (PROBABILITIES,) if self.probabilities else ()
        return (*self.kept, *self.others, *tokens, *((LINKS, *probabilities) if self.links else ()))

    def row_of(self, example: Example) -> Row | None:
        """The record that the example was read from; a ValueError if it has other columns."""
        row = example.extra if isinstance(example.extra, Row) else None
        if self.of_rows and row is not None and row.table.kept != self.kept:
            raise ValueError(f"it has other columns than the first one ({', '.join(row.table.kept)[:200]})")
        return row if self.of_rows else None

    def texts(self, example: Example) -> dict[str, str]:
        """The columns of an example that is no record of a table, but for its other keys."""
        pair = example.pair
        sides = {
            self.table.source: text_of(pair.source, example.gold),
            self.table.target: text_of(pair.target, example.gold),
        }
        return {ID: pair.id or "", **sides}


def _has_probabilities(example: Example) -> bool:
    links = example.gold.all_links if example.gold is not None else []
    return bool(links) and all(map(example.gold.confidence.__contains__, links))  # type: ignore[union-attr]


def text_of(sentence: Sentence, gold: Alignment | None) -> str:
    """The text if it is yet to be tokenised, else the tokens with spaces between them."""
    if gold is None and sentence.text is not None and split_tokens(sentence.text) == sentence.tokens:
        return sentence.text
    return joined(sentence.tokens)


def joined(tokens: Sequence[str]) -> str:
    """Tokens with spaces between them; CannotHold if a reader would not split them in the same way."""
    line = " ".join(tokens)
    if split_tokens(line) != tuple(tokens):
        for token in tokens:
            if split_tokens(token) != (token,):
                raise CannotHold(f"a table cannot hold the token {quote(token)}, as spaces separate tokens")
    return line


def links_of(example: Example) -> tuple[str, list[float] | None]:
    """The links of an example and their probabilities, if all have one."""
    gold = alignment_of(example)
    found = [gold.confidence[link] for link in gold.all_links if link in gold.confidence]
    return format_links(gold.sure, gold.possible), found if len(found) == len(gold.all_links) else None
