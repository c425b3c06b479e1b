"""Corpora, format jsonl: a JSON object a line, {"id", "source", "target", "sure", "possible"}; holds all there is.

`source` and `target` are lists of tokens, or strings that are split at spaces. `sure` and `possible` are lists of
[i, j], 0-based; without both the pair is unaligned. Optional: "confidence" {"i-j": p}, "score", and annotation
layers "source_pos", "target_lemma"… with one value a token. Other keys are passed over, and so are blank lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import CorpusError
from ..types import Alignment, Example, Link, Sentence, SentencePair
from ._json import encodable, field, identifier, number, parse_object, shown
from ._links import CannotHold, Links, alignment_of, parse_links, split_tokens
from ._source import Source, per_line_and_pauses, quote

SUFFIXES = (".jsonl", ".ndjson", ".json")

_SCALARS = (str, int, float, bool, type(None))


def sniff(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].lstrip(" \t").startswith("{") and lines[0].lstrip(" \t{")[:1] in ('"', "}")


def read(source: Source) -> Iterator[Example | CorpusError | None]:
    return per_line_and_pauses(source, _parse, skip_blank=True)


def _parse(line: str) -> Example:
    item = parse_object(line)
    aligned = item.get("sure") is not None or item.get("possible") is not None
    pair = SentencePair(
        _sentence(item, "source", aligned), _sentence(item, "target", aligned), identifier(item, "id")
    )
    if not aligned:
        return Example(pair)
    links = Links(_links(item, "sure"), _links(item, "possible"))
    gold = links.over(len(pair.source), len(pair.target))
    if "confidence" in item or "score" in item:
        score = item.get("score")
        confidence = _confidence(item.get("confidence") or {}, gold)
        score = number(score, "'score'") if score is not None else None
        gold = Alignment(gold.n_source, gold.n_target, gold.sure, gold.possible, confidence, score)
    return Example(pair, gold)


def _sentence(item: Mapping[str, Any], side: str, aligned: bool) -> Sentence:
    value = field(item, side)
    if isinstance(value, str):
        # Links are links of tokens, so where there are some the split is final and the text of no more use.
        tokens, text = split_tokens(encodable(value)), None if aligned else value
    elif isinstance(value, list) and all(isinstance(token, str) for token in value):
        encodable("".join(value))
        if "" in value:
            raise ValueError(f"token {value.index('')} of {side!r} is empty")
        tokens, text = tuple(value), None
    else:
        raise ValueError(f"{side!r} should be a list of tokens or a string and is {shown(value)}")
    return Sentence(tokens, _layers(item, side, len(tokens)), text)


def _layers(item: Mapping[str, Any], side: str, length: int) -> dict[str, tuple]:
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
        links = [(i, j) for i, j in found if type(i) is int and type(j) is int]
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
    # Some readers take these for line ends; inside a JSON string they may as well be escaped.
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
    """numpy's and torch's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} {quote(value)}")
