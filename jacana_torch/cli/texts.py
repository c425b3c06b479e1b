"""Texts that commands read as they are, and those with one sentence a line."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import CorpusError


def readable(name: str) -> str:
    """Return the name of a file as text: bytes in it that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_text(name: str) -> str:
    """Return the text of a file; - is stdin."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).expanduser().read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        wrong = f"byte {error.object[error.start]:#04x} is not UTF-8: convert the file to UTF-8"
        raise CorpusError(wrong, name, line) from None


def read_lines(name: str) -> list[str]:
    """Return the lines of a file. As in other formats, nothing but a line feed ends one."""
    text = read_text(name)
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []
