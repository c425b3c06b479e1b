"""Errors that users can cause; all derive from JacanaError.

The command line prints the message and exits with code 2. The message says what is wrong, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def quote(text: object, length: int = 60) -> str:
    """Quote what the user wrote for an error message: control characters escaped, and cut if it is long."""
    shown = repr(str(text)[: length + 1])
    return shown if len(shown) <= length + 2 else shown[:length] + "…'"


def did_you_mean(name: object, known: Iterable[str], listed: bool = True) -> str:
    """Return the end of a message about an unknown name: the nearest one, and unless `listed` is false, all."""
    from difflib import get_close_matches

    names = list(known)
    spelt = {one.lower().replace("_", "-"): one for one in names}
    close = get_close_matches(str(name).lower().replace("_", "-"), spelt, 1, 0.6)
    every = f"there are {', '.join(names) or 'none'}"
    if not close:
        return f"; {every}" if listed else ""
    return f"; did you mean {spelt[close[0]]}?" + (f" T{every[1:]}" if listed else "")


class JacanaError(Exception):
    """A mistake in the input or the set-up that the user can correct."""


class CorpusError(JacanaError):
    """A file that is not in its format."""

    def __init__(self, message: str, file: str = "<stream>", line: int | None = None) -> None:
        self.file, self.line, self.reason = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:  # worker processes send these
        return type(self), (self.reason, self.file, self.line)


class MissingLayer(JacanaError):
    """A sentence lacks an annotation layer that is needed."""


class MissingResource(JacanaError):
    """Linguistic data is not installed; the message names the command that installs it."""


class ModelError(JacanaError):
    """A model directory that cannot be used."""


class ConfigError(JacanaError):
    """A setting with an unknown name or an impossible value."""


class PairError(ConfigError, ValueError):
    """A sentence pair that cannot be aligned; `number` counts the pairs of a call from 1, None for a lone one."""

    def __init__(self, message: str, number: int | None = None) -> None:
        self.number, self.reason = number, message
        super().__init__(f"pair {number}: {message}" if number is not None else message)

    def __reduce__(self) -> tuple[Any, ...]:  # worker processes send these
        return type(self), (self.reason, self.number)


class PairTypeError(PairError, TypeError):
    """A pair, a sentence or a token that is of another type than it should be."""
