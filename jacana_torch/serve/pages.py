"""The files of served pages: those that all pages share, and the head that each of them begins with."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from starlette.routing import Route

from .answers import file_answer

MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# path: the package and the name of a file in it
SHARED = {
    "/icon.svg": ("jacana_torch.serve", "page/icon.svg"),
    "/view.css": ("jacana_torch.view", "assets/page.css"),  # as in the pages of `view`
    "/draw.js": ("jacana_torch.view", "assets/draw.js"),
    "/curves.js": ("jacana_torch.view", "assets/curves.js"),
}


def page_routes(own: Mapping[str, tuple[str, str]]) -> list[Route]:
    """Make the routes of a page's own files and of the shared ones."""
    head = _content("jacana_torch.serve", "page/head.html")
    routes = []
    for path, (package, name) in {**SHARED, **own}.items():
        media = MEDIA[name[name.rindex(".") :]]
        content = _content(package, name)
        answer = file_answer(head + content if media == "text/html" else content, media)
        routes.append(Route(path, answer, methods=["GET"]))
    return routes


def _content(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
