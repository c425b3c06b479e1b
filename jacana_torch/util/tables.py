"""Format tables as text, Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Line = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Sheet:
    """A table: `lines` of cells, each with marks (`*`) for the columns from `marked` on.

    The first `left` columns are words, the others numbers. A line with fewer cells than headings ends in a note
    instead of numbers. `title` goes above the table, `notes` below.
    """

    headings: Sequence[str]
    lines: Sequence[Line]
    notes: Sequence[str] = ()
    title: str = ""
    left: int = 1
    marked: int = 1
    _most: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_most", max((len(marks) for _, marks in self.lines), default=0))

    def marks(self, marks: Sequence[str]) -> list[str | None]:
        """Return the mark of each column; None if no line has a mark there."""
        found = [*marks, *[""] * (self._most - len(marks))]
        return [None] * self.marked + found + [None] * (len(self.headings) - self.marked - len(found))

    def has_note(self, cells: Sequence[str]) -> bool:
        """Whether a line ends in a note instead of numbers."""
        return len(cells) < len(self.headings)


def as_text(sheets: Sequence[Sheet]) -> str:
    return "\n\n".join("\n".join(_text_lines(sheet)) for sheet in sheets)


def _text_lines(sheet: Sheet) -> list[str]:
    lines: list[Line] = [(sheet.headings, ()), *sheet.lines]
    widths = [
        max(len(cells[k]) for cells, _ in lines if k < (len(cells) - 1 if sheet.has_note(cells) else len(cells)))
        for k in range(len(sheet.headings))
    ]
    out = [sheet.title] if sheet.title else []
    for cells, marks in lines:
        if sheet.has_note(cells):
            out.append("  ".join([*(f"{c:{w}}" for c, w in zip(cells[:-1], widths, strict=False)), cells[-1]]))
            continue
        row = []
        for k, (cell, width, mark) in enumerate(zip(cells, widths, sheet.marks(marks), strict=True)):
            row.append(
                f"{cell:{width}}" if k < sheet.left else f"{cell:>{width}}{'' if mark is None else f'{mark:2}'}"
            )
        out.append("  ".join(row))
    return [*out, *(["", *sheet.notes] if sheet.notes else [])]


def as_markdown(sheets: Sequence[Sheet]) -> str:
    return "\n\n".join(_markdown(sheet) for sheet in sheets)


def _markdown(sheet: Sheet) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    columns = len(sheet.headings)
    lines = [f"**{_markdown_cell(sheet.title)}**", ""] if sheet.title else []
    lines += [line(sheet.headings), line(["---"] * sheet.left + ["---:"] * (columns - sheet.left))]
    for cells, marks in sheet.lines:
        plain = [_markdown_cell(cell) for cell in cells] + [""] * (columns - len(cells))
        marked = ((mark or "").replace("*", r"\*") for mark in sheet.marks(marks))
        lines.append(line(f"{cell}{mark}" for cell, mark in zip(plain, marked, strict=True)))
    return "\n".join([*lines, "", *(f"{_markdown_cell(note)}.\n" for note in sheet.notes)]).rstrip("\n")


def _markdown_cell(text: str) -> str:
    return re.sub(r"([\\`*_|<\[])", r"\\\1", text)


def as_latex(sheets: Sequence[Sheet]) -> str:
    """For \\usepackage{booktabs}."""
    return "\n\n".join(_latex(sheet) for sheet in sheets)


def _latex(sheet: Sheet) -> str:
    columns = len(sheet.headings)
    lines = [rf"\begin{{tabular}}{{{'l' * sheet.left}{'r' * (columns - sheet.left)}}}", r"\toprule"]
    lines += [_latex_row(map(_latex_cell, sheet.headings)), r"\midrule"]
    for cells, marks in sheet.lines:
        plain = [_latex_cell(cell) for cell in cells]
        if sheet.has_note(cells):
            plain[-1] = rf"\multicolumn{{{columns - len(cells) + 1}}}{{l}}{{{plain[-1]}}}"
        else:
            found = sheet.marks(marks)
            plain = [f"{cell}$^{{{mark}}}$" if mark else cell for cell, mark in zip(plain, found, strict=True)]
        lines.append(_latex_row(plain))
    comments = [f"% {note}" for note in (*([sheet.title] if sheet.title else []), *sheet.notes)]
    return "\n".join([*comments, *lines, r"\bottomrule", r"\end{tabular}"])


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {c: rf"\{c}" for c in "#$%&_{}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    return "".join(special.get(c, c) for c in text)


FORMATS: Mapping[str, Callable[[Sequence[Sheet]], str]] = {
    "text": as_text, "markdown": as_markdown, "latex": as_latex,
}  # fmt: skip
