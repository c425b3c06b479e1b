"""Show alignments: an HTML page of many pairs; one alignment as a picture, a grid of characters or a plot.

Words are never read as HTML: they are escaped here, and are text nodes in the page.
"""

from __future__ import annotations

from .characters import grid
from .drawing import kinds
from .pages import Why, page
from .raster import png
from .vector import svg, tikz

__all__ = ["Why", "grid", "kinds", "page", "png", "svg", "tikz"]
