"""The difference of two texts: sentences paired, their words aligned, and the links as typed edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aligners.bidirectional import Bidirectional
from ..errors import ConfigError, PairTypeError
from ..types import Alignment, Sentence, SentencePair
from .edits import Edit, edits
from .pairing import Block, Paired
from .sentence_pairs import bare, paired_sentences
from .splitting import sentences

if TYPE_CHECKING:
    from ..model.model import Model

_MOST_CELLS = 30_000_000  # sentences of one text times those of the other: a gigabyte


@dataclass(frozen=True)
class Piece:
    """Paired sentences and the edits of their words. The tokens of several sentences are counted through."""

    paired: Paired
    source: Sentence
    target: Sentence
    edits: Sequence[Edit]

    @property
    def changed(self) -> bool:
        return self.paired.kind != "same"


@dataclass(frozen=True)
class Diff:
    """The edits between two texts. `pieces` come in the order of the second text."""

    a: str
    b: str
    pieces: Sequence[Piece]
    model: str = ""
    source_sentences: Sequence[Sentence] = field(default=(), repr=False)
    target_sentences: Sequence[Sentence] = field(default=(), repr=False)

    @property
    def edits(self) -> list[Edit]:
        """All edits of words, those of what is kept too."""
        return [edit for piece in self.pieces for edit in piece.edits]

    @property
    def changes(self) -> list[tuple[Piece, Edit]]:
        """Every edit that changes something, with its sentences; a moved sentence is one edit of kind move."""
        return [
            (piece, edit) for piece in self.pieces for edit in piece.edits if edit.kind != "keep" or edit.reason
        ]

    def __bool__(self) -> bool:
        """Whether the texts differ."""
        return bool(self.changes)

    def places(self, piece: Piece, edit: Edit) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Where the edit lies in either text, as (start, end) in characters; None where there is nothing."""
        return _place(piece.source, edit.source), _place(piece.target, edit.target)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the paired sentences, and the changes with their places in the texts."""
        found = []
        for piece in self.pieces:
            own = []
            for edit in piece.edits:
                source, target = self.places(piece, edit)
                own.append({**edit.to_dict(), "source": _listed(source), "target": _listed(target)})
            sides = {"source_sentences": list(piece.paired.source), "target_sentences": list(piece.paired.target)}
            found.append({"kind": piece.paired.kind, **sides, "edits": own})
        counts: dict[str, int] = {}
        for _, edit in self.changes:
            counts[edit.kind] = counts.get(edit.kind, 0) + 1
        return {"model": self.model, "changes": counts, "pieces": found}

    def to_text(self, color: bool = False, context: int | None = None) -> str:
        """Return the second text with the changes marked, as `git diff --word-diff` marks them.

        `context`: only the lines with changes, and so many around them.
        """
        from .written import words

        return words(self, color, context)

    def to_unified(self, color: bool = False) -> str:
        """Return lines with - and + for changed sentences, as in `diff -u`, and unchanged ones around them."""
        from .written import unified

        return unified(self, color)

    def to_m2(self) -> str:
        """Return the changes of each sentence in M2, the format of ERRANT."""
        from .m2 import m2

        return m2(self)

    def to_html(self, title: str = "Difference") -> str:
        """Return a page that needs no other file."""
        from .page import page

        return page(self, title)


def diff(a: str, b: str, model: Model | str | None = None, *, case: bool = False, space: bool = False) -> Diff:
    """Return the difference of two texts.

    `model` is a model, its name or directory; None takes the best that runs quickly here. With `case`, words that
    differ in case alone are changes; with `space`, so is another space between words that are kept.
    """
    for name, text in (("a", a), ("b", b)):
        if not isinstance(text, str):
            raise PairTypeError(f"{name} is a {type(text).__name__}, not a string")
    aligner, name = loaded(model)
    left, right = sentences(a), sentences(b)
    if len(left) * len(right) > _MOST_CELLS:
        raise ConfigError(
            f"texts of {len(left):,} and {len(right):,} sentences are too long ({_MOST_CELLS:,} pairs of them are "
            "the limit): split them at chapters"
        )
    pairs, found, shared = paired_sentences(left, right, aligner)
    pieces = []
    cells = _posteriors(aligner, pairs, left, right, found)
    for some in pairs:
        source, target = _joined(left, some.source), _joined(right, some.target)
        own, kind = _edits(some, source, target, found, cells, shared)
        own = _finished(own, source, target, (a, b), case, space)
        if kind == "changed" and all(edit.kind == "keep" and not edit.reason for edit in own):
            kind = "same"
        pieces.append(Piece(replace(some, kind=kind), source, target, own))
    return Diff(a, b, pieces, name, left, right)


def pair_sentences(a: str, b: str, model: Model | str | None = None) -> list[tuple[str, list[str], list[str]]]:
    """Pair the sentences of two texts: (kind, sentences of a, sentences of b), in the order of b.

    `kind` is same, changed, split (one became two), merged, moved, deleted or inserted.
    """
    found = diff(a, b, model)
    out = []
    for piece in found.pieces:
        sides = []
        for text, every, own in (
            (a, found.source_sentences, piece.paired.source), (b, found.target_sentences, piece.paired.target)
        ):  # fmt: skip
            sides.append([_text(text, every[k]) for k in own])
        out.append((piece.paired.kind, *sides))
    return out  # type: ignore[return-value]


def loaded(model: Model | str | None) -> tuple[Model, str]:
    from ..model import persist
    from ..model.model import Model

    if isinstance(model, Model):
        return model, model.origin.named if model.origin is not None else type(model.aligner).__name__
    name = model if model is not None else persist.best_and_skipped()[0]
    return persist.load(name), str(name)


# -- edits of words


def _posteriors(
    model: Model,
    pairs: Sequence[Paired],
    left: Sequence[Sentence],
    right: Sequence[Sentence],
    found: Mapping[Block, Alignment],
) -> Mapping[Block, np.ndarray]:
    """[M, N] the probability of each cell of the paired sentences, if the model's aligner computes them."""
    blocks = [block for some in pairs if some.source and some.target and (block := _block(some)) in found]
    if not isinstance(model.aligner, Bidirectional) or not blocks:
        return {}
    own = [SentencePair(bare(left, b[0], b[1]), bare(right, b[2], b[3])) for b in blocks]
    cells = model.aligner.posteriors(model.prepare(own))
    return {} if cells is None else dict(zip(blocks, cells, strict=True))


