"""The files of the page: nothing in; the path, media type and content of each out."""

from __future__ import annotations

from importlib.resources import files

HERE, DRAWING = "jacana_torch.serve", "jacana_torch.view"
FILES = (
    ("/", "text/html", HERE, "page/index.html"),
    ("/docs", "text/html", HERE, "page/docs.html"),
    ("/page.css", "text/css", HERE, "page/page.css"),
    ("/page.js", "text/javascript", HERE, "page/page.js"),
    ("/why.js", "text/javascript", HERE, "page/why.js"),
    ("/docs.js", "text/javascript", HERE, "page/docs.js"),
    ("/icon.svg", "image/svg+xml", HERE, "page/icon.svg"),
    ("/view.css", "text/css", DRAWING, "assets/page.css"),  # one look, and one way to draw, for both pages
    ("/draw.js", "text/javascript", DRAWING, "assets/draw.js"),
)


def page_files() -> list[tuple[str, str, bytes]]:
    """What browsers ask for."""
    return [(path, media, files(room).joinpath(name).read_bytes()) for path, media, room, name in FILES]
