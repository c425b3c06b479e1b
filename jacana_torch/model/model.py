"""A model: an annotator and an aligner, from strings, tokens or annotated pairs to alignments."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ..aligners.base import Aligner, CannotExplain, Directional, Explains, LinksOnly
from ..annotate import Annotator
from ..annotate.tokens import tokenize
from ..errors import ConfigError, JacanaError, MissingLayer, ModelError, PairError, PairTypeError
from ..types import PROVIDERS, Alignment, Sentence, SentencePair, resources_of
from ..util.build import INTERNAL

if TYPE_CHECKING:
    from ..explain import Explanation
    from .stream import OnError

Side = str | Sequence[str] | Sentence
Pair = SentencePair | tuple[Side, Side]
Result = TypeVar("Result")
Annotate = Callable[[Sequence[SentencePair]], list[SentencePair]]

_LONGEST_QUOTE = 60
_NO_LIST = (str, bytes, Mapping, Set)  # iterable, but no list of sentences or tokens
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Limits:
    """How large pairs may be: more takes minutes and gigabytes, and mostly comes of a mistake in the data.

    `letters` of a token, `tokens` of a sentence, and `cells` of a pair: its source tokens times its target tokens.
    """

    letters: int = 1000
    tokens: int = 3000
    cells: int = 4_000_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"limits: {name}={value} has to be above 0")

    def check(self, pair: SentencePair) -> None:
        """Raise a PairError if the pair is too large, or if something in it is not text."""
        m, n = len(pair.source), len(pair.target)
        if m and n and (m * n > self.cells or max(m, n) > self.tokens):
            raise PairError(
                f"a pair of {m} x {n} tokens is too large ({self.cells:,} cells and {self.tokens:,} tokens a side "
                "are the limits): split it into sentences"
            )
        given: list[tuple[str, str, Sequence[Any]]] = []
        for name, sentence in (("source", pair.source), ("target", pair.target)):
            given.append((name, "", sentence.tokens))
            for layer, values in sentence.layers.items():
                given.append((name, layer, values))
        for name, layer, texts in given:
            try:
                text = " ".join(texts)
                is_text = text.isascii() or bool(text.encode("utf-8"))
            except (TypeError, UnicodeEncodeError):  # layers may hold other values than texts
                is_text = False
            if not (is_text and (len(text) <= self.letters or max(map(len, texts)) <= self.letters)):
                for number, value in enumerate(texts, start=1):
                    if not layer or isinstance(value, str):
                        of = f"{name}'s layer {layer}" if layer else name
                        self._check_token(f"token {number} of the {of}", value)

    def _check_token(self, name: str, token: str) -> None:
        if not isinstance(token, str):
            raise PairTypeError(f"{name} is {described(token)}, not a string")
        if len(token) > self.letters:
            raise PairError(
                f"{name} has {len(token):,} letters and begins with {token[:20]!r}; the limit is "
                f"{self.letters:,}: split it, or leave it out"
            )
        if _SURROGATE.search(token):
            raise PairError(f"{name} is {described(token)}, with half of a surrogate pair, which is no text")


@dataclass(frozen=True)
class Origin:
    """What a model was loaded from: its name, the config that it is built of, and how it was trained."""

    name: str
    config: Mapping[str, Any]
    signature: Mapping[str, Any] = field(default_factory=dict)
    style: str | None = None  # that it was asked to align by

    @property
    def named(self) -> str:
        """The name with the style that was asked for."""
        return self.name if self.style is None else f"{self.name}, style {self.style}"


@dataclass(repr=False)
class Model:
    """Aligns pairs of sentences.

    `annotate` fills the layers that `aligner` reads. Pairs that have these layers already are not annotated again.
    Pairs beyond the `limits` are errors.
    """

    aligner: Aligner
    annotate: Annotator | Annotate | None = None
    limits: Annotated[Limits, INTERNAL] = field(default_factory=Limits)
    origin: Annotated[Origin | None, INTERNAL] = field(default=None, compare=False)

    def __repr__(self) -> str:
        name = f"{self.origin.name}: " if self.origin is not None else ""
        annotate = "" if self.annotate is None else f", {type(self.annotate).__name__}"
        reads = f"; reads {', '.join(self.resources)}" if self.resources else ""
        return f"<Model {name}{type(self.aligner).__name__}{annotate}{reads}>"

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

    def save(self, directory: str | Path, overwrite: bool = False) -> Path:
        """Write the model to a directory, from which `jacana_torch.load` reads it, completely or not at all.

        A model that is there already is replaced if `overwrite` says so.
        """
        from .saving import CONFIG, save

        if self.origin is None:
            raise ModelError(
                "this model was put together in Python, so nothing says what it is built of: save it with "
                "jacana_torch.model.saving.save and its config"
            )
        if not overwrite and (Path(directory) / CONFIG).exists():
            raise ModelError(f"{directory}: there is a model already; overwrite=True replaces it")
        return save(self, directory, self.origin.config, self.origin.signature)

    def prepare(self, pairs: Iterable[Pair]) -> list[SentencePair]:
        """Tokenise strings, and annotate the pairs that lack a layer that the aligner reads."""
        ready = checked(pairs, self.limits)
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
        self, pairs: Iterable[Pair], symmetrize: str | None = None, confidence: bool = True
    ) -> list[Alignment]:
        """Align each pair, in order.

        `symmetrize` names another symmetrizer than the model's own; `posterior:0.8` links words whose probability
        is at least 0.8. Without `confidence`, alignments have links
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

    def align_stream(
        self,
        pairs: Iterable[Pair],
        batch_size: int = 1024,
        workers: int | None = 1,
        symmetrize: str | None = None,
        confidence: bool = True,
        on_error: OnError = "raise",
    ) -> Generator[Alignment | PairError, None, None]:
        """Align pairs as they come, in order: a generator that takes any iterable, however long.

        Memory is bounded by the batches under way, three for each worker, and the input is read no further ahead.
        `workers` are processes (None: one per CPU), as those of `jacana-torch align --workers`; where they are
        spawned, scripts need `if __name__ == "__main__":`. Closing the generator ends them. A pair that cannot be
        aligned raises a PairError with its number after the alignments before it; `on_error="yield"` yields the
        error in its place.
        """
        from .stream import align_stream

        return align_stream(self, pairs, batch_size, workers, symmetrize, confidence, on_error)

    def explain(self, pair: Pair, symmetrize: str | None = None) -> Explanation:
        """Say why words are linked and others are not: `.link(i, j)`, `.links()`, `.to_dict()`, `.to_text()`."""
        try:
            return next(self.explanations([pair], symmetrize))
        except PairError as error:
            raise type(error)(error.reason) from None

    def explanations(self, pairs: Iterable[Pair], symmetrize: str | None = None) -> Iterator[Explanation]:
        """Explain many pairs, in order, which is faster than one by one.

        If the aligner cannot give reasons, each explanation has a note that says so. An explanation keeps the
        features of the pairs around it in memory, so do not collect many of them; `to_dict` keeps nothing.
        """
        ready = self.prepare(pairs)
        self._check_symmetrizer(symmetrize)
        reason = "chains (Crf) and networks can be explained"
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
                f"{type(self.aligner).__name__} has one direction, so there is nothing to symmetrize, and no "
                "threshold to set"
            )


