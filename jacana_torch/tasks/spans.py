"""Files of labelled spans, read and written: JSONL as Prodigy and doccano have it, CoNLL's BIO, spaCy's DocBin.

| format | a record |
|---|---|
| `jsonl` | `{"text", "spans": [{"start", "end", "label"}]}` (Prodigy); `{"text", "label": [[start, end, label]]}` or `"entities": [{"start_offset", "end_offset", "label"}]` (doccano) |
| `bio` | one token a line, its tag (`O`, `B-PER`, `I-PER`) in the last column, a blank line after each sentence |
| `spacy` | the entities of each `Doc` of a `DocBin` |

A JSONL record may have a `target`, the other sentence. What else it holds stays as it is.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..annotate.tokens import tokenize
from ..errors import ConfigError, CorpusError, MissingResource, quote
from ..projection import Projected
from ..types import Sentence
from ..util.json_values import encodable, parse_object, shown, writable
from .lines import lines_of

Span = tuple[int, int, str]  # characters
FORMATS = ("jsonl", "bio", "spacy")
_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {".jsonl": "jsonl", ".ndjson": "jsonl", ".bio": "bio", ".conll": "bio", ".iob": "bio", ".tsv": "bio",
     ".spacy": "spacy"}
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A sentence and its spans, in characters of its text; `target` is the other sentence if the record has it."""

    sentence: Sentence
    spans: Sequence[Span]
    target: Sentence | None = None
    layout: str = "spans"  # the key of the spans
    extra: Mapping[str, Any] = field(default_factory=dict)


