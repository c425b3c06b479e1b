"""Parsing of requests: a body's bytes become a checked `Asked`, or raise `Refused` with the reason."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..annotate.tokens import tokenize
from ..errors import ConfigError, PairError, did_you_mean
from ..symmetrize import symmetrizer
from ..types import Link, Sentence, SentencePair
from . import Limits, Refused
from .work import Alignments, Explanations, Models, Question, cost, spelt

SIDES = ("source", "target")
LONGEST_QUOTE = 60
SUSPECT = ("\\ud", "\\uD", "NaN", "Infinity")  # in bodies that may hold what JSON cannot


class _NotANumber:
    """Stands for NaN or Infinity, which are no JSON, until it is known where they are."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True)
class Asked:
    """A question and the pairs that it is about; `many`: they are the elements of `pairs` in the request."""

    question: Question
    pairs: list[SentencePair]
    many: bool = False

    @cached_property
    def cost(self) -> int:
        return sum(cost(self.question, pair) for pair in self.pairs)

    def refusal(self, number: int, error: PairError) -> Refused:
        """Say that a pair cannot be aligned."""
        return Refused(422, f"pairs[{number}]: {error.reason}" if self.many else error.reason)

    def within(self, models: Models, limits: Limits) -> Asked:
        """Return it if the model takes such pairs, and if it costs no more than a request may."""
        for number, pair in enumerate(self.pairs):
            try:
                models.check(self.question, pair)
            except PairError as error:
                raise self.refusal(number, error) from None
        if self.cost > limits.cost:
            parts = f"send fewer of its {len(self.pairs)} pairs at a time" if self.pairs[1:] else "shorten it"
            raise Refused(
                413,
                f"the request costs {self.cost} cells (tokens x tokens; long words and explanations count more), "
                f"above the limit of {limits.cost}: {parts}, or start the server with a larger --max-cost",
            )
        return self


def align_request(body: bytes, models: Models, limits: Limits) -> Asked:
    """Parse a request for alignments: one pair as `source` and `target`, or many as `pairs`."""
    fields = _object(body)
    _known(fields, {*SIDES, "id", "pairs", "model", "symmetrize", "confidence"}, "the request")
    confidence = fields.get("confidence")
    if not isinstance(confidence, (bool, type(None))):
        raise Refused(422, f"confidence should be true or false and is {_shown(confidence)}")
    model = _model(fields, models)
    question = Alignments(model, _symmetrize(fields, models, model), confidence is not False)
    if "pairs" not in fields:
        return Asked(question, [_pair(fields, "", limits)]).within(models, limits)
    if both := [name for name in (*SIDES, "id") if name in fields]:
        raise Refused(422, f"either pairs or source and target, not both pairs and {' and '.join(both)}")
    return Asked(question, _pairs(fields["pairs"], limits), many=True).within(models, limits)


def explain_request(body: bytes, models: Models, limits: Limits) -> Asked:
    """Parse a request for an explanation of one pair.

    `link` [i, j] restricts it to two words, linked or not; `top` restricts each list of reasons.
    """
    fields = _object(body)
    _known(fields, {*SIDES, "id", "model", "symmetrize", "link", "top"}, "the request")
    model = _model(fields, models)
    if not models.explains(model):
        able = ", ".join(name for name in models.names if models.explains(name)) or "none on this server"
        raise Refused(422, f"the model {model} cannot explain its links; models that can: {able}")
    symmetrize = _symmetrize(fields, models, model)
    pair = _pair(fields, "", limits)
    for side, sentence in zip(SIDES, (pair.source, pair.target), strict=True):
        if not sentence:
            raise Refused(422, f"{side} has no words: there is nothing to explain")
    question = Explanations(model, symmetrize, _link(fields.get("link"), pair), _top(fields))
    return Asked(question, [pair]).within(models, limits)


def _object(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_NotANumber)
    except UnicodeDecodeError as error:
        raise Refused(
            400, f"the body is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
        ) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, f"the body is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise Refused(400, "the body is JSON that is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if any(mark in text for mark in SUSPECT):
        _check(value)
    if not isinstance(value, dict):
        raise Refused(422, f"the body should be a JSON object and is {_shown(value)}")
    return value


def _check(value: Any) -> None:
    """Refuse what JSON cannot hold and what no encoding can, and say where it is."""
    todo = [("", value)]
    while todo:
        where, item = todo.pop()
        if isinstance(item, _NotANumber):
            raise Refused(400, f"{_place(where)} is {item.name}, which is not a JSON number")
        if isinstance(item, str):
            _encodable(item, _place(where))
        elif isinstance(item, dict):
            for name in item:
                _encodable(name, f"the name of a field of {_place(where)}")
            todo += [(f"{where}.{name}".lstrip("."), inner) for name, inner in reversed(item.items())]
        elif isinstance(item, list):
            todo += [(f"{where}[{k}]", inner) for k, inner in reversed(list(enumerate(item)))]


