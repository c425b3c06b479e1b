"""Draw one alignment: as an SVG picture, as a grid of characters for terminals, or as a matplotlib plot.

All three take the words of both sentences, the kind of each link (from `kinds`) and probabilities, which make
links darker. Kinds differ in dashes, signs or markers, not in colour alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..errors import JacanaError

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..types import Alignment, Link, Sentence, SentencePair

    Side: TypeAlias = str | Sequence[str] | Sentence
    Words: TypeAlias = SentencePair | tuple[Side, Side]

# The values of `kinds`, which are also CSS classes of the page.
LINK, POSSIBLE, CORRECT, MISSED, SPURIOUS = "link", "aside", "hit", "miss", "invention"

COLOURS = {LINK: "#2f7dc4", CORRECT: "#2f7dc4", MISSED: "#c4560a", SPURIOUS: "#b23aa0", POSSIBLE: "#808892"}
NAMES = {CORRECT: "correct", MISSED: "missed", SPURIOUS: "spurious", POSSIBLE: "possible"}
FAINTEST = 0.25  # the opacity of a link with probability 0


def kinds(alignment: Alignment, gold: Alignment | None = None) -> dict[Link, str]:
    """The kind of each link, in reading order. Sure links count, as in `evaluate`.

    Without gold a link is a "link", or an "aside" if it is only possible. Against gold it is a "hit" (correct), a
    "miss", an "invention" (spurious), or an "aside" if it is only possible on either side.
    """
    if gold is None:
        return {link: LINK if link in alignment.sure else POSSIBLE for link in alignment.all_links}
    kind_of = {(True, True): CORRECT, (True, False): SPURIOUS, (False, True): MISSED, (False, False): POSSIBLE}
    every = alignment.sure | alignment.possible | gold.sure | gold.possible
    return {link: kind_of[link in alignment.sure, link in gold.sure] for link in sorted(every)}


def checked(
    alignment: Alignment, pair: Words | None, gold: Alignment | None
) -> tuple[Sequence[str], Sequence[str], dict[Link, str], Mapping[Link, float]]:
    """What to draw of an alignment: source words, target words, kinds of links and their probabilities.

    `pair` defaults to the pair that the alignment was made for. Sizes that do not agree are an error.
    """
    size = alignment.n_source, alignment.n_target
    pair = alignment.pair if pair is None else pair
    if pair is None:
        raise JacanaError("this alignment does not know its words: give the pair that it belongs to")
    sides = pair if isinstance(pair, tuple) else (pair.source, pair.target)
    source, target = map(_tokens, sides)
    if (len(source), len(target)) != size:
        raise JacanaError(
            f"this alignment is of {size[0]} x {size[1]} tokens, and the pair has {len(source)} x {len(target)}: "
            "give the tokens that were aligned"
        )
    if gold is not None and (gold.n_source, gold.n_target) != size:
        raise JacanaError(
            f"gold is of {gold.n_source} x {gold.n_target} tokens and this alignment of {size[0]} x {size[1]}: "
            "both must be of the same tokens, in the same direction"
        )
    return source, target, kinds(alignment, gold), alignment.confidence


def _tokens(side: Side) -> Sequence[str]:
    if isinstance(side, str):
        return side.split()
    return side if isinstance(side, Sequence) else side.tokens


def clean(token: str) -> str:
    """The token, with characters replaced that neither a terminal nor XML can show."""
    return "".join(c if c.isprintable() else "\ufffd" for c in token)


def columns(text: str) -> int:
    """The width in columns of a fixed-width font: 0 for combining marks, 2 for wide East Asian characters."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def opacity(probability: float) -> float:
    """The opacity of a link; even an improbable link is visible."""
    return FAINTEST + (1 - FAINTEST) * min(max(probability, 0.0), 1.0)


# -- SVG