def format_of(path: str) -> str:
    """Return the format that the name of a file says."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ConfigError(f"{path}: its name does not say whether it is {', '.join(FORMATS)}: name the format")
    return _SUFFIXES[suffix]


def read(path: str, format: str | None = None) -> list[Record]:
    """Read all records of a file."""
    return list(_READERS[format or format_of(path)](path))


# -- JSONL


def _read_jsonl(path: str) -> Iterator[Record]:
    for number, line in lines_of(path):
        if line.strip(" \t\r"):
            try:
                yield _record(parse_object(line))
            except ValueError as error:
                raise CorpusError(f"is no record of text and spans: {error}", path, number) from None


def _record(item: dict[str, Any]) -> Record:
    for key, value in item.items():
        encodable(key)
        writable(value, key)
    name = next((key for key in ("text", "source", "data") if isinstance(item.get(key), str)), None)
    if name is None:
        raise ValueError("there is no text")
    text, target = item[name], item.get("target")
    if target is not None and not isinstance(target, str):
        raise ValueError(f"'target' should be a text and is {shown(target)}")
    layout = next(
        (key for key in ("spans", "entities", "label", "labels") if isinstance(item.get(key), list)), "spans"
    )
    given = item.get(layout, [])
    if not isinstance(given, list):
        raise ValueError(f"{layout!r} should be a list and is {shown(given)}")
    spans = [_span(one, len(text)) for one in given]
    extra = {key: value for key, value in item.items() if key not in (name, layout, "target", "tokens")}
    return Record(_sentence(text), spans, None if target is None else _sentence(target), layout, extra)


def _span(given: Any, length: int) -> Span:
    if isinstance(given, dict):
        start, end = (given.get(key, given.get(f"{key}_offset")) for key in ("start", "end"))
        label = given.get("label")
    elif isinstance(given, list) and len(given) == 3:
        start, end, label = given
    else:
        raise ValueError(f"a span has a start, an end and a label, and this is {shown(given)}")
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= length:
        raise ValueError(f"span {quote(f'{start}-{end}')} is not within the text of {length} characters")
    if not isinstance(label, (str, int, type(None))) or isinstance(label, bool):
        raise ValueError(f"a label should be a text and is {shown(label)}")
    return start, end, "" if label is None else str(label)


def _sentence(text: str) -> Sentence:
    return Sentence(tokenize(text), text=text)


def _write_jsonl(records: Iterable[tuple[Record, Sentence, Sequence[Projected]]]) -> Iterator[str]:
    for record, target, found in records:
        spans: list[Any] = []
        for one in found:
            if one.span is None:
                continue
            start, end = one.span
            if record.layout in ("label", "labels"):
                spans.append([start, end, one.label])
                continue
            keys = ("start_offset", "end_offset") if record.layout == "entities" else ("start", "end")
            item = {keys[0]: start, keys[1]: end, "label": one.label, "confidence": round(one.confidence, 4)}
            spans.append(item | ({"parts": [list(part) for part in one.parts]} if one.discontinuous else {}))
        text = target.text if target.text is not None else str(target)
        line = {**record.extra, "text": text, record.layout: spans, "source": record.sentence.text}
        lost = [[*one.origin, one.label] for one in found if one.span is None]
        yield json.dumps(line | ({"not_projected": lost} if lost else {}), ensure_ascii=False) + "\n"


# -- BIO


def _read_bio(path: str) -> Iterator[Record]:
    rows: list[tuple[str, str]] = []
    for number, line in chain(lines_of(path), [(0, "")]):
        fields = line.split()
        if fields and not line.startswith(("-DOCSTART-", "# ")):
            if len(fields) < 2:
                raise CorpusError(f"expected a token and its tag, not {quote(line.strip())}", path, number)
            if fields[-1] != "O" and fields[-1][:2] not in ("B-", "I-", "E-", "S-", "L-", "U-"):
                raise CorpusError(f"{quote(fields[-1])} is no tag: O, B-X, I-X", path, number)
            rows.append((fields[0], fields[-1]))
        elif rows:
            yield _of_tags(rows)
            rows = []


def _of_tags(rows: Sequence[tuple[str, str]]) -> Record:
    tokens = [token for token, _ in rows]
    ends = list(accumulate(len(token) + 1 for token in tokens))
    places = [(end - 1 - len(token), end - 1) for end, token in zip(ends, tokens, strict=True)]
    sentence = Sentence(tokens, text=" ".join(tokens), offsets=places)
    spans: list[Span] = []
    before = "O"
    for (start, end), (_, tag) in zip(places, rows, strict=True):
        kind, _, label = tag.partition("-")
        if kind in ("I", "E", "L") and before == label and spans:
            spans[-1] = spans[-1][0], end, label
        elif kind != "O":
            spans.append((start, end, label))
        before = label if kind not in ("O", "E", "L", "S", "U") else "O"
    return Record(sentence, spans)


def _write_bio(records: Iterable[tuple[Record, Sentence, Sequence[Projected]]]) -> Iterator[str]:
    for _, target, found in records:
        tags = ["O"] * len(target)
        for one in found:
            if len(one.label.split()) > 1 or one.label.strip() != one.label:
                raise ConfigError(
                    f"the label {quote(one.label)} has white space, which BIO cannot hold: --to jsonl"
                )
        for one in sorted(found, key=lambda one: -one.confidence):  # of overlapping ones, the surest
            for start, end in one.parts:
                inside = [k for k, (a, b) in enumerate(target.offsets or ()) if a < end and b > start]
                if all(tags[k] == "O" for k in inside):
                    for place, k in enumerate(inside):
                        tags[k] = f"{'I' if place else 'B'}-{one.label or 'SPAN'}"
        yield "".join(f"{token}\t{tag}\n" for token, tag in zip(target.tokens, tags, strict=True)) + "\n"


# -- spaCy


def _read_spacy(path: str) -> Iterator[Record]:
    DocBin, blank = _spacy()
    try:
        docs = DocBin().from_disk(path).get_docs(blank("en").vocab)
        for doc in docs:
            tokens, places = [], []
            for token in doc:
                if not token.is_space:
                    tokens.append(token.text)
                    places.append((token.idx, token.idx + len(token)))
            spans = [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]
            yield Record(Sentence(tokens, text=doc.text, offsets=places), spans)
    except OSError:
        raise
    except Exception as error:  # spaCy checks nothing: what damage leads to is any error
        raise CorpusError(f"is no DocBin that can be read ({type(error).__name__}: {error})", path) from None


def docs_of(records: Iterable[tuple[Record, Sentence, Sequence[Projected]]]) -> Iterator[Any]:
    """spaCy's documents of the targets: `doc.ents` without overlaps, `doc.spans["projected"]` with all spans."""
    _, blank = _spacy()
    vocab = blank("en").vocab
    from spacy.tokens import Doc
    from spacy.util import filter_spans

    for _, target, found in records:
        text = target.text if target.text is not None else str(target)
        places = target.offsets or ()
        words, spaces, at = [], [], 0
        for start, end in places:
            if start > at:  # white space that is more than one blank is a token
                words.append(text[at:start])
                spaces.append(False)
            blank_after = text[end : end + 1] == " "
            words.append(text[start:end])
            spaces.append(blank_after)
            at = end + blank_after
        if at < len(text):
            words.append(text[at:])
            spaces.append(False)
        doc = Doc(vocab, words=words, spaces=spaces)
        every = []
        for one in found:
            for start, end in one.parts:
                if (span := doc.char_span(start, end, one.label, alignment_mode="expand")) is not None:
                    every.append(span)
        doc.spans["projected"] = every
        doc.ents = filter_spans(every)
        yield doc


def _spacy() -> tuple[Any, Any]:
    try:
        from spacy import blank
        from spacy.tokens import DocBin
    except ImportError as error:
        raise MissingResource(f"DocBin needs spaCy ({error}): pip install 'jacana_torch[spacy]'") from None
    return DocBin, blank


def chunks(
    records: Iterable[tuple[Record, Sentence, Sequence[Projected]]], format: str
) -> Iterator[str] | Iterator[bytes]:
    """Return the content of a file of this format."""
    if format == "spacy":
        DocBin, _ = _spacy()
        return iter([DocBin(docs=list(docs_of(records)), store_user_data=True).to_bytes()])
    return _write_bio(records) if format == "bio" else _write_jsonl(records)


_READERS: Mapping[str, Callable[[str], Iterator[Record]]] = MappingProxyType(
    {"jsonl": _read_jsonl, "bio": _read_bio, "spacy": _read_spacy}
)