def _place(where: str) -> str:
    return where[:LONGEST_QUOTE] or "the body"


def _known(fields: Mapping[str, Any], names: Collection[str], where: str) -> None:
    """Refuse unknown fields: ignoring a misspelt option would answer another question."""
    for name in fields:
        if name not in names:
            raise Refused(422, f"{where} has the unknown field {_shown(name)}{did_you_mean(name, sorted(names))}")


def _model(fields: Mapping[str, Any], models: Models) -> str:
    name = fields.get("model")
    if name is None:
        return models.names[0]
    if not isinstance(name, str) or name not in models.names:
        raise Refused(422, f"model should be one of {', '.join(models.names)} and is {_shown(name)}")
    return name


def _symmetrize(fields: Mapping[str, Any], models: Models, model: str) -> str | None:
    """The symmetrizer in one spelling, so that equal questions share a batch; None for the model's default."""
    name = fields.get("symmetrize")
    if name is None:
        return None
    if not isinstance(name, str):
        raise Refused(422, f"symmetrize should be a string and is {_shown(name)}")
    if not models.symmetrizes(model):
        raise Refused(422, f"the model {model} has one direction: there is nothing to symmetrize")
    try:
        symmetrizer(name)
    except ConfigError as error:
        raise Refused(422, str(error)) from None
    return spelt(name)


def _pairs(given: Any, limits: Limits) -> list[SentencePair]:
    if not isinstance(given, list):
        raise Refused(422, f"pairs should be a list and is {_shown(given)}")
    if len(given) > limits.pairs:
        raise Refused(413, f"the request has {len(given)} pairs, more than the limit of {limits.pairs}")
    pairs = []
    for k, item in enumerate(given):
        where = f"pairs[{k}]"
        if not isinstance(item, dict):
            raise Refused(422, f"{where} should be an object with source and target and is {_shown(item)}")
        _known(item, {*SIDES, "id"}, where)
        pairs.append(_pair(item, f"{where}.", limits))
    return pairs


def _pair(item: Mapping[str, Any], where: str, limits: Limits) -> SentencePair:
    source, target = (_sentence(item, side, where, limits) for side in SIDES)
    name = item.get("id")
    if name is not None and not isinstance(name, str):
        raise Refused(422, f"{where}id should be a string and is {_shown(name)}")
    return SentencePair(source, target, name)


def _sentence(item: Mapping[str, Any], side: str, where: str, limits: Limits) -> Sentence:
    if side not in item:
        raise Refused(422, f"{where}{side} is missing: give a string or a list of tokens")
    given, name = item[side], f"{where}{side}"
    if isinstance(given, str):
        if len(given) > limits.characters:
            raise _too_long(name, len(given), "characters", limits.characters)
        sentence = Sentence(tokenize(given), text=given)
    elif isinstance(given, list) and all(isinstance(token, str) for token in given):
        if len(given) > limits.tokens:
            raise _too_long(name, len(given), "tokens", limits.tokens)
        if "" in given:
            raise Refused(422, f"{name}[{given.index('')}] is an empty token")
        if (characters := sum(map(len, given))) > limits.characters:
            raise _too_long(name, characters, "characters", limits.characters)
        sentence = Sentence(tuple(given))
    else:
        raise Refused(422, f"{name} should be a string or a list of tokens and is {_shown(given)}")
    if len(sentence) > limits.tokens:
        raise _too_long(name, len(sentence), "tokens", limits.tokens)
    return sentence


def _too_long(name: str, length: int, what: str, most: int) -> Refused:
    return Refused(413, f"{name} has {length} {what}, more than the limit of {most}")


def _link(given: Any, pair: SentencePair) -> Link | None:
    if given is None:
        return None
    if not (isinstance(given, list) and len(given) == 2 and all(type(place) is int for place in given)):
        raise Refused(422, f"link should be [i, j], counted from 0, and is {_shown(given)}")
    i, j = given
    if not (0 <= i < len(pair.source) and 0 <= j < len(pair.target)):
        size = f"{len(pair.source)} x {len(pair.target)} tokens"
        raise Refused(422, f"link {i}-{j} is out of range for {size}")
    return i, j


def _top(fields: Mapping[str, Any]) -> int | None:
    top = fields.get("top")
    if top is not None and (type(top) is not int or top < 1):
        raise Refused(422, f"top should be a whole number above 0 and is {_shown(top)}")
    return top


def _encodable(text: str, name: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refused(400, f"{name} has half a surrogate pair at character {error.start}") from None


def _shown(value: Any) -> str:
    """Quote a value as JSON, shortened."""
    try:
        text = json.dumps(value)
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."
