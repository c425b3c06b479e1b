"""The values that all packages share: frozen, without I/O, without torch.

A `Sentence` is tokens with annotation layers, a `SentencePair` is two sentences, an `Alignment` is the links
between them, an `Example` is a pair with its gold alignment. A pair has no gold field: an aligner cannot see gold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from .errors import JacanaError, MissingLayer
from .offsets import Offsets, checked_offsets, located

if TYPE_CHECKING:
    from .explain import Explanation, LinkExplanation
    from .projection import Labelled, Projected
    from .view.drawing import Words

Link = tuple[int, int]

NOTHING: Mapping[Any, Any] = MappingProxyType({})

# The layers, with one value per token, and the annotators of conf/annotate that provide each.
PROVIDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pos": ("nltk", "spacy", "given"),  # Penn Treebank tags
        "lemma": ("nltk", "spacy", "given"),  # lower case
        "head": ("spacy", "given"),  # 0-based index of the head, -1 for a root
        "deprel": ("spacy", "given"),  # the relation to the head
        "ner": ("spacy", "given"),  # "O", "B-PERSON", "I-PERSON", ...
    }
)


@runtime_checkable
class ReadsResources(Protocol):
    """A feature family, an annotator or an aligner that reads linguistic data."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that it reads, as `jacana-torch resources` lists them."""
        ...


def resources_of(*parts: object) -> tuple[str, ...]:
    """Return the names of the resources that any of the parts reads, sorted."""
    names: set[str] = set()
    for part in parts:
        if isinstance(part, ReadsResources):
            names.update(part.resources)
    return tuple(sorted(names))


@dataclass(frozen=True)
class Sentence:
    """Tokens, and layers that annotators added. `text` is the raw line if the tokens are only a split of it.

    `offsets` gives the place of each token in its raw text, for tokens whose text is not kept.
    """

    tokens: tuple[str, ...]
    layers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    text: str | None = None

    def __init__(
        self,
        tokens: Iterable[str],
        layers: Mapping[str, Iterable[Any]] = NOTHING,
        text: str | None = None,
        offsets: Iterable[Iterable[int]] | None = None,
    ) -> None:
        if type(tokens) is not tuple:
            tokens = tuple(tokens)
        if layers:
            checked = {}
            for name, given in layers.items():
                checked[name] = values = tuple(given)
                if len(values) != len(tokens):
                    sentence = " ".join(tokens)
                    raise ValueError(
                        f"layer {name!r} has {len(values)} values for {len(tokens)} tokens: {sentence}"
                    )
            layers = MappingProxyType(checked)
        else:
            layers = NOTHING
        self.__dict__.update(tokens=tokens, layers=layers, text=text)
        if offsets is not None:
            self.__dict__["offsets"] = self.__dict__["given_offsets"] = checked_offsets(offsets, len(tokens))

    @cached_property
    def offsets(self) -> Offsets | None:
        """The place (start, end) of each token in the raw text, in characters.

        None if the text is unknown, or if the tokens do not lie in it. Computed when it is first asked for.
        """
        return None if self.text is None else located(self.tokens, self.text)

    given_offsets: ClassVar[Offsets | None] = None  # those of `__init__`

    def __len__(self) -> int:
        return len(self.tokens)

    def __str__(self) -> str:
        return " ".join(self.tokens)

    def __reduce__(self) -> tuple[Any, ...]:  # MappingProxyType does not pickle; workers exchange many of these
        line = " ".join(self.tokens)
        if self.layers or self.given_offsets is not None or line.count(" ") != len(self.tokens) - 1:
            return Sentence, (self.tokens, dict(self.layers), self.text, self.given_offsets)
        return _split, (line, line if self.text == line else self.text)  # one string, not thirty

    def layer(self, name: str) -> tuple[Any, ...]:
        """Return the values of a layer; the error for a missing layer names the annotators that provide it."""
        try:
            return self.layers[name]
        except KeyError:
            known = " or ".join(PROVIDERS.get(name, ())) or "no known annotator"
            raise MissingLayer(
                f"this needs the layer {name!r}, which {known} provides, but the sentence {str(self)[:60]!r} "
                f"has {sorted(self.layers) or 'no layers'}: annotate it first"
            ) from None

    def with_layers(self, **layers: Iterable[Any]) -> Sentence:
        """Return a copy with these layers added or replaced."""
        return Sentence(self.tokens, {**self.layers, **layers}, self.text, self.given_offsets)


