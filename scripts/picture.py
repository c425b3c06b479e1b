"""Draw an alignment as SVG: python scripts/picture.py "source" "target" [--model NAME] > picture.svg"""

from __future__ import annotations

import argparse
import sys
from xml.sax.saxutils import escape

WIDTH, GAP, TOP, BOTTOM = 9.2, 16, 34, 134  # of a letter, between words; baselines of the two sentences


def places(tokens: tuple[str, ...]) -> tuple[list[float], float]:
    """The middle of each word, and the width of the line."""
    middles, x = [], 10.0
    for token in tokens:
        width = WIDTH * len(token)
        middles.append(x + width / 2)
        x += width + GAP
    return middles, x


def svg(source: tuple[str, ...], target: tuple[str, ...], confidence: dict[tuple[int, int], float]) -> str:
    above, a = places(source)
    below, b = places(target)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(a, b):.0f} 156" '
        'font-family="ui-monospace, monospace" font-size="15" text-anchor="middle" role="img">',
        "<title>Two sentences and the links between their words</title>",
        f'<rect width="{max(a, b):.0f}" height="156" fill="#ffffff" rx="6"/>',
    ]
    for (i, j), chance in sorted(confidence.items()):
        x, y, u, v = above[i], TOP + 8, below[j], BOTTOM - 16
        bend = (y + v) / 2
        out.append(
            f'<path d="M{x:.1f},{y} C{x:.1f},{bend} {u:.1f},{bend} {u:.1f},{v}" fill="none" stroke="#2f6db5" '
            f'stroke-width="2" stroke-opacity="{max(chance, 0.15):.2f}"/>'
        )
    for tokens, middles, y in ((source, above, TOP), (target, below, BOTTOM)):
        out += [f'<text x="{x:.1f}" y="{y}">{escape(t)}</text>' for t, x in zip(tokens, middles, strict=True)]
    return "\n".join([*out, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--model", default="standard")
    arguments = parser.parse_args()
    import jacana_torch as jt
    from jacana_torch.annotate.tokenize import tokenize

    source, target = tokenize(arguments.source), tokenize(arguments.target)
    (alignment,) = jt.load(arguments.model).align([(source, target)])
    sys.stdout.write(svg(source, target, {link: alignment.confidence.get(link, 1.0) for link in alignment.links}))


if __name__ == "__main__":
    main()
