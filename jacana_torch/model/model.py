"""A model: an annotator and an aligner, from strings, tokens or annotated pairs to alignments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse
from typing import TYPE_CHECKING

from ..aligners.base import Aligner, CannotExplain, Directional, Explains, LinksOnly
from ..annotate import Annotator
from ..annotate.tokens import tokenize
from ..errors import ConfigError, JacanaError
from ..types import PROVIDERS, Alignment, Sentence, SentencePair, resources_of

if TYPE_CHECKING:
    from ..explain import Explanation

Side = str | Sequence[str] | Sentence
Pair = SentencePair | tuple[Side, Side]
Annotate = Callable[[Sequence[SentencePair]], list[SentencePair]]


@dataclass
class Model:
    """Aligns pairs of sentences.

    `annotate` fills the layers that `aligner` reads. Pairs that have these layers already are not annotated again.
    """

    aligner: Aligner
    annotate: Annotate | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.aligner, Aligner):
            raise ConfigError(f"a model needs an aligner; {type(self.aligner).__name__} is not an Aligner")
        if self.annotate is not None and not callable(self.annotate):
            raise ConfigError(f"{type(self.annotate).__name__} is not an Annotator")

    @property
    def requires(self) -> tuple[str, ...]:
        """The annotation layers that the aligner reads."""
        return tuple(self.aligner.requires)

    @property
    def resources(self) -> tuple[str, ...]:
        """The linguistic data that the model reads; the annotator's only if the aligner reads layers."""
        return resources_of(self.aligner, self.annotate) if self.requires else resources_of(self.aligner)

    def check(self) -> None:
        """Raise an error if the annotator cannot fill what the aligner reads, or if resources are missing."""
        from .. import resources

        # Without an annotator, corpora may bring their layers.
        provided = self.annotate.provides if isinstance(self.annotate, Annotator) else ()
        missing = list(filterfalse(provided.__contains__, self.requires))
        if provided and missing:
            able = sorted(set.intersection(*(set(PROVIDERS.get(layer, ())) for layer in missing)))
            advice = f"annotate={' or annotate='.join(able)} does" if able else "no known annotator does"
            raise ConfigError(
                f"the features read {', '.join(self.requires)}, and {type(self.annotate).__name__} does not fill "
                f"{', '.join(missing)} (it fills {', '.join(provided)}): {advice}"
            )
        for name in self.resources:
            resources.path(name)  # raises MissingResource, which says how to install it

    def prepare(self, pairs: Sequence[Pair]) -> list[SentencePair]:
        """Tokenise strings, and annotate the pairs that lack a layer that the aligner reads."""
        ready = list(map(as_pair, pairs))
        required = set(self.aligner.requires)
        if self.annotate is None or not required:
            return ready
        incomplete = []
        for k, pair in enumerate(ready):
            if not (required <= pair.source.layers.keys() and required <= pair.target.layers.keys()):
                incomplete.append(k)
        if incomplete:
            annotated = self.annotate(list(map(ready.__getitem__, incomplete)))
            for k, pair in zip(incomplete, annotated, strict=True):
                ready[k] = pair
        return ready

    def align(
        self, pairs: Sequence[Pair], symmetrize: str | None = None, confidence: bool = True
    ) -> list[Alignment]:
        """Align each pair, in order.

        `symmetrize` names another symmetrizer than the model's own. Without `confidence`, alignments have links
        alone, which is faster.
        """
        ready = self.prepare(pairs)
        self._check_symmetrizer(symmetrize)
        if isinstance(self.aligner, Directional):
            found = self.aligner.align(ready, symmetrize, confidence)
        elif isinstance(self.aligner, LinksOnly) and not confidence:
            found = self.aligner.align_links(ready)
        else:
            found = self.aligner.align(ready)
        explain = partial(_explain, self, symmetrize)
        alignments = []
        for alignment, pair in zip(found, ready, strict=True):
            if not confidence and (alignment.confidence or alignment.score is not None):
                alignment = replace(alignment, confidence={}, score=None)
            alignments.append(alignment.of(pair, explain))
        return alignments

    def explain(self, pair: Pair, symmetrize: str | None = None) -> Explanation:
        """Say why words are linked and others are not: `.link(i, j)`, `.links()`, `.to_dict()`, `.to_text()`."""
        return next(self.explanations([pair], symmetrize))

    def explanations(self, pairs: Sequence[Pair], symmetrize: str | None = None) -> Iterator[Explanation]:
        """Explain many pairs, in order, which is faster than one by one.

        If the aligner cannot give reasons, each explanation has a note that says so. An explanation keeps the
        features of the pairs around it in memory, so do not collect many of them; `to_dict` keeps nothing.
        """
        ready = self.prepare(pairs)
        self._check_symmetrizer(symmetrize)
        reason = "it is not a linear model"
        if isinstance(self.aligner, Explains):
            try:
                return self.aligner.explain(ready, symmetrize)
            except CannotExplain as error:
                reason = str(error)
        note = f"{type(self.aligner).__name__} gives no reasons for its links: {reason}"
        found = self.align(ready, symmetrize)
        from ..explain import Explanation

        return (Explanation(*both, note=note) for both in zip(ready, found, strict=True))

    def _check_symmetrizer(self, symmetrize: str | None) -> None:
        if symmetrize is not None and not isinstance(self.aligner, Directional):
            raise ConfigError(
                f"{type(self.aligner).__name__} has one direction, so there is nothing to symmetrize"
            )


def as_pair(pair: Pair) -> SentencePair:
    """A pair of two sides. Strings are tokenised; lists are taken as tokens."""
    if isinstance(pair, SentencePair):
        return pair
    if isinstance(pair, str) or len(pair) != 2:
        raise ConfigError(f"a pair is two sentences, each a string or a list of tokens, not {str(pair)[:80]!r}")
    return SentencePair(_as_sentence(pair[0]), _as_sentence(pair[1]))


def _as_sentence(side: Side) -> Sentence:
    if isinstance(side, Sentence):
        return side
    if isinstance(side, str):
        return Sentence(tokenize(side), text=side)
    tokens = tuple(side)
    if not all(isinstance(token, str) for token in tokens):
        raise ConfigError(f"tokens are strings; got {str(side)[:80]!r}")
    return Sentence(tokens)


def _explain(model: Model, symmetrize: str | None, alignment: Alignment) -> Explanation:
    """Explain an alignment that this model made; see `Alignment.explain`."""
    assert alignment.pair is not None  # `align` has set it
    explanation = model.explain(alignment.pair, symmetrize)
    if explanation.alignment != alignment:
        raise JacanaError("the model has changed since it made this alignment: align the pair again")
    return explanation
