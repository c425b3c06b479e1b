"""Corpora: what the two JSON formats share. In: text that should be an object, its fields; out: checked values.

What is wrong is a ValueError with a message for the user.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ._source import quote


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
    """A value as it stood in the file, for an error."""
    try:
        return quote(json.dumps(value))
    except RecursionError:  # what could just be read may be too deep to be written
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
    """Text that can be written again, without half surrogate pairs (which bad UTF-8 was turned into)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        found = text[error.start]
        if "\udc80" <= found <= "\udcff":
            raise ValueError(f"byte {ord(found) - 0xDC00:#04x} is not UTF-8: convert the file to UTF-8") from None
        raise ValueError(f"half a surrogate pair ({found!r}) in {quote(text)}") from None
    return text


def identifier(item: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that says something; numbers are ids to some, strings to others."""
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
