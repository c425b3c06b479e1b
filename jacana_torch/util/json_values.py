"""JSON as it is given: parsed and checked, so that whatever is accepted can be written again.

Python reads numbers beyond all floats, half surrogate pairs and values nested as deep as the stack, which it
cannot write. All of these are a ValueError with a message for the user.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..errors import quote

_DEEPEST = 100  # lists and objects inside each other, in a value that is kept
SCALARS = (str, int, float, bool, type(None))


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = json.loads(text, parse_constant=_not_a_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON, {error.msg} at column {error.colno}: {quote(text)}") from None
    except RecursionError:
        raise ValueError(f"JSON nested too deeply: {quote(text)}") from None
    except ArithmeticError as error:
        raise ValueError(str(error)) from None
    except ValueError:  # Python parses integers up to a length
        raise ValueError(f"a whole number has too many digits: {quote(text)}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object {{…}} and not {quote(text)}")
    return value


def _not_a_number(name: str) -> float:
    """Refuse a constant that Python's parser accepts and JSON does not know."""
    raise ArithmeticError(f"{name} is not a number that JSON knows")


def shown(value: Any) -> str:
    """Quote a value for an error message, as it was in the file."""
    try:
        return quote(json.dumps(value))
    except RecursionError:  # a value that could just be read may be too deep to be written
        return "something nested too deeply"


def field(item: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key that must be there."""
    try:
        return item[name]
    except KeyError:
        raise ValueError(f"no {name!r} among the keys {quote(', '.join(item), 100)}") from None


def encodable(text: str) -> str:
    """Return the text if it can be written again: bad UTF-8 may have been turned into half surrogate pairs."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        found = text[error.start]
        if "\udc80" <= found <= "\udcff":
            raise ValueError(f"byte {ord(found) - 0xDC00:#04x} is not UTF-8: convert the file to UTF-8") from None
        raise ValueError(f"half a surrogate pair ({found!r}) in {quote(text)}") from None
    return text


def number(value: Any, what: str) -> float:
    """Return a finite number as a float."""
    try:
        if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:  # an integer above all floats
        pass
    raise ValueError(f"{what} should be a number and is {shown(value)}")


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


def writable(value: Any, name: str) -> Any:
    """Return the value of a key if JSON can hold it; else raise a ValueError that names the key."""
    depth, level = 0, [value]
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"{quote(name)} is nested more than {_DEEPEST} deep")
        deeper: list[Any] = []
        for one in level:
            if isinstance(one, str):
                encodable(one)
            elif isinstance(one, float) and not math.isfinite(one):
                raise ValueError(f"{quote(name)} has a number beyond all floats")
            elif isinstance(one, dict):
                encodable("".join(one))
                deeper += one.values()
            elif isinstance(one, list):
                deeper += one
        level = deeper
    return value