def _block(some: Paired) -> Block:
    return some.source[0], some.source[-1] + 1, some.target[0], some.target[-1] + 1


def _edits(
    some: Paired,
    source: Sentence,
    target: Sentence,
    found: Mapping[Block, Alignment],
    cells: Mapping[Block, np.ndarray],
    shared: tuple[np.ndarray, np.ndarray],
) -> tuple[list[Edit], str]:
    """The edits of paired sentences, without what case and space add; and the kind of the pair.

    A sentence that is new or gone rests on the share of its words that no sentence of the other text aligns.
    """
    if not some.source or not some.target:
        spans = (0, len(source)), (0, len(target))
        kind = "insert" if some.target else "delete"
        new = 1 - float(shared[1][some.target[0]] if some.target else shared[0][some.source[0]])
        return [Edit(kind, *spans, _words(source, spans[0]), _words(target, spans[1]), "", new)], some.kind
    block = _block(some)
    alignment = found.get(block)
    if alignment is None:  # the same words
        links = [(k, k) for k in range(len(source))]
        own = edits(source.tokens, target.tokens, links)
    else:
        own = edits(source.tokens, target.tokens, alignment.sure, alignment.confidence, cells.get(block))
    if some.kind == "moved":
        whole = Edit("move", (0, len(source)), (0, len(target)), str(source), str(target), "", _mean(alignment))
        return [whole, *own], "moved"
    return own, some.kind


def _mean(alignment: Alignment | None) -> float:
    if alignment is None or not alignment.confidence:
        return 1.0
    return sum(alignment.confidence.values()) / len(alignment.confidence)


def _finished(
    own: Sequence[Edit], source: Sentence, target: Sentence, texts: tuple[str, str], case: bool, space: bool
) -> list[Edit]:
    """Add changes of case and space, if they are asked for."""
    out: list[Edit] = []
    for edit in own:
        if edit.kind == "keep" and edit.reason in ("case", "notation"):
            edit = replace(edit, kind="substitute") if case or edit.reason != "case" else replace(edit, reason="")
        if edit.kind == "keep" and not edit.reason and space:
            out += _spaced(edit, source, target, texts)
        else:
            out.append(edit)
    return out


def _spaced(edit: Edit, source: Sentence, target: Sentence, texts: tuple[str, str]) -> list[Edit]:
    """Cut what is kept where the space between two words differs."""
    out, first = [], 0
    size = edit.source[1] - edit.source[0]
    for k in range(1, size + 1):
        gaps = []
        if k < size:
            for text, sentence, start in ((texts[0], source, edit.source[0]), (texts[1], target, edit.target[0])):
                assert sentence.offsets is not None
                gaps.append(text[sentence.offsets[start + k - 1][1] : sentence.offsets[start + k][0]])
        if k < size and gaps[0] == gaps[1]:
            continue
        spans = tuple((start + first, start + k) for start in (edit.source[0], edit.target[0]))
        out.append(
            replace(
                edit,
                source=spans[0],
                target=spans[1],
                before=_words(source, spans[0]),
                after=_words(target, spans[1]),
            )
        )
        if k < size:
            here = tuple((start + k - 1, start + k + 1) for start in (edit.source[0], edit.target[0]))
            out.append(Edit("substitute", here[0], here[1], gaps[0], gaps[1], "space", edit.probability))
        first = k
    return out


# -- places


def _joined(every: Sequence[Sentence], numbers: Sequence[int]) -> Sentence:
    if len(numbers) == 1:
        return every[numbers[0]]
    tokens = [token for k in numbers for token in every[k].tokens]
    return Sentence(tokens, offsets=[place for k in numbers for place in every[k].offsets or ()])


def _words(sentence: Sentence, span: tuple[int, int]) -> str:
    return " ".join(sentence.tokens[slice(*span)])


def _place(sentence: Sentence, span: tuple[int, int]) -> tuple[int, int] | None:
    if span[0] == span[1] or sentence.offsets is None:
        return None
    return sentence.offsets[span[0]][0], sentence.offsets[span[1] - 1][1]


def _listed(place: tuple[int, int] | None) -> list[int] | None:
    return None if place is None else list(place)


def _text(text: str, sentence: Sentence) -> str:
    assert sentence.offsets is not None
    return text[sentence.offsets[0][0] : sentence.offsets[-1][1]]
