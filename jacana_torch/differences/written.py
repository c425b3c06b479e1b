"""Write a difference as text: words marked as `git diff --word-diff` does, or sentences as `diff -u` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .edits import Edit

if TYPE_CHECKING:
    from .document import Diff, Piece

# kind: what stands before and after the words, and the colour of a terminal
_OLD, _NEW = ("[-", "-]", "31"), ("{+", "+}", "32")
_FROM, _TO = ("[<", "<]", "35"), ("{>", ">}", "36")
_AROUND = 1  # unchanged sentences shown before and after a changed one


def words(found: Diff, color: bool = False) -> str:
    """The second text with the changes in place; what only moved is marked where it was and where it is."""
    out: list[str] = []
    at = 0  # in the second text
    for piece in found.pieces:
        if not piece.paired.target:
            gone = found.a[slice(*_whole(piece, 0))]
            out.append(
                ("" if not out or out[-1].endswith(("\n", " ")) else " ") + _marked(gone, _OLD, color) + " "
            )
            continue
        start, end = _whole(piece, 1)
        out.append(found.b[at:start])
        if piece.paired.kind == "moved":
            out.append(_marked(found.b[start:end], _TO, color))
        else:
            out.append("".join(_inside(found, piece, start, end, color)))
        at = end
    out.append(found.b[at:])
    return "".join(out)


def _inside(found: Diff, piece: Piece, start: int, end: int, color: bool) -> Iterator[str]:
    """The text of one piece, with the changed words marked."""
    at = start
    for edit in piece.edits:
        source, target = found.places(piece, edit)
        old = "" if source is None else found.a[slice(*source)]
        if edit.reason == "space":
            continue
        if target is not None:
            if target[0] < at:
                continue
            yield found.b[at : target[0]]
            new = found.b[slice(*target)]
            at = target[1]
        if edit.kind == "keep":
            yield new
        elif edit.kind == "move":
            yield _marked(new, _TO, color)
        elif edit.kind == "insert":
            yield _marked(new, _NEW, color)
        elif edit.kind == "substitute":
            yield _marked(old, _OLD, color) + _marked(new, _NEW, color)
        else:
            if at > start:
                yield " "
            yield _marked(old, _OLD, color)
            if at == start:
                yield " "
    yield found.b[at:end]


def _marked(text: str, mark: tuple[str, str, str], color: bool) -> str:
    before, after, number = mark
    if not color:
        return f"{before}{text}{after}"
    lines = text.split("\n")  # a pager starts each line anew
    return "\n".join(f"\x1b[{number}m{line}\x1b[m" if line else line for line in lines)


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
