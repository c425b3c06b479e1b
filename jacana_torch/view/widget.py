"""Show an alignment in a notebook: a picture whose links open their reasons.

Reasons are `details` elements, which open without scripts. Where scripts run, a click on a curve opens its reasons
too. The script holds no data: words are escaped text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .drawing import clean
from .vector import svg

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..types import Link

LARGEST = 150  # links; the reasons of more are not written into a notebook
_SCRIPT = """<script>
for (const box of document.querySelectorAll("[data-jacana]:not([data-ready])")) {
  box.dataset.ready = "";
  const all = [...box.querySelectorAll("details[data-link]")];
  for (const path of box.querySelectorAll("path[data-link]")) {
    const details = all.find((one) => one.dataset.link === path.dataset.link);
    if (!details) continue;
    const reach = path.cloneNode();
    reach.setAttribute("stroke-width", 14);
    reach.setAttribute("stroke-opacity", 0);
    reach.removeAttribute("stroke-dasharray");
    reach.style.cursor = "pointer";
    reach.style.pointerEvents = "stroke";
    path.after(reach);
    const width = path.getAttribute("stroke-width");
    reach.addEventListener("click", () => { details.open = !details.open; });
    details.addEventListener("toggle", () => {
      path.setAttribute("stroke-width", details.open ? 4 : width);
      if (details.open) for (const other of all) if (other !== details) other.open = false;
    });
  }
}
</script>"""


def widget(
    source: Sequence[str],
    target: Sequence[str],
    links: Mapping[Link, str],
    confidence: Mapping[Link, float],
    explanation: Explanation | None,
) -> str:
    """HTML for a notebook; without an explanation, the picture alone."""
    picture = svg(source, target, links, confidence)
    if explanation is None or len(links) > LARGEST:
        return picture
    chips = []
    for i, j in links:
        link = explanation.link(i, j)
        if not link.reason:
            continue
        posterior = "" if (i, j) not in confidence else f" <small>{100 * confidence[i, j]:.1f} %</small>"
        words = f"{escape(clean(source[i]))} – {escape(clean(target[j]))}"
        chips.append(
            f'<details data-link="{i}-{j}" style="border:1px solid #8886;border-radius:12px;padding:1px 10px">'
            f'<summary style="cursor:pointer"><bdi>{words}</bdi>{posterior}</summary>'
            f'<p style="margin:4px 0">{escape(clean(link.reason))}</p>{_bars(link.to_dict()["groups"])}</details>'
        )
    if not chips:
        return picture
    row = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:4px 6px;font-size:13px;max-width:60em"
    return f'<div data-jacana>{picture}<div style="{row}">{"".join(chips)}</div>{_SCRIPT}</div>'


def _bars(groups: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(clean(group["title"]))}</td><td>{group["sum"]:+.2f}</td></tr>'
        for group in groups
    )
    return f'<table style="margin:0 0 4px">{rows}</table>'
