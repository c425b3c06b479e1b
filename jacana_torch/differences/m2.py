"""Write a difference in M2, the format of ERRANT: what to do to each source sentence to get the target.

Applying the edits of a block to its S line gives the target's tokens. A move is an unnecessary word (U:WO) where
it was and a missing one (M:WO) where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..features.wordlists import FUNCTION_KINDS, is_punctuation
from .edits import Edit
from .reasons import reason

if TYPE_CHECKING:
    from .document import Diff, Piece

_OF_REASONS = {"case": "ORTH", "notation": "ORTH", "spelling": "SPELL", "form": "MORPH", "punctuation": "PUNCT",
               "pronoun": "PRON"}  # fmt: skip
_OF_KINDS = {"determiner": "DET", "preposition": "PREP", "pronoun": "PRON", "auxiliary": "VERB"}
_NOOP = "A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0"


def m2(found: Diff) -> str:
    """One block for each pair of sentences, in the order of the second text."""
    return "".join(_block(piece) for piece in found.pieces)


def _block(piece: Piece) -> str:
    source = list(piece.source.tokens) if piece.paired.source else []
    target = list(piece.target.tokens) if piece.paired.target else []
    lines = [f"S {' '.join(source)}"]
    for first, last, kind, words in _changes(piece, source, target):
        lines.append(f"A {first} {last}|||{kind}|||{' '.join(words) or '-NONE-'}|||REQUIRED|||-NONE-|||0")
    return "\n".join([*(lines if len(lines) > 1 else [*lines, _NOOP]), "", ""])


def _changes(
    piece: Piece, source: Sequence[str], target: Sequence[str]
) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """The changes in the order of the source: its tokens first:last, a type, and what stands there instead."""
    if not source or not target:
        yield 0, len(source), "U:OTHER" if source else "M:OTHER", target
        return
    fixed = sorted((e for e in piece.edits if e.kind in ("keep", "substitute") and e.reason != "space"),
                   key=lambda e: e.source)  # fmt: skip
    moved = [e for e in piece.edits if e.kind == "move" and piece.paired.kind != "moved"]
    i = j = 0
    for edit in [*fixed, Edit("keep", (len(source),) * 2, (len(target),) * 2)]:
        old, new = source[i : edit.source[0]], target[j : edit.target[0]]
        if old:
            there = any(e.source[0] < edit.source[0] and e.source[1] > i for e in moved)
            yield i, edit.source[0], "U:WO" if there else f"U:{_class(old)}", ()
        if new:
            there = any(e.target[0] < edit.target[0] and e.target[1] > j for e in moved)
            yield edit.source[0], edit.source[0], "M:WO" if there else f"M:{_class(new)}", new
        i, j = edit.source[1], edit.target[1]
        yield from _replaced(edit, source, target)


def _replaced(
    edit: Edit, source: Sequence[str], target: Sequence[str]
) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    one, other = source[slice(*edit.source)], target[slice(*edit.target)]
    if edit.kind == "keep" and len(one) == len(other):
        for k, (old, new) in enumerate(zip(one, other, strict=True)):
            if old != new:
                yield edit.source[0] + k, edit.source[0] + k + 1, "R:ORTH", (new,)
    elif list(one) != list(other):
        why = edit.reason or reason(one, other)
        yield *edit.source, f"R:{_OF_REASONS.get(why) or _class(other)}", other


def _class(words: Sequence[str]) -> str:
    """ERRANT's category of inserted or deleted words, as far as words alone tell it."""
    if all(map(is_punctuation, words)):
        return "PUNCT"
    for kind, members in FUNCTION_KINDS.items():
        if all(word.lower() in members for word in words):
            return _OF_KINDS[kind]
    return "OTHER"