def checked(pairs: Iterable[Pair], limits: Limits) -> list[SentencePair]:
    """Return the pairs with sentences for strings and lists; a PairError with the number of the first bad one.

    Nothing has been computed by then, so a bad pair changes nothing in a model.
    """
    try:
        numbered = None if isinstance(pairs, (str, bytes, Mapping, SentencePair)) else enumerate(pairs, start=1)
    except TypeError:
        numbered = None
    if numbered is None:
        raise PairTypeError(f"pairs is {described(pairs)}, not a list of pairs, as in [(source, target)]")
    ready: list[SentencePair] = []
    for number, given in numbered:
        try:
            pair = as_pair(given)
            limits.check(pair)
        except PairError as error:
            raise type(error)(error.reason, number) from None
        ready.append(pair)
    return ready


def where_words(
    function: Callable[[list[SentencePair]], Sequence[Result]], ready: Sequence[SentencePair | PairError]
) -> list[Result | SentencePair | PairError]:
    """Return what the function makes of the pairs with words; errors and pairs without words stay as they are.

    A side without words has no links, and annotators need not know empty sentences.
    """
    results: list[Result | SentencePair | PairError] = list(ready)
    places, worded = [], []
    for place, pair in enumerate(ready):
        if isinstance(pair, SentencePair) and pair.source.tokens and pair.target.tokens:
            places.append(place)
            worded.append(pair)
    for place, found in zip(places, _each(function, worded), strict=True):
        results[place] = found
    return results


