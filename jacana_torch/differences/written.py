"""Write a difference as text: words marked as `git diff --word-diff` does, or sentences as `diff -u` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from .edits import Edit

if TYPE_CHECKING:
    from .document import Diff, Piece

Mark = tuple[str, str, str]  # what stands before and after the words, and the colour of a terminal
_OLD, _NEW = ("[-", "-]", "31"), ("{+", "+}", "32")
_FROM, _TO = ("[<", "<]", "35"), ("{>", ">}", "36")
_AROUND = 1  # unchanged sentences shown before and after a changed one


def words(found: Diff, color: bool = False, context: int | None = None) -> str:
    """The second text with the changes in place; what moved is marked where it is.

    `context`: only lines with changes, so many lines around them, and @@ where others are left out.
    """
    parts = _marked_parts(found)
    if context is None:
        return "".join(text if mark is None else _marked(text, mark, color) for text, mark in parts)
    lines, changed = [""], set()
    for text, mark in parts:
        for number, line in enumerate(
            text.split("\n") if mark is None else _marked(text, mark, color).split("\n")
        ):
            if number:
                lines.append("")
            lines[-1] += line
            if mark is not None and line:
                changed.add(len(lines) - 1)
    shown = {k for line in changed for k in range(line - context, line + context + 1)}
    out: list[str] = []
    for number, line in enumerate(lines):
        if number in shown and (number < len(lines) - 1 or line):
            if number and number - 1 not in shown:
                out.append(_colored("@@", "36", color))
            out.append(line)
    return "\n".join([*out, ""]) if out else ""


def _marked_parts(found: Diff) -> Iterator[tuple[str, Mark | None]]:
    """The second text with what is gone, in parts, and how each of them is marked."""
    at = 0  # in the second text
    for piece in found.pieces:
        if not piece.paired.target:
            yield from _gone(found.a, _whole(piece, 0), begun=at > 0)
            continue
        start, end = _whole(piece, 1)
        yield found.b[at:start], None
        yield from _joined(_inside(found, piece, start, end), _TO if piece.paired.kind == "moved" else None)
        at = end
    yield found.b[at:], None


def _gone(text: str, place: tuple[int, int], begun: bool) -> Iterator[tuple[str, Mark | None]]:
    """A deleted sentence, with the space before it, which puts it on a line of its own if it had one.

    Unless anything of the second text was written yet: then the space after it.
    """
    first, last = place
    if begun:
        while first and text[first - 1].isspace():
            first -= 1
        yield text[first : place[0]] or " ", None
    yield text[slice(*place)], _OLD
    if not begun:
        while last < len(text) and text[last].isspace():
            last += 1
        yield text[place[1] : last] or " ", None


def _joined(parts: Iterable[tuple[str, Mark | None]], plain: Mark | None) -> Iterator[tuple[str, Mark | None]]:
    """The parts; neighbours without a mark together, their words marked as `plain`."""
    for mark, some in groupby(parts, key=lambda part: part[1]):
        texts = [text for text, _ in some]
        if mark is not None:
            yield from ((text, mark) for text in texts)
            continue
        text = "".join(texts)
        words = text.strip()
        start = text.index(words)
        yield text[:start], None
        yield words, plain if words else None
        yield text[start + len(words) :], None


def _inside(found: Diff, piece: Piece, start: int, end: int) -> Iterator[tuple[str, Mark | None]]:
    """The text of one piece in parts, and how its changed words are marked."""
    whole = piece.paired.kind == "moved"  # its first edit is the sentence
    at = start
    for edit in piece.edits[whole:]:
        source, target = found.places(piece, edit)
        old = "" if source is None else found.a[slice(*source)]
        if edit.reason == "space":
            continue
        if target is not None:
            if target[0] < at:
                continue
            yield found.b[at : target[0]], None
            new = found.b[slice(*target)]
            at = target[1]
        if edit.kind == "keep":
            yield new, None
        elif edit.kind == "move":
            yield new, _TO
        elif edit.kind == "insert":
            yield new, _NEW
        elif edit.kind == "substitute":
            if source and target and _after_space(found.a, source[0]) and not _after_space(found.b, target[0]):
                old = f" {old}"  # It [- is-]{+'s+}
            yield old, _OLD
            yield new, _NEW
        else:
            if at > start:
                yield " ", None
            yield old, _OLD
            if at == start:
                yield " ", None
    yield found.b[at:end], None


def _marked(text: str, mark: Mark, color: bool) -> str:
    before, after, number = mark
    if not color:
        return f"{before}{text}{after}"
    lines = text.split("\n")  # a pager starts each line anew
    return "\n".join(f"\x1b[{number}m{line}\x1b[m" if line else line for line in lines)


def _after_space(text: str, place: int) -> bool:
    return place > 0 and text[place - 1].isspace()


def _whole(piece: Piece, side: int) -> tuple[int, int]:
    offsets = (piece.source, piece.target)[side].offsets
    assert offsets
    return offsets[0][0], offsets[-1][1]


def unified(found: Diff, color: bool = False) -> str:
    """One line per sentence: - what was, + what is, and what is unchanged around it."""
    shown: set[int] = set()
    for k, piece in enumerate(found.pieces):
        if piece.changed:
            shown.update(range(k - _AROUND, k + _AROUND + 1))
    out: list[str] = []
    last = -1
    for k, piece in enumerate(found.pieces):
        if k not in shown:
            continue
        if k != last + 1 or not out:
            source, target = (side[0] + 1 if side else 0 for side in (piece.paired.source, piece.paired.target))
            out.append(_colored(f"@@ -{source} +{target} @@", "36", color))
        last = k
        out += _lines(found, piece, color)
    return "\n".join([*out, ""]) if out else ""


def _lines(found: Diff, piece: Piece, color: bool) -> Iterator[str]:
    old = " ".join(found.a[slice(*_whole(piece, 0))].split()) if piece.paired.source else None
    new = " ".join(found.b[slice(*_whole(piece, 1))].split()) if piece.paired.target else None
    if not piece.changed:
        yield f" {new}"
        return
    if old is not None:
        yield _colored(f"-{old}", "31", color)
    if new is not None:
        moved = piece.paired.kind == "moved"
        yield _colored(f"{'>' if moved else '+'}{new}", "36" if moved else "32", color)


def _colored(line: str, number: str, color: bool) -> str:
    return f"\x1b[{number}m{line}\x1b[m" if color else line


def said(edit: Edit) -> str:
    """What an edit is, for people: `substitute (synonym, 0.93)`."""
    more = [edit.reason] if edit.reason else []
    if edit.probability is not None:
        more.append(f"{edit.probability:.2f}")
    return f"{edit.kind} ({', '.join(more)})" if more else edit.kind
