"""The models of a server, and what it has them do: a question and pairs in, an answer for each pair out.

Alignments are the lines that `jacana-torch align --to jsonl` writes, made by the same calls. (The last digits of a
probability depend on what else is in its batch, there as here.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..aligners.base import Directional, Explains
from ..corpora import jsonl
from ..symmetrize import SYMMETRIZERS
from ..types import Alignment, Example, Link, Sentence, SentencePair

if TYPE_CHECKING:
    from ..model.model import Model

OVERHEAD = 100  # cells whose work a pair costs by being there


@dataclass(frozen=True)
class Question:
    """`symmetrize` is None for the model's own way."""

    model: str
    symmetrize: str | None = None


@dataclass(frozen=True)
class Alignments(Question):
    confidence: bool = True


@dataclass(frozen=True)
class Explanations(Question):
    """Of all links, or of one `link`, there or not; `top` reasons of each list."""

    link: Link | None = None
    top: int | None = None


def spelt(symmetrizer: str) -> str:
    """A symmetrizer's name in one spelling, the command line's."""
    return symmetrizer.strip().lower().replace("_", "-")


def cost(pair: SentencePair) -> int:
    """What a pair costs to align, in cells of its grid."""
    return OVERHEAD + len(pair.source) * len(pair.target)


class Models:
    """Loaded models by the names that clients know; the first is the one for those who name none."""

    def __init__(self, models: Mapping[str, Model], descriptions: Mapping[str, str] | None = None) -> None:
        self._models, self._descriptions = dict(models), dict(descriptions or {})
        self.names = list(self._models)

    def symmetrizes(self, name: str) -> bool:
        return isinstance(self._models[name].aligner, Directional)

    def explains(self, name: str) -> bool:
        return isinstance(self._models[name].aligner, Explains)

    def listed(self) -> list[dict[str, Any]]:
        """What a client may want to know of each."""
        return [
            {
                "name": name,
                "description": self._descriptions.get(name, ""),
                "symmetrize": self._own_symmetrizer(name),
                "symmetrizers": list(map(spelt, SYMMETRIZERS)) if self.symmetrizes(name) else [],
                "explains": self.explains(name),
            }
            for name in self.names
        ]

    def _own_symmetrizer(self, name: str) -> str | None:
        aligner = self._models[name].aligner
        return spelt(aligner.symmetrizer_name) if isinstance(aligner, Directional) else None

    def __call__(self, question: Question, pairs: Sequence[SentencePair]) -> list[Any]:
        model = self._models[question.model]
        if isinstance(question, Alignments):
            return _aligned(model, question, pairs)
        assert isinstance(question, Explanations)
        return [_explained(model, question, pair) for pair in pairs]


def _aligned(model: Model, question: Alignments, pairs: Sequence[SentencePair]) -> list[str]:
    # A side without words has no links, and nobody needs to know what nothing looks like.
    worded = [pair for pair in pairs if pair.source.tokens and pair.target.tokens]
    ready = model.prepare(worded)
    found = iter(zip(ready, model.align(ready, question.symmetrize, question.confidence), strict=True))
    lines = []
    for pair in pairs:
        done, alignment = pair, Alignment(len(pair.source), len(pair.target))
        if pair.source.tokens and pair.target.tokens:
            done, alignment = next(found)
        lines.append(_line(SentencePair(_bare(done.source), _bare(done.target), pair.id), alignment))
    return lines


def _line(pair: SentencePair, alignment: Alignment) -> str:
    (line,) = jsonl.write([Example(pair, alignment)])
    return line.rstrip("\n")


def _bare(sentence: Sentence) -> Sentence:
    return Sentence(sentence.tokens)


def _explained(model: Model, question: Explanations, pair: SentencePair) -> dict[str, Any]:
    explanation = model.explain(pair, question.symmetrize)
    links = explanation.links() if question.link is None else [explanation.link(*question.link)]
    return {
        "source": list(explanation.pair.source.tokens),
        "target": list(explanation.pair.target.tokens),
        "score": explanation.alignment.score,
        "symmetrize": explanation.symmetrizer,
        "note": explanation.note,
        "links": [link.to_dict(question.top) for link in links],
    }