_COLUMN, _LINE, _BETWEEN, _MARGIN = (
    9.2,
    30,
    84,
    12,
)  # width of a letter, height of a line, between sentences, around
_GAP = 1.7  # columns between two words
_STROKES = {
    MISSED: ' stroke-dasharray="7 5"',
    SPURIOUS: ' stroke-dasharray="0.1 5"',
    POSSIBLE: ' stroke-dasharray="2 4"',
}
_SIGNS = {MISSED: "○", SPURIOUS: "✕", POSSIBLE: "◇"}


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
    above, a, lines_above = places([clean(token) for token in source], most)
    below, b, lines_below = places([clean(token) for token in target], most)
    width = max(a, b, 4.0) * _COLUMN + 2 * _MARGIN
    bottom = _MARGIN + lines_above * _LINE + _BETWEEN
    height = bottom + lines_below * _LINE + _MARGIN / 2
    ends = [
        [(_MARGIN + (x + (max(a, b) - widest) / 2) * _COLUMN, top + line * _LINE) for x, line in middles]
        for middles, widest, top in ((above, a, _MARGIN), (below, b, bottom))
    ]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'style="max-width:100%;height:auto" font-family="ui-monospace, Menlo, Consolas, monospace" '
        'font-size="15" text-anchor="middle" role="img">',
        f"<title>{escape(clean(title or _title(list(links.values()))))}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{escape(background or "none")}" rx="6"/>',
    ]
    for (i, j), kind in links.items():
        out.append(_curve(ends[0][i], ends[1][j], kind, (confidence or {}).get((i, j), 1.0)))
    for tokens, spots in ((source, ends[0]), (target, ends[1])):
        for token, (x, y) in zip(tokens, spots, strict=True):
            out.append(f'<text x="{x:.1f}" y="{y + 20:.1f}" fill="currentColor">{escape(clean(token))}</text>')
    return "\n".join([*out, "</svg>\n"])


def _title(found: Sequence[str]) -> str:
    counts = ", ".join(f"{found.count(k)} {NAMES[k]}" for k in (CORRECT, MISSED, SPURIOUS) if k in found)
    return f"Two sentences and the links between their words{': ' if counts else ''}{counts}"


def _curve(start: tuple[float, float], end: tuple[float, float], kind: str, probability: float) -> str:
    (x, y), (u, v) = (start[0], start[1] + _LINE - 3), (end[0], end[1] + 4)
    pull = max((v - y) * 0.5, 12)
    path = (
        f'<path d="M{x:.1f},{y:.1f} C{x:.1f},{y + pull:.1f} {u:.1f},{v - pull:.1f} {u:.1f},{v:.1f}" fill="none" '
        f'stroke="{COLOURS[kind]}" stroke-width="{1.2 if kind == POSSIBLE else 2}" stroke-linecap="round" '
        f'stroke-opacity="{opacity(probability):.2f}"{_STROKES.get(kind, "")}/>'
    )
    if kind not in _SIGNS:
        return path
    middle = f'x="{(x + u) / 2:.1f}" y="{(y + v) / 2:.1f}"'
    return (
        f'{path}\n<text {middle} fill="{COLOURS[kind]}" font-size="12" font-weight="700" '
        f'dominant-baseline="central">{_SIGNS[kind]}</text>'
    )


def places(tokens: Sequence[str], most: float) -> tuple[list[tuple[float, int]], float, int]:
    """(middle, line) of each token in columns, the width of the widest line, and the number of lines.

    No line is wider than `most`, unless a single word is. Lines are centred and about equally wide.
    """
    widths = [max(columns(token), 1) for token in tokens]
    lines = _broken(widths, most)
    if len(lines) > 1:  # search for the smallest width that needs no more lines
        low, high = most / len(lines) / 2, most
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if len(_broken(widths, middle)) <= len(lines) else (middle, high)
        lines = _broken(widths, high)
    lengths = [sum(line) + _GAP * (len(line) - 1) for line in lines]
    widest = max(lengths, default=0.0)
    out = []
    for number, (line, length) in enumerate(zip(lines, lengths, strict=True)):
        x = (widest - length) / 2
        for width in line:
            out.append((x + width / 2, number))
            x += width + _GAP
    return out, widest, len(lines)


def _broken(widths: Sequence[float], most: float) -> list[list[float]]:
    lines: list[list[float]] = []
    room = -1.0
    for width in widths:
        if not lines or room < width + _GAP:
            lines.append([])
            room = most + _GAP
        lines[-1].append(width)
        room -= width + _GAP
    return lines


# -- characters

