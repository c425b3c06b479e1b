"""The format jsonl: one JSON object per line, {"id", "source", "target", "sure", "possible"}; it holds everything.

`source` and `target` are lists of tokens, or strings that are split at spaces. `sure` and `possible` are lists of
[i, j], counted from 0; without both, the pair is unaligned. Optional are "confidence" {"i-j": p}, "score", and
annotation layers "source_pos", "target_lemma"… with one value per token. Other keys and blank lines are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..types import Alignment, Example, Link, Sentence, SentencePair
from . import Format
from ._files import CannotHold, alignment_of, linked, parse_links, per_line, quote, split_tokens

_SCALARS = (str, int, float, bool, type(None))


def _sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].lstrip(" \t").startswith("{") and lines[0].lstrip(" \t{")[:1] in ('"', "}")


def _parse(line: str) -> Example:
    item = parse_object(line)
    aligned = item.get("sure") is not None or item.get("possible") is not None
    pair = SentencePair(
        _sentence(item, "source", aligned), _sentence(item, "target", aligned), identifier(item, "id")
    )
    if not aligned:
        return Example(pair)
    gold = linked(pair, (_links(item, "sure"), _links(item, "possible")))
    if "confidence" in item or "score" in item:
        score = item.get("score")
        confidence = _confidence(item.get("confidence") or {}, gold)
        score = number(score, "'score'") if score is not None else None
        gold = Alignment(gold.n_source, gold.n_target, gold.sure, gold.possible, confidence, score)
    return Example(pair, gold)


def _sentence(item: Mapping[str, Any], side: str, aligned: bool) -> Sentence:
    value = field(item, side)
    if isinstance(value, str):
        # Links belong to tokens: if there are links the split is final, and the text has no more use.
        tokens, text = split_tokens(encodable(value)), None if aligned else value
    elif isinstance(value, list) and set(map(type, value)) <= {str}:
        encodable("".join(value))
        if "" in value:
            raise ValueError(f"token {value.index('')} of {side!r} is empty")
        tokens, text = tuple(value), None
    else:
        raise ValueError(f"{side!r} should be a list of tokens or a string and is {shown(value)}")
    return Sentence(tokens, _layers(item, side, len(tokens)), text)


def _layers(item: Mapping[str, Any], side: str, length: int) -> dict[str, tuple[Any, ...]]:
    layers = {}
    for key, values in item.items():
        if not key.startswith(f"{side}_") or not isinstance(values, list):
            continue
        if len(values) != length:
            raise ValueError(f"{key!r} has {len(values)} values for {length} tokens")
        name = key.removeprefix(f"{side}_")
        if name == "head":
            good = all(type(head) is int and -1 <= head < length for head in values)
        elif name in ("pos", "lemma", "deprel", "ner"):
            good = all(isinstance(value, str) for value in values)
        else:
            good = all(isinstance(value, _SCALARS) for value in values)
        if not good:
            raise ValueError(
                f"{key!r} should have a value a token (a head: 0-based, -1 for the root): {quote(values)}"
            )
        layers[name] = tuple(values)
    return layers


def _links(item: Mapping[str, Any], name: str) -> list[Link]:
    found = item.get(name)
    if found is None:
        return []
    try:
        links = []
        for i, j in found:
            if type(i) is int and type(j) is int:
                links.append((i, j))
        if isinstance(found, list) and len(links) == len(found):
            return links
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name!r} should be a list of [i, j] and is {shown(found)}")


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


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        yield _format(example)


def _format(example: Example) -> str:
    pair, gold = example.pair, example.gold
    item: dict[str, Any] = {} if pair.id is None else {"id": pair.id}
    item["source"] = _tokens(pair.source, gold is None)
    item["target"] = _tokens(pair.target, gold is None)
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
    try:
        line = json.dumps(item, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise CannotHold(f"JSON cannot hold a value of this pair: {error}") from None
    # Some readers take these for line ends; inside a JSON string they can be escaped.
    for character in "\x85\u2028\u2029":
        line = line.replace(character, f"\\u{ord(character):04x}")
    return line + "\n"


def _tokens(sentence: Sentence, unaligned: bool) -> str | list[str]:
    if "" in sentence.tokens:
        raise CannotHold("this format cannot hold an empty token")
    if unaligned and sentence.text is not None and split_tokens(sentence.text) == sentence.tokens:
        return sentence.text
    return list(sentence.tokens)


def _plain(value: Any) -> Any:
    """Convert the numbers of numpy and torch to Python's."""
    try:
        return value.item()
    except AttributeError:
        raise TypeError(f"{type(value).__name__} {quote(value)}") from None


def parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_not_a_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON, {error.msg} at column {error.colno}: {quote(text)}") from None
    except RecursionError:
        raise ValueError(f"JSON nested too deeply: {quote(text)}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object {{…}} and not {quote(text)}")
    return value


def _not_a_number(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON knows")


def shown(value: Any) -> str:
    """Quote a value for an error message, as it was in the file."""
    try:
        return quote(json.dumps(value))
    except RecursionError:  # a value that could just be read may be too deep to be written
        return "something nested too deeply"


def field(item: Mapping[str, Any], name: str) -> Any:
    try:
        return item[name]
    except KeyError:
        raise ValueError(f"no {name!r} among the keys {quote(', '.join(item), 100)}") from None


def string(item: Mapping[str, Any], name: str) -> str:
    value = field(item, name)
    if not isinstance(value, str):
        raise ValueError(f"{name!r} should be a string and is {shown(value)}")
    return encodable(value)


def encodable(text: str) -> str:
    """Return the text if it can be written again: bad UTF-8 was turned into half surrogate pairs."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        found = text[error.start]
        if "\udc80" <= found <= "\udcff":
            raise ValueError(f"byte {ord(found) - 0xDC00:#04x} is not UTF-8: convert the file to UTF-8") from None
        raise ValueError(f"half a surrogate pair ({found!r}) in {quote(text)}") from None
    return text


def identifier(item: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is not empty: a string, or a number, which some use for ids."""
    for name in names:
        value = item.get(name)
        if isinstance(value, str) and value:
            return encodable(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value not in (None, ""):
            raise ValueError(f"{name!r} should be a string and is {shown(value)}")
    return None


def number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{what} should be a number and is {shown(value)}")
    return float(value)


FORMAT = Format(
    sniff=_sniff,
    read=partial(per_line, parse=_parse, skip_blank=True),
    write=write,
    suffixes=(".ndjson", ".json"),
    holds_confidence=True,
)
