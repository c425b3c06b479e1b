"""A model is an annotator and an aligner: strings, tokens or annotated pairs in, alignments out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..aligners.base import Aligner, CannotExplain, Directional, Explains, LinksOnly, Trainable
from ..annotate import Annotator
from ..annotate.tokenize import tokenize
from ..errors import ConfigError, JacanaError
from ..explain import Explanation
from ..types import PROVIDERS, Alignment, Sentence, SentencePair, resources_of

Side = str | Sequence[str] | Sentence
Annotate = Callable[[Sequence[SentencePair]], list[SentencePair]]


def as_pair(pair: SentencePair | tuple[Side, Side]) -> SentencePair:
    """Strings are tokenised, lists of tokens taken as they are."""
    if isinstance(pair, SentencePair):
        return pair
    if isinstance(pair, str) or len(pair) != 2:
        raise ConfigError(f"a pair is two sentences, each a string or a list of tokens, not {str(pair)[:80]!r}")
    return SentencePair(_as_sentence(pair[0]), _as_sentence(pair[1]))


def _links_alone(alignment: Alignment) -> Alignment:
    if alignment.score is None and not alignment.confidence:
        return alignment
    return replace(alignment, confidence={}, score=None)


def _as_sentence(side: Side) -> Sentence:
    if isinstance(side, Sentence):
        return side
    if isinstance(side, str):
        return Sentence(tokenize(side), text=side)
    tokens = tuple(side)
    if not all(isinstance(token, str) for token in tokens):
        raise ConfigError(f"tokens are strings; got {str(side)[:80]!r}")
    return Sentence(tokens)


@dataclass(frozen=True)
class _Explainer:
    """What alignments of one call of `align` ask for reasons; it holds no features."""

    model: Model
    symmetrize: str | None

    def __call__(self, alignment: Alignment) -> Explanation:
        explanation = self.model.explain(alignment.pair, self.symmetrize)
        if explanation.alignment != alignment:
            raise JacanaError("the model has changed since it made this alignment: align the pair again")
        return explanation


@dataclass
class Model:
    """`annotate` fills the layers that `aligner` reads; pairs that have them already are left alone."""

    aligner: Aligner
    annotate: Annotate | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.aligner, Aligner):
            raise ConfigError(f"a model needs an aligner, and {type(self.aligner).__name__} is none")
        if self.annotate is not None and not callable(self.annotate):
            raise ConfigError(f"{type(self.annotate).__name__} is no annotator")

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(self.aligner.requires)

    @property
    def resources(self) -> tuple[str, ...]:
        """Linguistic data that it reads; the annotator's only where the aligner reads any layer at all."""
        return resources_of(self.aligner, self.annotate) if self.requires else resources_of(self.aligner)

    def check(self) -> None:
        """Before any work: does the annotator fill what the aligner reads, and is their data on this machine?"""
        from .. import resources

        provided = self.annotate.provides if isinstance(self.annotate, Annotator) else ()
        lacking = [layer for layer in self.requires if layer not in provided]
        if provided and lacking:  # without an annotator, corpora may bring their layers
            able = [set(PROVIDERS.get(layer, ())) for layer in lacking]
            others = sorted(set.intersection(*able))
            advice = (
                f"annotate={' or annotate='.join(others)} does" if others else "no annotator that we know does"
            )
            raise ConfigError(
                f"the features read {', '.join(self.requires)}, and {type(self.annotate).__name__} does not fill "
                f"{', '.join(lacking)} (it fills {', '.join(provided) or 'nothing'}): {advice}"
            )
        for name in self.resources:
            resources.path(name)  # MissingResource says how to get it

    def prepare(self, pairs: Sequence[SentencePair | tuple[Side, Side]]) -> list[SentencePair]:
        """Pairs as the aligner needs them."""
        ready = [as_pair(pair) for pair in pairs]
        if self.annotate is None:
            return ready
        lacking = [k for k, pair in enumerate(ready) if self._lacks(pair)]
        if lacking:
            for k, pair in zip(lacking, self.annotate([ready[k] for k in lacking]), strict=True):
                ready[k] = pair
        return ready

    def _lacks(self, pair: SentencePair) -> bool:
        return any(layer not in side.layers for layer in self.requires for side in (pair.source, pair.target))

    def align(
        self,
        pairs: Sequence[SentencePair | tuple[Side, Side]],
        symmetrize: str | None = None,
        confidence: bool = True,
    ) -> list[Alignment]:
        """One alignment a pair, in order. `symmetrize` overrides how the two directions are joined; without
        `confidence` there are links alone, which is faster."""
        ready = self.prepare(pairs)
        self._check_directions(symmetrize)
        if isinstance(self.aligner, Directional):
            found = self.aligner.align(ready, symmetrize, confidence)
        elif isinstance(self.aligner, LinksOnly) and not confidence:
            found = self.aligner.align_links(ready)
        else:
            found = self.aligner.align(ready)
        if not confidence:
            found = [_links_alone(alignment) for alignment in found]
        explainer = _Explainer(self, symmetrize)
        return [alignment.of(pair, explainer) for alignment, pair in zip(found, ready, strict=True)]

    def _check_directions(self, symmetrize: str | None) -> None:
        if symmetrize is not None and not isinstance(self.aligner, Directional):
            raise ConfigError(
                f"{type(self.aligner).__name__} has one direction, so there is nothing to symmetrize"
            )

    def explain(self, pair: SentencePair | tuple[Side, Side], symmetrize: str | None = None) -> Explanation:
        """Why words are linked and others are not: `.link(i, j)`, `.links()`, `.to_dict()`, `.to_text()`."""
        return next(self.explanations([pair], symmetrize))

    def explanations(
        self, pairs: Sequence[SentencePair | tuple[Side, Side]], symmetrize: str | None = None
    ) -> Iterator[Explanation]:
        """One a pair, in order, which is faster for many than one by one. Those of an aligner that cannot give
        reasons say so. Hold few: each keeps the features of its neighbours alive (`to_dict` does not)."""
        ready = self.prepare(pairs)
        self._check_directions(symmetrize)
        reason = "it is no linear model"
        if isinstance(self.aligner, Explains):
            try:
                return self.aligner.explain(ready, symmetrize)
            except CannotExplain as error:
                reason = str(error)
        note = f"{type(self.aligner).__name__} gives no reasons for its links: {reason}"
        found = self.align(ready, symmetrize)
        return (Explanation(*both, note=note) for both in zip(ready, found, strict=True))

    def state(self) -> dict[str, np.ndarray | list[str]]:
        return dict(self.aligner.state()) if isinstance(self.aligner, Trainable) else {}

    def restore(self, state: Mapping[str, np.ndarray | list[str]]) -> None:
        if isinstance(self.aligner, Trainable):
            self.aligner.restore(state)
