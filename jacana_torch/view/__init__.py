"""Alignments for eyes: plain words and links in; a page, a picture, a plot or a grid of characters out.

Stands below the values themselves, which show themselves by it, and so knows no other room but errors. Nothing
that comes in is ever read as HTML: words are escaped here, and are text nodes in the page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .drawn import Drawn
    from .kind import kinds
    from .pages import page
    from .payload import Why
    from .picture import svg
    from .text import grid

_HOMES = {"Drawn": "drawn", "Why": "payload", "grid": "text", "kinds": "kind", "page": "pages", "svg": "picture"}

__all__ = ["Drawn", "Why", "grid", "kinds", "page", "svg"]


def __getattr__(name: str) -> Any:  # every alignment comes by here, and few are looked at
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return found