def _split(line: str, text: str | None) -> Sentence:
    return Sentence(tuple(line.split(" ")), text=text)


@dataclass(frozen=True)
class SentencePair:
    source: Sentence
    target: Sentence
    id: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SentencePair, (self.source, self.target, self.id)

    def flip(self) -> SentencePair:
        """Return the pair with source and target exchanged."""
        return SentencePair(self.target, self.source, self.id)

    @property
    def checksum(self) -> int:
        """64 bits that tell which sentences these are, by their letters and digits alone.

        Case, spaces, tokenisation, punctuation and the order of the two sides do not matter.
        """
        import hashlib

        sides = []
        for side in (self.source, self.target):
            whole = "".join(side.tokens).casefold()
            sides.append(re.sub(r"[\W_]", "", whole) or whole)
        content = "\n".join(sorted(sides)).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")

    @property
    def offsets(self) -> dict[str, list[list[int]]]:
        """The offsets of both sides that have some, as records of JSON hold them: `source_offsets` and so on."""
        found = {}
        for side, sentence in (("source", self.source), ("target", self.target)):
            if sentence.offsets is not None:
                found[f"{side}_offsets"] = [list(place) for place in sentence.offsets]
        return found

    def with_text(self, source: str | None, target: str | None) -> SentencePair:
        """Return the pair with these raw texts, which say where its tokens lie."""
        one = Sentence(self.source.tokens, self.source.layers, source)
        return SentencePair(one, Sentence(self.target.tokens, self.target.layers, target), self.id)

    def without_text(self) -> SentencePair:
        """Return the pair without raw text: its tokens are final, and nothing tokenises it again."""
        if self.source.text is None and self.target.text is None:
            return self
        sides = Sentence(self.source.tokens, self.source.layers), Sentence(self.target.tokens, self.target.layers)
        return SentencePair(*sides, self.id)  # `replace` takes twice as long


