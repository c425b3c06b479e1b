"""One HTML page of a difference, that needs no other file, no script and no network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .reasons import REASONS
from .written import said

if TYPE_CHECKING:
    from .document import Diff, Piece
    from .edits import Edit

_STYLE = """
:root { color-scheme: light dark; background: var(--page); color: var(--ink);
  --page: #fff; --ink: #1b1b1b;
  --old: #b3261e; --new: #146c2e; --moved: #5b3fa8; --sub: #8a5a00; --soft: #ededed; }
@media (prefers-color-scheme: dark) {
  :root { --page: #121212; --ink: #eee; --soft: #2a2a2a;
    --old: #ff8a80; --new: #7ddc92; --moved: #c0adff; --sub: #ffca66; }
}
body { font: 16px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
.row { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2rem;
  padding: .35rem .6rem; border-left: 4px solid #0000; }
.row > p { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
.changed, .split, .merged, .moved, .inserted, .deleted { border-color: var(--sub); background: var(--soft); }
.moved { border-color: var(--moved); }
.inserted { border-color: var(--new); }
.deleted { border-color: var(--old); }
del { color: var(--old); }
ins { color: var(--new); text-decoration: underline; }
.sub { color: var(--sub); text-decoration: underline dotted; }
.mov { color: var(--moved); text-decoration: underline wavy; }
.kind { font-size: .75rem; opacity: .7; grid-column: 1 / -1; }
ul { list-style: none; padding: 0; display: flex; gap: 1.5rem; flex-wrap: wrap; }
@media (max-width: 40rem) {
  .row { grid-template-columns: 1fr; gap: .2rem; }
  .same > p:first-child { display: none; }
}
"""
_TAGS = {"delete": ("del", ""), "insert": ("ins", ""), "substitute": ("span", "sub"), "move": ("span", "mov")}


def page(found: Diff, title: str) -> str:
    """The page: both texts side by side, sentence by sentence; a word's title says why."""
    counts: dict[str, int] = {}
    for _, edit in found.changes:
        counts[edit.kind] = counts.get(edit.kind, 0) + 1
    summary = "".join(f"<li><b>{n}</b> {kind}</li>" for kind, n in sorted(counts.items())) or "<li>no changes</li>"
    rows = "".join(_row(found, piece) for piece in found.pieces)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><ul>{summary}</ul></header><main>{rows}</main></body></html>\n"
    )


def _row(found: Diff, piece: Piece) -> str:
    kind = piece.paired.kind
    sides = "".join(f"<p>{_side(found, piece, side)}</p>" for side in (0, 1))
    note = f'<span class="kind">{kind}</span>' if kind in ("moved", "split", "merged") else ""
    return f'<div class="row {kind}">{note}{sides}</div>'


def _side(found: Diff, piece: Piece, side: int) -> str:
    """The text of one side with its changed words marked."""
    sentence = (piece.source, piece.target)[side]
    text = (found.a, found.b)[side]
    if not sentence.offsets or not (piece.paired.source, piece.paired.target)[side]:
        return ""
    out, at = [], sentence.offsets[0][0]
    placed = []
    for edit in piece.edits:
        place = found.places(piece, edit)[side]
        whole = piece.paired.kind == "moved" and edit.kind == "move"
        if place is not None and edit.kind != "keep" and edit.reason != "space" and not whole:
            placed.append((place, edit))
    for (start, end), edit in sorted(placed, key=lambda one: one[0]):
        if start < at:
            continue
        out.append(escape(text[at:start]))
        out.append(_marked(text[start:end], edit))
        at = end
    out.append(escape(text[at : sentence.offsets[-1][1]]))
    return "".join(out)


def _marked(words: str, edit: Edit) -> str:
    tag, name = _TAGS[edit.kind]
    why = f"{said(edit)}: {edit.before} → {edit.after}" if edit.kind == "substitute" else said(edit)
    if edit.reason in REASONS:
        why += f" ({REASONS[edit.reason]})"
    attribute = f' class="{name}"' if name else ""
    return f'<{tag}{attribute} title="{escape(why, quote=True)}">{escape(words)}</{tag}>'
