"""A picture of one alignment: words, links of a kind and confidences in, one SVG element out.

It needs no script and no style sheet, so notebooks, mails and repositories show it. Words take the colour of the
text around them; links of different kinds differ in their dashes and signs, not in colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from .kind import ASIDE, HIT, INVENTION, LINK, MISS
from .layout import clean, places

if TYPE_CHECKING:
    from ..types import Link

COLUMN, LINE, SKY, MARGIN = 9.2, 30, 84, 12  # of a letter, of a line, between sentences, around it all
FAINTEST = 0.25
WIDEST = 110  # columns; longer sentences take several lines

COLOURS = {LINK: "#2f7dc4", HIT: "#2f7dc4", MISS: "#c4560a", INVENTION: "#b23aa0", ASIDE: "#808892"}
STROKES = {
    MISS: ' stroke-dasharray="7 5"',
    INVENTION: ' stroke-dasharray="0.1 5"',
    ASIDE: ' stroke-dasharray="2 4"',
}
SIGNS = {MISS: "○", INVENTION: "✕", ASIDE: "◇"}
NAMES = {HIT: "hits", MISS: "missed", INVENTION: "invented"}


def svg(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    background: str | None = None,
    title: str | None = None,
    most: float = WIDEST,
) -> str:
    """`links` maps each to its kind (see kind.py); `confidence` to its opacity. Without a `background` what is
    behind shines through."""
    above, a, lines_above = places([clean(token) for token in source], most)
    below, b, lines_below = places([clean(token) for token in target], most)
    width = max(a, b, 4.0) * COLUMN + 2 * MARGIN
    bottom = MARGIN + lines_above * LINE + SKY
    height = bottom + lines_below * LINE + MARGIN / 2
    ends = [
        [(MARGIN + (x + (max(a, b) - widest) / 2) * COLUMN, top + line * LINE) for x, line in middles]
        for middles, widest, top in ((above, a, MARGIN), (below, b, bottom))
    ]
    paint = background or "none"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'style="max-width:100%;height:auto" font-family="ui-monospace, Menlo, Consolas, monospace" '
        'font-size="15" text-anchor="middle" role="img">',
        f"<title>{escape(clean(title or _title(links)))}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{escape(paint)}" rx="6"/>',
    ]
    for (i, j), kind in links.items():
        out.append(_curve(ends[0][i], ends[1][j], kind, (confidence or {}).get((i, j), 1.0)))
    for tokens, spots in ((source, ends[0]), (target, ends[1])):
        for token, (x, y) in zip(tokens, spots, strict=True):
            out.append(f'<text x="{x:.1f}" y="{y + 20:.1f}" fill="currentColor">{escape(clean(token))}</text>')
    return "\n".join([*out, "</svg>\n"])


def opacity(chance: float) -> float:
    """Of a link that is so probable; none is invisible."""
    return FAINTEST + (1 - FAINTEST) * min(max(chance, 0.0), 1.0)


def _curve(start: tuple[float, float], end: tuple[float, float], kind: str, chance: float) -> str:
    (x, y), (u, v) = (start[0], start[1] + LINE - 3), (end[0], end[1] + 4)
    pull = max((v - y) * 0.5, 12)
    path = (
        f'<path d="M{x:.1f},{y:.1f} C{x:.1f},{y + pull:.1f} {u:.1f},{v - pull:.1f} {u:.1f},{v:.1f}" fill="none" '
        f'stroke="{COLOURS[kind]}" stroke-width="{1.2 if kind == ASIDE else 2}" stroke-linecap="round" '
        f'stroke-opacity="{opacity(chance):.2f}"{STROKES.get(kind, "")}/>'
    )
    if kind not in SIGNS:
        return path
    middle = f'x="{(x + u) / 2:.1f}" y="{(y + v) / 2:.1f}"'
    return (
        f'{path}\n<text {middle} fill="{COLOURS[kind]}" font-size="12" font-weight="700" '
        f'dominant-baseline="central">{SIGNS[kind]}</text>'
    )


def _title(links: Mapping[Link, str]) -> str:
    said = list(links.values())
    told = [f"{said.count(kind)} {name}" for kind, name in NAMES.items() if kind in said]
    return f"Two sentences and the links between their words{': ' if told else ''}{', '.join(told)}"
