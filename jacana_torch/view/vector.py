"""Draw an alignment as SVG, or as TikZ for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from .drawing import COLOURS, DASHES, clean, described, opacity, stroke
from .layout import LETTERS, Curve, figure

if TYPE_CHECKING:
    from ..types import Link


def svg(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    background: str | None = None,
    title: str | None = None,
    most: float = 110,
) -> str:
    """An SVG element that needs neither script nor style sheet, so notebooks, mails and repositories show it.

    Words take the colour of the text around the picture, which is transparent without a `background`. Sentences
    wider than `most` columns take several lines.
    """
    width, height, words, curves = figure(source, target, links, confidence, most)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'style="max-width:100%;height:auto" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="{LETTERS}" text-anchor="middle" role="img">',
        f"<title>{escape(clean(title or described(list(links.values()))))}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{escape(background or "none")}" rx="6"/>',
        *map(_curve, curves),
    ]
    for text, x, y in words:
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="currentColor">{escape(text)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _curve(curve: Curve) -> str:
    (x, y), *_ = curve.points
    path = "".join(
        f"L{u:.1f},{v:.1f}" if a == u else f"C{a:.1f},{b:.1f} {c:.1f},{d:.1f} {u:.1f},{v:.1f}"
        for _, (a, b), (c, d), (u, v) in curve.steps()
    )
    dash = (
        f' stroke-dasharray="{DASHES[curve.kind][0]:g} {DASHES[curve.kind][1]:g}"' if curve.kind in DASHES else ""
    )
    colour = COLOURS[curve.kind]
    line = (
        f'<path d="M{x:.1f},{y:.1f} {path}" fill="none" data-link="{curve.link[0]}-{curve.link[1]}" '
        f'stroke="{colour}" stroke-width="{stroke(curve.kind):g}" stroke-linecap="round" '
        f'stroke-opacity="{opacity(curve.probability):.2f}"{dash}/>'
    )
    if curve.sign is None:
        return line
    return (
        f'{line}\n<text x="{curve.sign.x:.1f}" y="{curve.sign.y:.1f}" fill="{colour}" font-size="12" '
        f'font-weight="700" dominant-baseline="central">{curve.sign.text}</text>'
    )


# -- TikZ

_EM = 0.06  # of a pixel: letters of 15 pixels are about as wide as those of LaTeX then
_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    "`": "`{}", "-": "{-}", '"': r'{\string"}',  # no ligatures, no shorthands of babel
    **{character: "\\" + character for character in "{}#$%&_"},
}  # fmt: skip
_TEX_SIGNS = {"○": r"$\circ$", "✕": r"$\times$", "◇": r"$\diamond$"}


def tikz(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    most: float = 80,
) -> str:
    r"""A `tikzpicture` for a document with `\usepackage{tikz}`.

    It is as large as the font that it stands in: put `\small` before it, or `\resizebox` around it.
    """
    _, _, words, curves = figure(source, target, links, confidence, most)
    out = [rf"\begin{{tikzpicture}}[x={_EM}em, y=-{_EM}em, line cap=round, every node/.style={{inner sep=0pt}}]"]
    out += [rf"  \definecolor{{jacana-{kind}}}{{HTML}}{{{COLOURS[kind][1:].upper()}}}" for kind in _used(links)]
    for curve in curves:
        (x, y), *_ = curve.points
        path = "".join(
            f" -- ({u:.1f},{v:.1f})"
            if a == u
            else f" .. controls ({a:.1f},{b:.1f}) and ({c:.1f},{d:.1f}) .. ({u:.1f},{v:.1f})"
            for _, (a, b), (c, d), (u, v) in curve.steps()
        )
        on, off = DASHES.get(curve.kind, (0, 0))
        looks = [f"jacana-{curve.kind}", f"line width={stroke(curve.kind) * 0.4:.2f}pt"]
        looks += [f"opacity={opacity(curve.probability):.2f}"]
        looks += [f"dash pattern=on {on * 0.5:g}pt off {off * 0.5:g}pt"] if off else []
        out.append(rf"  \draw[{', '.join(looks)}] ({x:.1f},{y:.1f}){path};")
        if curve.sign is not None:
            look, at = f"text=jacana-{curve.kind}, font=\\scriptsize", f"({curve.sign.x:.1f},{curve.sign.y:.1f})"
            out.append(rf"  \node[{look}] at {at} {{{_TEX_SIGNS[curve.sign.text]}}};")
    for text, x, y in words:
        out.append(rf"  \node[anchor=base] at ({x:.1f},{y:.1f}) {{{_escaped(text)}}};")
    return "\n".join([*out, r"\end{tikzpicture}", ""])


def _used(links: Mapping[Link, str]) -> list[str]:
    return list(dict.fromkeys(links.values()))


def _escaped(text: str) -> str:
    return re.sub(r"[\\~^<>|`\"{}#$%&_-]", lambda found: _TEX[found[0]], text)