@dataclass(frozen=True)
class Alignment:
    """Links (i, j) between a sentence of `n_source` tokens and one of `n_target`.

    Tokens count from 0. `sure` and `possible` are disjoint (a link in both is sure). `confidence` may hold the
    probability of any link, `score` one number for the whole alignment. An alignment that a model made knows its
    `pair`; this is not compared or pickled.
    """

    n_source: int
    n_target: int
    sure: frozenset[Link] = frozenset()
    possible: frozenset[Link] = frozenset()
    confidence: Mapping[Link, float] = field(default_factory=dict, compare=False)
    score: float | None = field(default=None, compare=False)
    pair: ClassVar[SentencePair | None] = None  # set by `of`

    def __post_init__(self) -> None:
        sure: set[Link] = set()
        possible: set[Link] = set()
        for given, links in ((self.sure, sure), (self.possible, possible)):
            for i, j in given:
                if not (0 <= i < self.n_source and 0 <= j < self.n_target):
                    raise ValueError(f"link {i}-{j} is out of range for {self.n_source} x {self.n_target} tokens")
                links.add((int(i), int(j)))
        object.__setattr__(self, "sure", frozenset(sure))
        object.__setattr__(self, "possible", frozenset(possible - sure))
        object.__setattr__(self, "confidence", MappingProxyType(dict(self.confidence)))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.possible or self.confidence or self.score is not None:
            confidence = dict(self.confidence)
            return trusted, (self.n_source, self.n_target, self.sure, self.possible, confidence, self.score)
        return trusted, (self.n_source, self.n_target, self.sure)

    @property
    def links(self) -> list[Link]:
        """The sure links, sorted."""
        return sorted(self.sure)

    @property
    def all_links(self) -> list[Link]:
        """The sure and possible links, sorted."""
        return sorted(self.sure | self.possible)

    def __str__(self) -> str:
        """The links as Pharaoh's format has them, `0-0 1-2`; possible ones as `ipj`."""
        marked = dict.fromkeys(self.possible, "p") | dict.fromkeys(self.sure, "-")
        return " ".join([f"{i}{marked[i, j]}{j}" for i, j in sorted(marked)])

    def pairs(self, pair: Words | None = None) -> list[tuple[str, str]]:
        """Return the words of the sure links, in the order of `links`; for `pair` see `to_text`."""
        from .view.drawing import checked

        source, target, _, _ = checked(self, pair, None)
        return [(source[i], target[j]) for i, j in self.links]

    def to_dict(self) -> dict[str, Any]:
        """Return the alignment as plain values for `json.dumps`: a record of the format jsonl.

        If the words are unknown, `n_source` and `n_target` take their place.
        """
        item: dict[str, Any] = {}
        if self.pair is None:
            item |= {"n_source": self.n_source, "n_target": self.n_target}
        else:
            item |= {} if self.pair.id is None else {"id": self.pair.id}
            item |= {"source": list(self.pair.source.tokens), "target": list(self.pair.target.tokens)}
            item |= self.pair.offsets
        item["sure"] = [list(link) for link in self.links]
        item["possible"] = [list(link) for link in sorted(self.possible)]
        if self.confidence:
            item["confidence"] = {f"{i}-{j}": float(p) for (i, j), p in sorted(self.confidence.items())}
        if self.score is not None:
            item["score"] = float(self.score)
        return item

    def of(self, pair: SentencePair, explainer: Callable[[Alignment], Explanation] | None = None) -> Alignment:
        """Return a copy that knows its pair and the function that explains it."""
        alignment = object.__new__(Alignment)
        alignment.__dict__.update(self.__dict__, pair=pair, _explainer=explainer)
        return alignment

    def explain(self, i: int, j: int) -> LinkExplanation:
        """Explain why source token i and target token j are linked, or are not.

        Only an alignment that a model made in this process can be explained. To explain several links,
        `model.explain(pair)` is faster.
        """
        explainer = self.__dict__.get("_explainer")
        if explainer is None:
            raise JacanaError(
                "this alignment does not know its model (no alignment does that was read from a file, flipped, "
                "combined or sent by another process): use model.explain(pair).link(i, j)"
            )
        explanation: Explanation = explainer(self)
        return explanation.link(i, j)

    def flip(self) -> Alignment:
        """Return the alignment of the flipped pair."""
        turned = itemgetter(1, 0)  # of a link
        return trusted(
            self.n_target,
            self.n_source,
            frozenset(map(turned, self.sure)),
            frozenset(map(turned, self.possible)),
            dict(zip(map(turned, self.confidence), self.confidence.values(), strict=True)),
            self.score,
        )

    def project(
        self, spans: Iterable[Labelled], *, characters: bool = False, backward: bool = False
    ) -> list[Projected]:
        """Project spans (start, end) or (start, end, label) of the source onto the target: `projection.Projected`.

        Spans count tokens; with `characters`, they count characters of the raw texts, and so do the results;
        then the alignment has to know its pair. `backward` projects from the target onto the source.
        """
        from .projection import project

        links = [(j, i) for i, j in self.sure] if backward else list(self.sure)
        confidence = {(j, i) if backward else (i, j): p for (i, j), p in self.confidence.items()}
        lengths = (self.n_target, self.n_source) if backward else (self.n_source, self.n_target)
        if not characters:
            return project(spans, links, confidence, lengths)
        sides = (self.pair.source, self.pair.target) if self.pair else ()
        offsets = [side.offsets for side in (reversed(sides) if backward else sides)]
        one, other = offsets or (None, None)
        if one is None or other is None:
            raise JacanaError(
                "spans of characters need the raw text of both sentences: align strings, give Sentence(tokens, "
                "text=...) or offsets, or project spans of tokens"
            )
        return project(spans, links, confidence, lengths, (one, other))

    def to_text(self, pair: Words | None = None, *, gold: Alignment | None = None, ascii: bool = False) -> str:
        """Draw a grid of characters for terminals.

        `pair` is a SentencePair, or two sentences as lists of tokens or as strings with spaces between tokens;
        alignments made by a model know theirs. Against `gold`, another alignment of the pair, correct links differ
        from missed and spurious ones.
        """
        from .view.characters import grid
        from .view.drawing import checked

        return grid(*checked(self, pair, gold), ascii=ascii)

    def to_svg(
        self, pair: Words | None = None, *, gold: Alignment | None = None, background: str | None = None
    ) -> str:
        """Draw an SVG picture, transparent without `background`; see `to_text`."""
        from .view.drawing import checked
        from .view.vector import svg

        return svg(*checked(self, pair, gold), background=background)

    def to_html(self, pair: Words | None = None, *, gold: Alignment | None = None) -> str:
        """Return the SVG picture, to put into a page. `jacana_torch.view.page` makes whole pages."""
        return self.to_svg(pair, gold=gold)

    def to_png(
        self,
        pair: Words | None = None,
        *,
        gold: Alignment | None = None,
        scale: float = 2.0,
        background: str = "white",
        colour: str = "black",
        font: str | None = None,
    ) -> bytes:
        """Return the bytes of a PNG picture with `scale` pixels for each of the SVG's; see `to_text`.

        `colour` is the colour of the words. `font` is a font file, or the name of a font that has their letters.
        """
        from .view.drawing import checked
        from .view.raster import png

        parts = checked(self, pair, gold)
        return png(*parts, scale=scale, background=background, colour=colour, font=font)

    def to_latex(self, pair: Words | None = None, *, gold: Alignment | None = None) -> str:
        r"""Return a TikZ picture in the size of the font around it; see `to_text`. It needs the package tikz."""
        from .view.drawing import checked
        from .view.vector import tikz

        return tikz(*checked(self, pair, gold))

    def to_matplotlib(self, pair: Words | None = None, *, gold: Alignment | None = None, ax: Any = None) -> Any:
        """Draw the alignment as a matrix on Matplotlib axes: `ax`, or new ones; see `to_text`."""
        from .view.drawing import checked
        from .view.plots import plot

        return plot(*checked(self, pair, gold), ax)

    def _repr_html_(self) -> str | None:
        """What notebooks show: a picture, whose links open their reasons if the model gives some.

        None if the words are unknown; then notebooks show the text instead.
        """
        if self.pair is None:
            return None
        from .view.drawing import checked
        from .view.widget import widget

        explainer = self.__dict__.get("_explainer")
        try:
            explanation = None if explainer is None else explainer(self)
        except JacanaError:  # the model gives no reasons, or has been changed since
            explanation = None
        return widget(*checked(self, None, None), explanation)

    def __and__(self, other: Alignment) -> Alignment:
        """Return the links of both; sure if both are sure."""
        check_same_size(self, other)
        sure = self.sure & other.sure
        both = (self.sure | self.possible) & (other.sure | other.possible)
        return Alignment(self.n_source, self.n_target, sure, both - sure)

    def __or__(self, other: Alignment) -> Alignment:
        """Return the links of either; sure if either is sure."""
        check_same_size(self, other)
        sure = self.sure | other.sure
        return Alignment(self.n_source, self.n_target, sure, self.possible | other.possible)


