"""Read files that annotate a corpus: `.parse.jsonl`, `.mst` and CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError, CorpusError, quote
from ..util.json_values import encodable, identifier, parse_object, shown

Values = tuple[Any, ...]
_SIDES = ("source", "target")
_BLANKS = " \t\r"  # any other white space may be a token
_HEAD = re.compile(r"[0-9]{1,9}")
_ENTITY = re.compile(r"(?P<label>.+)-(?P<last>[BIES])\Z|(?P<first>[BIES])-(?P<rest>.+)\Z")  # PERSON-B or B-PERSON


@dataclass(frozen=True)
class Record:
    """The layers of one sentence in a file. `tokens` is None in formats without tokens."""

    file: str
    line: int
    layers: dict[str, Values] = field(default_factory=dict)
    tokens: tuple[str, ...] | None = None
    side: str | None = None
    id: str | None = None

    def error(self, message: str) -> CorpusError:
        return CorpusError(message, self.file, self.line)


def read_parse_jsonl(path: Path) -> list[Record]:
    """Read one JSON object per pair: source_pos, source_heads (1-based), source_deprels, source_lemma_auto, ..."""
    records = []
    for number, line in _lines(path):
        if not line.strip(_BLANKS):
            continue
        try:
            row = parse_object(line)
            name = identifier(row, "id")
        except ValueError as error:
            raise CorpusError(str(error), str(path), number) from None
        for side in _SIDES:
            record = Record(str(path), number, side=side, id=name)
            record.layers.update(_json_layers(record, row))
            records.append(record)
    return records


def _json_layers(record: Record, row: dict[str, Any]) -> dict[str, Values]:
    values: dict[str, list[Any]] = {}
    for key in ("pos", "heads", "deprels", "lemma_auto", "ner"):
        found = row.get(f"{record.side}_{key}")
        if found is None:
            continue
        kind = int if key == "heads" else str
        if not isinstance(found, list) or not all(type(value) is kind for value in found):
            raise record.error(f"{record.side}_{key} must be a list of {kind.__name__}, not {shown(found)}")
        if kind is str:
            try:
                encodable("".join(found))
            except ValueError as error:
                raise record.error(f"{record.side}_{key}: {error}") from None
        values[key] = found
    if not values:
        raise record.error(f"there is no {record.side}_pos or any other layer of the {record.side}")
    lengths = {key: len(found) for key, found in values.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{record.side}_{key} {length}" for key, length in lengths.items())
        raise record.error(f"the layers of the {record.side} differ in length: {listed}")
    layers = {name: tuple(values[key]) for name, key in (("pos", "pos"), ("deprel", "deprels")) if key in values}
    if "heads" in values:
        layers["head"] = _zero_based(record, values["heads"])
    if "lemma_auto" in values:
        layers["lemma"] = tuple(value.lower() for value in values["lemma_auto"])
    if "ner" in values:
        layers["ner"] = entities(values["ner"], record)
    return layers


def read_mst(path: Path) -> list[Record]:
    """Read blocks of tab-separated lines, source and target in turn: tokens, tags, relations, heads, a fifth."""
    records = []
    for block, number, lines in _blocks(path):
        if not 4 <= len(lines) <= 5:
            raise CorpusError(f"a block has four or five lines, not {len(lines)}", str(path), number)
        rows = [line.split("\t") for line in lines[:4]]
        record = Record(str(path), number, tokens=tuple(rows[0]), side=_SIDES[block % 2])
        for offset, (name, row) in enumerate(zip(("tags", "relations", "heads"), rows[1:], strict=True), start=1):
            if len(row) != len(rows[0]):
                raise CorpusError(f"{len(row)} {name} for {len(rows[0])} tokens", str(path), number + offset)
        heads = _zero_based(Record(str(path), number + 3), [_integer(path, number + 3, head) for head in rows[3]])
        record.layers.update(pos=tuple(rows[1]), deprel=tuple(rows[2]), head=heads)
        records.append(record)
    return records


def read_conllu(path: Path) -> list[Record]:
    """Read CoNLL-U: XPOS, LEMMA, HEAD, DEPREL, and `NER=` of MISC. A column of only `_` gives no layer."""
    records: list[Record] = []
    for _, number, lines in _blocks(path):
        rows: list[tuple[int, list[str]]] = []
        for offset, line in enumerate(lines):
            if line.startswith("#"):
                continue
            columns = line.split("\t")
            if len(columns) != 10:
                message = f"a line of a token has ten tab-separated columns, not {len(columns)}"
                raise CorpusError(message, str(path), number + offset)
            if re.fullmatch(r"\d+[-.]\d+", columns[0]):
                continue  # a multiword token or an empty node
            if columns[0] != str(len(rows) + 1):
                message = f"token number {len(rows) + 1} is expected, not {quote(columns[0])}"
                raise CorpusError(message, str(path), number + offset)
            rows.append((number + offset, columns))
        if rows:
            tokens = tuple(columns[1] for _, columns in rows)
            record = Record(str(path), number, tokens=tokens, side=_SIDES[len(records) % 2])
            record.layers.update(_conllu_layers(path, record, rows))
            records.append(record)
    return records


def _conllu_layers(path: Path, record: Record, rows: Sequence[tuple[int, list[str]]]) -> dict[str, Values]:
    columns = list(zip(*(columns for _, columns in rows), strict=True))
    numbers = {"lemma": 2, "pos": 4, "head": 6, "deprel": 7}
    layers: dict[str, Values] = {name: columns[k] for name, k in numbers.items() if set(columns[k]) != {"_"}}
    if "lemma" in layers:
        pairs = zip(columns[2], columns[1], strict=True)
        layers["lemma"] = tuple((form if lemma == "_" else lemma).lower() for lemma, form in pairs)
    if "head" in layers:
        layers["head"] = _zero_based(record, [_integer(path, line, row[6]) for line, row in rows])
    marks = [re.search(r"(?:^|\|)(?:NER|ner)=([^|]+)", misc) for misc in columns[9]]
    if any(marks):
        layers["ner"] = entities([mark[1] if mark else "O" for mark in marks], record)
    return layers


def entities(values: Sequence[str], record: Record) -> tuple[str, ...]:
    """Convert entity tags such as `PERSON-B` or `S-PERSON` (BIO or BIOES) to `B-PERSON`, `I-PERSON` and `O`."""
    tags = []
    for value in values:
        found = _ENTITY.match(value)
        if value != "O" and not found:
            raise record.error(f"{quote(value)} is not an entity tag: expected O, PERSON-B or B-PERSON")
        if found:
            letter, label = found["last"] or found["first"], found["label"] or found["rest"]
            value = f"{'B' if letter in 'BS' else 'I'}-{label}"
        tags.append(value)
    return tuple(tags)


def _zero_based(record: Record, heads: Sequence[int]) -> tuple[int, ...]:
    """Convert heads counted from 1, with 0 for a root, to heads counted from 0, with -1 for a root."""
    for token, head in enumerate(heads, start=1):
        if not 0 <= head <= len(heads) or head == token:
            raise record.error(f"token {token} of {len(heads)} cannot have the head {str(head)[:20]}")
    return tuple(head - 1 for head in heads)


def _integer(path: Path, line: int, value: str) -> int:
    if not _HEAD.fullmatch(value):
        raise CorpusError(f"a head is a number, not {quote(value, 40)}", str(path), line)
    return int(value)


def _blocks(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (number of the block, number of its first line, its lines); empty lines separate blocks."""
    block, first = 0, 0
    lines: list[str] = []
    for number, line in [*_lines(path), (0, "")]:
        if line.strip(_BLANKS):
            first = first if lines else number
            lines.append(line)
        elif lines:
            yield block, first, lines
            block, lines = block + 1, []


def _lines(path: Path) -> list[tuple[int, str]]:
    """Return the numbered lines of a file. Only line feeds separate them: a token may hold any other separator."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CorpusError("this is not UTF-8", str(path), line) from None
    return [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), start=1)]


READERS: dict[str, Callable[[Path], list[Record]]] = {
    "parse.jsonl": read_parse_jsonl,
    "mst": read_mst,
    "conllu": read_conllu,
}
_SUFFIXES = {".jsonl": "parse.jsonl", ".mst": "mst", ".conllu": "conllu", ".conll": "conllu"}


def reader(path: Path, format: str | None) -> Callable[[Path], list[Record]]:
    """Return the function that reads a format; by default, the suffix of the file decides."""
    name = format or _SUFFIXES.get(path.suffix.lower(), "")
    if name not in READERS:
        what = f"unknown format {name!r}" if name else f"the suffix of {path} is not that of a known format"
        raise ConfigError(f"{what}; annotation formats are {', '.join(READERS)}")
    return READERS[name]