_UNICODE = {CORRECT: "█", LINK: "█", MISSED: "○", SPURIOUS: "✕", POSSIBLE: "◇", None: "·"}
_ASCII = {CORRECT: "#", LINK: "#", MISSED: "o", SPURIOUS: "x", POSSIBLE: "?", None: "."}
_SHADES = (("█", "#", 0.75), ("▓", "+", 0.5), ("▒", "-", 0.25), ("░", "~", 0.0))  # from this probability on


def grid(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    *,
    ascii: bool = False,
) -> str:
    """Lines of text with source words down and target words across, written downwards letter by letter.

    `ascii` restricts the marks of links to ASCII, not the words.
    """
    rows = [clean(token) for token in source]
    margin = max(map(columns, rows), default=0)
    lines = [" " * margin + line for line in _headings([_letters(clean(token)) for token in target])]
    for i, word in enumerate(rows):
        marks = (_mark(links.get((i, j)), (confidence or {}).get((i, j), 1.0), ascii) for j in range(len(target)))
        lines.append(word + " " * (margin - columns(word)) + "".join(f"  {mark}" for mark in marks))
    signs = _ASCII if ascii else _UNICODE
    legend = [f"{signs[kind]} {name}" for kind, name in NAMES.items() if kind in links.values()]
    return "\n".join(
        [*(line.rstrip() for line in lines), *([" " * margin + "  " + "  ".join(legend)] if legend else [])]
    )


def _mark(kind: str | None, probability: float, ascii: bool) -> str:
    if kind in (LINK, CORRECT):
        return next((plain if ascii else shade for shade, plain, least in _SHADES if probability >= least), "~")
    return (_ASCII if ascii else _UNICODE)[kind]


def _letters(word: str) -> list[str]:
    """The characters of a word, each with its combining marks."""
    letters: list[str] = []
    for character in word:
        if letters and unicodedata.combining(character):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


def _headings(words: list[list[str]]) -> list[str]:
    """The words written downwards, ending next to the grid."""
    height = max(map(len, words), default=0)
    lines = []
    for line in range(height):
        letters = (word[line - height + len(word)] if line >= height - len(word) else " " for word in words)
        # Three columns a word; a wide letter takes the last two.
        lines.append("".join(f" {letter}" if columns(letter) == 2 else f"  {letter}" for letter in letters))
    return lines


# -- matplotlib

_INCH = 0.3  # of a cell
_MARKERS = {LINK: "s", CORRECT: "s", MISSED: "o", SPURIOUS: "x", POSSIBLE: "D"}


def plot(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float] | None = None,
    ax: Any = None,
) -> Any:
    """Matplotlib axes with source words down and target words across: `ax`, or the axes of a new figure."""
    ax = ax if ax is not None else _axes(len(source), len(target))
    from matplotlib.colors import to_rgba

    for tokens, axis in ((target, ax.xaxis), (source, ax.yaxis)):
        axis.set_ticks(range(len(tokens)), [clean(token) for token in tokens])
        for label in axis.get_ticklabels():
            label.set_parse_math(False)  # a pair of dollar signs would be read as mathematics
        axis.set_ticks([k - 0.5 for k in range(1, len(tokens))], minor=True)
    ax.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, rotation=90)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", alpha=0.3, linewidth=0.6)
    ax.set_xlim(-0.5, max(len(target), 1) - 0.5)
    ax.set_ylim(max(len(source), 1) - 0.5, -0.5)
    ax.set_aspect("equal")
    for kind in dict.fromkeys(links.values()):
        spots = [link for link, other in links.items() if other == kind]
        paint = [to_rgba(COLOURS[kind], opacity((confidence or {}).get(link, 1.0))) for link in spots]
        hollow = {"facecolors": "none", "edgecolors": paint} if kind in (MISSED, POSSIBLE) else {"color": paint}
        down, across = zip(*spots, strict=True)
        ax.scatter(across, down, s=90, marker=_MARKERS[kind], label=NAMES.get(kind, kind), zorder=3, **hollow)
    if set(links.values()) - {LINK}:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return ax


def _axes(rows: int, columns: int) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise JacanaError("plots need matplotlib: pip install 'jacana-torch[plot]'") from None
    size = (max(columns, 3) * _INCH + 2, max(rows, 3) * _INCH + 1)
    return plt.subplots(figsize=size, layout="constrained")[1]
