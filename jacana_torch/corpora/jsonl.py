"""The format jsonl: one JSON object per line, {"id", "source", "target", "sure", "possible"}; it holds everything.

A side is a string, to be tokenised, or a list of tokens. Links count tokens: in a record with links, the tokens of
a string are what its spaces separate. Links are `sure` and `possible`, lists of [i, j], or `sureAlign` and
`possibleAlign`, strings of `i-j`, all counted from 0; without any, the pair is unaligned. An aligned record may
have "confidence" {"i-j": p} and "score". Lists "source_pos", "target_lemma", ... are annotation layers, with one
value per token; "source_offsets" and "target_offsets" are [[start, end], ...], the places of the tokens in their
raw text. Other keys are kept in `Example.extra`. Blank lines are ignored.

The objects of a JSON array (jacana.py) are read in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import CorpusError, quote
from ..offsets import checked_offsets, located
from ..types import PROVIDERS, Alignment, Example, Link, Sentence, SentencePair
from ..util.json_values import SCALARS, encodable, field, identifier, number, parse_object, shown, writable
from . import CannotHold, Format, Source
from ._files import alignment_of, each_written, per_line, split_tokens
from .pharaoh import parse_links

_SPELT = {"sure": "sureAlign", "possible": "possibleAlign"}
_OF_LINKS = (*_SPELT, *_SPELT.values())
_OF_ALIGNMENTS = ("confidence", "score")
_KNOWN = frozenset(("id", "source", "target", *_OF_LINKS))
_FARTHEST = 10**9  # position of a token


def _sniff(lines: Sequence[str]) -> bool:
    start = lines[0].lstrip(" \t") if lines else ""
    inside = start.lstrip(" \t{")
    return start.startswith("{") and inside[:1] in ('"', "}") and not inside.startswith('"jacana_annotation"')


def _parse(line: str) -> Example:
    return example_of(parse_object(line), "id")


def _read_keys(source: Source, keys: tuple[str, str]) -> Iterator[Example | CorpusError | None]:
    """Read records whose sides have other keys, which stay in the record."""

    def parse(line: str) -> Example:
        item = parse_object(line)
        sides = {"source": field(item, keys[0]), "target": field(item, keys[1])}
        example = example_of({**item, **sides}, "id")
        clash = {key: item[key] for key in sides if key in item and key not in keys}  # reported when left out
        return replace(example, extra={**(example.extra or {}), **clash} or None)

    return per_line(source, parse, skip_blank=True)


def example_of(item: Mapping[str, Any], *ids: str) -> Example:
    """Make an example of a record; `ids` are the keys that may hold its id."""
    aligned = False
    for name in _OF_LINKS:
        aligned = aligned or item.get(name) is not None
    extra: dict[str, Any] = {}  # keys that are not read; `_layers` takes out those of layers
    for key, value in item.items():
        if key in _KNOWN or (aligned and key in _OF_ALIGNMENTS):
            continue
        if key == "links" and not aligned:
            raise ValueError(
                "'links' does not say whether they are sure: name the key 'sure' or 'possible', a list of [i, j] "
                "counted from 0"
            )
        extra[encodable(key)] = writable(value, key)
    source, target = _sentence(item, "source", aligned, extra), _sentence(item, "target", aligned, extra)
    pair = SentencePair(source, target, identifier(item, *ids))
    for name in ids[1:]:
        if extra.get(name) in ("", None, pair.id):
            extra.pop(name, None)
    if not aligned:
        return Example(pair, None, extra or None)
    sure, possible = frozenset(_links(item, "sure")), frozenset(_links(item, "possible"))
    gold = Alignment(len(source), len(target), sure, possible)
    if "confidence" in item or "score" in item:
        score = item.get("score")
        confidence = _confidence(item.get("confidence") or {}, gold)
        score = number(score, "'score'") if score is not None else None
        gold = Alignment(gold.n_source, gold.n_target, gold.sure, gold.possible, confidence, score)
    return Example(pair, gold, extra or None)


def _sentence(item: Mapping[str, Any], side: str, aligned: bool, extra: dict[str, Any]) -> Sentence:
    """Return one side of a record; its layers and offsets are taken out of the other keys."""
    value = field(item, side)
    if isinstance(value, str):
        # Links belong to tokens: if there are links the split is final, and the text has no more use.
        tokens, text = split_tokens(encodable(value)), None if aligned else value
        if not aligned:
            return Sentence(tokens, _layers(extra, side, len(tokens)), text)
        if f"{side}_offsets" not in extra:
            return Sentence(tokens, _layers(extra, side, len(tokens)), None, located(tokens, value))
    elif isinstance(value, list):
        if not set(map(type, value)) <= {str}:
            raise ValueError(f"{side!r} should be a list of tokens, which are strings, and is {shown(value)}")
        encodable("".join(value))
        if "" in value:
            raise ValueError(f"token {value.index('')} of {side!r} is empty")
        tokens, text = tuple(value), None
    else:
        raise ValueError(f"{side!r} should be a string or a list of tokens and is {shown(value)}")
    layers = _layers(extra, side, len(tokens))
    offsets, given = None, extra.get(f"{side}_offsets")
    if isinstance(given, list):
        try:
            offsets = checked_offsets(given, len(tokens))
        except ValueError as error:
            raise ValueError(f"'{side}_offsets': {error}") from None
        del extra[f"{side}_offsets"]
    return Sentence(tokens, layers, text, offsets)


def _layers(extra: dict[str, Any], side: str, length: int) -> dict[str, tuple[Any, ...]]:
    """Take the layers of a side out of the other keys: lists of one value per token."""
    layers: dict[str, tuple[Any, ...]] = {}
    for key, values in [*extra.items()]:
        before, _, name = key.partition("_")
        if before != side or not isinstance(values, list) or name == "offsets":
            continue
        if name not in PROVIDERS:
            good = len(values) == length and all(isinstance(value, SCALARS) for value in values)
            if not good:
                continue  # a list of something else
        elif len(values) != length:
            raise ValueError(f"{key!r} has {len(values)} values for {length} tokens")
        elif name == "head":
            good = all(type(head) is int and -1 <= head < length for head in values)
        else:
            good = all(isinstance(value, str) for value in values)
        if not good:
            raise ValueError(
                f"{key!r} should have a value a token (a head: 0-based, -1 for the root): {quote(values)}"
            )
        layers[name] = tuple(values)
        del extra[key]
    return layers


def _links(item: Mapping[str, Any], kind: str) -> list[Link]:
    listed, spelt = item.get(kind), item.get(_SPELT[kind])
    if spelt is not None:
        if listed is not None:
            raise ValueError(f"there are {kind!r} and {_SPELT[kind]!r}: leave one out")
        if not isinstance(spelt, str):
            raise ValueError(f"{_SPELT[kind]!r} should be a string and is {shown(spelt)}")
        return parse_links(encodable(spelt), possible=False)[0]
    if listed is None:
        return []
    try:
        links = []
        for i, j in listed:
            if type(i) is int and type(j) is int and max(i, j) < _FARTHEST:
                links.append((i, j))
        if isinstance(listed, list) and len(links) == len(listed):
            return links
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{kind!r} should be a list of [i, j] and is {shown(listed)}")


def _confidence(found: Any, gold: Alignment) -> dict[Link, float]:
    if not isinstance(found, dict):
        raise ValueError(f"'confidence' should be {{\"i-j\": number}} and is {shown(found)}")
    confidence = {}
    for name, value in found.items():
        sure, _ = parse_links(name, possible=False)
        if len(sure) != 1 or sure[0][0] >= gold.n_source or sure[0][1] >= gold.n_target:
            raise ValueError(f"'confidence' of {quote(name)}, which is not a link within the sentences")
        confidence[sure[0]] = number(value, f"the confidence of {name}")
    return confidence


def line_of(example: Example, number: int = 1) -> str:
    """Return the line of an example; CannotHold if there is none."""
    pair, gold = example.pair, example.gold
    item: dict[str, Any] = {} if pair.id is None else {"id": pair.id}
    item["source"] = text_or_tokens(pair.source, gold is not None)
    item["target"] = text_or_tokens(pair.target, gold is not None)
    if gold is not None:
        gold = alignment_of(example)
        item["sure"] = [list(link) for link in sorted(gold.sure)]
        item["possible"] = [list(link) for link in sorted(gold.possible)]
        if gold.confidence:
            item["confidence"] = {f"{i}-{j}": p for (i, j), p in sorted(gold.confidence.items())}
        if gold.score is not None:
            item["score"] = gold.score
    for side, sentence in (("source", pair.source), ("target", pair.target)):
        item |= {f"{side}_{name}": list(values) for name, values in sentence.layers.items()}
        if isinstance(item[side], list) and sentence.offsets is not None:
            item[f"{side}_offsets"] = [list(place) for place in sentence.offsets]
    line = json_of(item, example, left_out(example))
    # Some readers take these for line ends; inside a JSON string they can be escaped.
    for character in "\x85\u2028\u2029":
        line = line.replace(character, f"\\u{ord(character):04x}")
    return line + "\n"


def left_out(example: Example, *more: str) -> list[str]:
    """Return the keys of `extra` that a record cannot hold, since it reads them as something else; and `more`."""
    if not example.extra:
        return []
    taken = {*_KNOWN, *more, *(("links",) if example.gold is None else _OF_ALIGNMENTS)}
    for side, sentence in (("source", example.pair.source), ("target", example.pair.target)):
        taken.update(f"{side}_{name}" for name in sentence.layers)
        if sentence.offsets is not None:
            taken.add(f"{side}_offsets")
    return [key for key in example.extra if key in taken]


def json_of(item: dict[str, Any], example: Example, lost: Sequence[str], indent: int | None = None) -> str:
    """Return the record as JSON, with the other keys of the example but for `lost`.

    CannotHold if JSON cannot hold a value.
    """
    if example.extra:
        item |= {key: value for key, value in _kept(example.extra).items() if key not in lost}
    try:
        return json.dumps(item, ensure_ascii=False, allow_nan=False, default=_plain, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotHold(f"JSON cannot hold a value of this pair: {error}") from None


def _kept(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """The other keys, and of a table the two texts as well, whose columns may have other names."""
    from ._tables import Row

    return extra if not isinstance(extra, Row) else {**_other(extra.texts()), **extra}


def _other(texts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in texts.items() if key not in _KNOWN}


def text_or_tokens(sentence: Sentence, aligned: bool) -> str | list[str]:
    """Return the text if the sentence is yet to be tokenised, else its tokens."""
    if "" in sentence.tokens:
        raise CannotHold("this format cannot hold an empty token")
    if not aligned and sentence.text is not None and split_tokens(sentence.text) == sentence.tokens:
        return sentence.text
    return list(sentence.tokens)


def _plain(value: Any) -> Any:
    """Convert the numbers of numpy and torch to Python's."""
    try:
        return value.item()
    except AttributeError:
        raise TypeError(f"{type(value).__name__} {quote(value)}") from None


def write(examples: Iterable[Example]) -> Iterator[str | CannotHold]:
    return each_written(examples, line_of)


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=_parse, skip_blank=True),
    write=write,
    suffixes=(".ndjson", ".json"),
    holds_confidence=True,
    left_out=left_out,
    read_columns=_read_keys,
    cut="lines",
)