def check_same_size(one: Alignment, other: Alignment) -> None:
    """Raise a ValueError if the alignments are of sentences of different lengths."""
    if (one.n_source, one.n_target) != (other.n_source, other.n_target):
        raise ValueError(
            f"alignments of {one.n_source} x {one.n_target} and {other.n_source} x {other.n_target} "
            "tokens cannot be combined"
        )


def trusted(
    n_source: int,
    n_target: int,
    sure: frozenset[Link],
    possible: frozenset[Link] = frozenset(),
    confidence: Mapping[Link, float] = NOTHING,
    score: float | None = None,
) -> Alignment:
    """Make an Alignment without checks, which take longer than decoding it.

    Links must be plain integers in range, and sure or possible but not both; nobody else may hold `confidence`.
    """
    alignment = object.__new__(Alignment)
    confidence = MappingProxyType(confidence) if confidence else NOTHING
    alignment.__dict__.update(
        n_source=n_source, n_target=n_target, sure=sure, possible=possible, confidence=confidence, score=score
    )
    return alignment


@dataclass(frozen=True)
class Example:
    """A pair and its gold alignment; `gold` is None for unaligned text.

    `extra` holds the other keys of its record, which nothing reads, for formats that can write them again.
    For training: `weight` is how much it counts; examples of the same `group` were derived from one another, and
    stay together when examples are split; `origin` names what made it, and is None for a pair of a corpus; `style`
    names the convention that gold follows, and is None if the convention does not matter.
    """

    pair: SentencePair
    gold: Alignment | None = None
    extra: Mapping[str, Any] | None = None
    weight: float = 1.0
    group: str | None = None
    origin: str | None = None
    style: str | None = None

    def flip(self) -> Example:
        return replace(self, pair=self.pair.flip(), gold=self.gold.flip() if self.gold is not None else None)