def align_each(
    model: Model, ready: Sequence[SentencePair | PairError], symmetrize: str | None, confidence: bool
) -> list[Alignment | PairError]:
    """Align prepared pairs; an error stays in its place, and a pair without words has no links."""
    found = where_words(partial(model.align, symmetrize=symmetrize, confidence=confidence), ready)
    aligned: list[Alignment | PairError] = []
    for each in found:
        aligned.append(Alignment(len(each.source), len(each.target)) if isinstance(each, SentencePair) else each)
    return aligned


def _each(
    function: Callable[[list[SentencePair]], Sequence[Result]], pairs: list[SentencePair]
) -> list[Result | PairError]:
    """Return what the function makes of all pairs at once; an error takes the place of a pair that causes one."""
    try:
        return list(function(pairs)) if pairs else []
    except PairError as error:
        reason = error.reason
    except MissingLayer as error:
        reason = str(error)
    except MemoryError as error:
        reason = f"out of memory ({error}): split long texts"
    if len(pairs) == 1:
        return [PairError(reason)]
    half = len(pairs) // 2
    return [*_each(function, pairs[:half]), *_each(function, pairs[half:])]


def as_pair(pair: Pair) -> SentencePair:
    """Return a pair of two sides: strings are tokenised, lists are tokens already."""
    if isinstance(pair, SentencePair):
        for name, sentence in (("source", pair.source), ("target", pair.target)):
            if not isinstance(sentence, Sentence):
                raise PairTypeError(f"the {name} of the SentencePair is {described(sentence)}, not a Sentence")
        return pair
    if isinstance(pair, _NO_LIST) or not _is_iterable(pair):
        raise PairTypeError(f"the pair is {described(pair)}, not two sentences, as in (source, target)")
    sides = tuple(pair)
    if len(sides) != 2:
        raise PairTypeError(f"the pair is {described(pair)}: {len(sides)} values instead of a source and a target")
    return SentencePair(_as_sentence("source", sides[0]), _as_sentence("target", sides[1]))


def _as_sentence(name: str, side: Side) -> Sentence:
    if isinstance(side, Sentence):
        return side
    if isinstance(side, str):
        return Sentence(tokenize(side), text=side)
    if (tokens := sys.modules.get("spacy.tokens")) and isinstance(side, (tokens.Doc, tokens.Span)):
        return importlib.import_module("jacana_torch.interop.spacy").sentence_of(side)  # type: ignore[no-any-return]
    if isinstance(side, _NO_LIST) or not _is_iterable(side):
        raise PairTypeError(f"the {name} is {described(side)}, not a string or a list of tokens")
    return Sentence(tuple(side))


def _is_iterable(value: object) -> bool:
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def described(value: object) -> str:
    """Say what a value is, for an error message."""
    if value is None:
        return "None"
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    shown = repr(value)
    return f"{article} {kind} ({shown if len(shown) <= _LONGEST_QUOTE else shown[:_LONGEST_QUOTE] + '...'})"


def _explain(model: Model, symmetrize: str | None, alignment: Alignment) -> Explanation:
    """Explain an alignment that this model made; see `Alignment.explain`."""
    assert alignment.pair is not None  # `align` has set it
    explanation = model.explain(alignment.pair, symmetrize)
    if explanation.alignment != alignment:
        raise JacanaError("the model has changed since it made this alignment: align the pair again")
    return explanation
