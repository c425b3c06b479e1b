"""What an annotator is: pairs in, pairs with more layers (types.PROVIDERS) out, nothing changed in place.

`LayerAnnotator` is what annotators that look at one sentence at a time derive from: it sees to it that every
distinct sentence is annotated once per call and that layers which are there already are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, runtime_checkable

from ..errors import ConfigError
from ..types import PROVIDERS, Sentence, SentencePair

Layers = Mapping[str, Sequence]


@runtime_checkable
class Annotator(Protocol):
    """Says which layers it reads (`requires`) and which it fills (`provides`); pickles, for worker processes.

    One that reads linguistic data says so in `resources` as well.
    """

    requires: tuple[str, ...]
    provides: tuple[str, ...]

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]: ...


@runtime_checkable
class ByChunk(Annotator, Protocol):
    """An annotator that says whether it may annotate a part of a corpus at a time; others may."""

    by_chunk: bool


class LayerAnnotator(ABC):
    """Fills layers sentence by sentence. A subclass says what the layers of some distinct sentences are."""

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    overwrite: bool = False

    @abstractmethod
    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        """The layers of each sentence; at least those that it lacks. Existing layers may be read."""

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        number: dict[tuple, int] = {}
        sentences: list[Sentence] = []  # distinct ones, in the end with their layers
        places: list[int] = []
        for pair in pairs:
            for sentence in (pair.source, pair.target):
                place = number.setdefault(_key(sentence), len(sentences))
                if place == len(sentences):
                    sentences.append(sentence)
                places.append(place)
        wanting = [place for place, sentence in enumerate(sentences) if self._wants(sentence)]
        found = self.layers_of([sentences[place] for place in wanting]) if wanting else []
        for place, layers in zip(wanting, found, strict=True):
            sentences[place] = keeping(sentences[place], layers, self.overwrite)
        return [
            SentencePair(sentences[source], sentences[target], pair.id)
            for pair, source, target in zip(pairs, places[::2], places[1::2], strict=True)
        ]

    def _wants(self, sentence: Sentence) -> bool:
        for name in self.requires:
            sentence.layer(name)  # MissingLayer says which annotator provides it
        return self.overwrite or any(name not in sentence.layers for name in self.provides)


class NoAnnotator:
    """Leaves pairs as they are, for models that read words alone."""

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    by_chunk = True

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        return list(pairs)


def keeping(sentence: Sentence, layers: Layers, overwrite: bool) -> Sentence:
    """The sentence with those layers that it lacks, or with all of them where `overwrite`."""
    new = {name: values for name, values in layers.items() if overwrite or name not in sentence.layers}
    return sentence.with_layers(**new) if new else sentence


def known_layers(layers: Iterable[str], allowed: Iterable[str] = tuple(PROVIDERS)) -> tuple[str, ...]:
    """The layers as a tuple; one that cannot be is a ConfigError."""
    if isinstance(layers, str):
        layers = (layers,)
    layers, allowed = tuple(layers), tuple(allowed)
    for name in layers:
        if name not in allowed:
            raise ConfigError(f"there is no layer {name!r} to fill here; there are {', '.join(allowed)}")
    return layers


def missing(pairs: Iterable[SentencePair], layers: Iterable[str]) -> set[str]:
    """Those of the layers that some sentence of some pair lacks."""
    wanted, absent = set(known_layers(layers)), set()
    for pair in pairs:
        for sentence in (pair.source, pair.target):
            absent |= wanted - sentence.layers.keys()
        if absent == wanted:
            break
    return absent


def annotate(pairs: Iterable[SentencePair], annotator: Annotator, chunk: int = 1024) -> list[SentencePair]:
    """All pairs, annotated `chunk` at a time."""
    return list(annotate_stream(pairs, annotator, chunk))


def annotate_stream(
    pairs: Iterable[SentencePair], annotator: Annotator, chunk: int = 1024
) -> Iterator[SentencePair]:
    """Pairs annotated as they are asked for, so that a file larger than memory passes through.

    An annotator that must see a whole corpus at once says so with `by_chunk = False`.
    """
    if chunk < 1:
        raise ConfigError(f"chunk must be at least 1, not {chunk}")
    remaining = iter(pairs)
    size = None if isinstance(annotator, ByChunk) and not annotator.by_chunk else chunk
    while batch := list(islice(remaining, size)):
        yield from annotator(batch)


def _key(sentence: Sentence) -> tuple:
    layers = tuple(sorted(sentence.layers.items())) if sentence.layers else ()
    return sentence.tokens, sentence.text, layers
