"""Show alignments: an HTML page of many pairs; one alignment as an SVG picture, a grid of characters or a plot.

Words are never read as HTML: they are escaped here, and are text nodes in the page.
"""

from __future__ import annotations

from .drawing import grid, kinds, svg
from .pages import Why, page

__all__ = ["Why", "grid", "kinds", "page", "svg"]
