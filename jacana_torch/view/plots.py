"""Draw an alignment as a matplotlib plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import JacanaError
from .drawing import COLOURS, CORRECT, LINK, MISSED, NAMES, POSSIBLE, SPURIOUS, clean, opacity

if TYPE_CHECKING:
    from ..types import Link

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
