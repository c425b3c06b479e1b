"""The models of a server, and their answers to questions about pairs.

Alignments are the lines that `jacana-torch align --to jsonl` writes, produced by the same calls. In both, the last
digits of a probability depend on the other pairs in its batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..aligners.base import Directional, Explains
from ..corpora import jsonl
from ..errors import PairError
from ..symmetrize import functions
from ..types import Alignment, Example, Link, Sentence, SentencePair

if TYPE_CHECKING:
    from ..model.model import Model

Answer = str | PairError

OVERHEAD = 100  # cost of a pair besides its cells, in cells
EXPLAINING = 5  # times what aligning costs
ORDINARY = 8  # letters: longer words cost more
PER_LETTER = 0.25  # cells, for each letter of a word and each word that it is compared with


@dataclass(frozen=True)
class Question:
    """What a request asks for; equal questions share batches. `symmetrize` None is the model's default."""

    model: str
    symmetrize: str | None = None


@dataclass(frozen=True)
class Alignments(Question):
    confidence: bool = True


@dataclass(frozen=True)
class Explanations(Question):
    """Explain all links, or the two words of `link`, with at most `top` reasons in each list."""

    link: Link | None = None
    top: int | None = None


def spelt(symmetrizer: str) -> str:
    """Spell a symmetrizer's name as the command line does."""
    return symmetrizer.strip().lower().replace("_", "-")


def cost(question: Question, pair: SentencePair) -> int:
    """Estimate what a pair costs, in cells of its grid."""
    source, target = pair.source.tokens, pair.target.tokens
    cells = len(source) * len(target)
    letters = sum(map(len, source)) * len(target) + sum(map(len, target)) * len(source)
    long = PER_LETTER * max(0, letters - 2 * ORDINARY * cells)
    return (OVERHEAD + cells + int(long)) * (EXPLAINING if isinstance(question, Explanations) else 1)


class Models:
    """Loaded models by name; a request that names none gets the first."""

    def __init__(self, models: Mapping[str, Model], descriptions: Mapping[str, str] | None = None) -> None:
        self._models, self._descriptions = dict(models), dict(descriptions or {})
        self.names = list(self._models)

    def symmetrizes(self, name: str) -> bool:
        return isinstance(self._models[name].aligner, Directional)

    def explains(self, name: str) -> bool:
        return isinstance(self._models[name].aligner, Explains)

    def listed(self) -> list[dict[str, Any]]:
        """Describe each model for clients, as plain data."""
        out = []
        for name, model in self._models.items():
            aligner = model.aligner
            own = spelt(aligner.symmetrizer_name) if isinstance(aligner, Directional) else None
            out.append(
                {
                    "name": name,
                    "description": self._descriptions.get(name, ""),
                    "symmetrize": own,
                    "symmetrizers": [] if own is None else list(map(spelt, functions())),
                    "explains": self.explains(name),
                }
            )
        return out

    def check(self, question: Question, pair: SentencePair) -> None:
        """Raise a PairError if the model does not take such a pair."""
        self._models[question.model].limits.check(pair)

    def __call__(self, question: Question, pairs: Sequence[SentencePair]) -> list[Answer]:
        """One answer per pair: a line of JSON, or an error if the pair cannot be aligned."""
        try:
            return self._answers(question, pairs)
        except PairError as error:
            if len(pairs) == 1:
                return [error]
            half = len(pairs) // 2
            return [*self(question, pairs[:half]), *self(question, pairs[half:])]

    def _answers(self, question: Question, pairs: Sequence[SentencePair]) -> list[Answer]:
        model = self._models[question.model]
        if isinstance(question, Alignments):
            return [*_aligned(model, question, pairs)]
        assert isinstance(question, Explanations)
        return [_explained(model, question, pair) for pair in pairs]


def _aligned(model: Model, question: Alignments, pairs: Sequence[SentencePair]) -> list[str]:
    # Pairs with an empty side have no links, and models need not handle them.
    ready = model.prepare([pair for pair in pairs if pair.source.tokens and pair.target.tokens])
    found = iter(zip(ready, model.align(ready, question.symmetrize, question.confidence), strict=True))
    lines = []
    for pair in pairs:
        done, alignment = pair, Alignment(len(pair.source), len(pair.target))
        if pair.source.tokens and pair.target.tokens:
            done, alignment = next(found)
        bare = _bare(done, pair.id)
        lines.append(jsonl.line_of(Example(bare, alignment)).rstrip("\n"))
    return lines


def _bare(done: SentencePair, name: str | None) -> SentencePair:
    """Return a pair without layers."""
    source, target = (Sentence(side.tokens, text=side.text) for side in (done.source, done.target))
    return SentencePair(source, target, name)


def _explained(model: Model, question: Explanations, pair: SentencePair) -> str:
    explanation = model.explain(pair, question.symmetrize)
    links = explanation.links() if question.link is None else [explanation.link(*question.link)]
    answer = {
        "model": question.model,
        "source": list(explanation.pair.source.tokens),
        "target": list(explanation.pair.target.tokens),
        **explanation.pair.offsets,
        "score": explanation.alignment.score,
        "symmetrize": explanation.symmetrizer,
        "note": explanation.note,
        "method": explanation.method,
        "links": [link.to_dict(question.top, cells=question.link is not None) for link in links],
    }
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)


def joined(question: Question, answers: Sequence[str]) -> bytes:
    """Make the body of a response of the answers about its pairs."""
    if isinstance(question, Explanations):
        return answers[0].encode()
    head = json.dumps({"model": question.model}, ensure_ascii=False)
    return f'{head[:-1]}, "alignments": [{", ".join(answers)}]}}'.encode()
