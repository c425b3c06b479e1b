"""Annotation of sentence pairs: the `Annotator` protocol, and one module for each annotator.

An annotator fills layers of both sentences (tags, lemmas, dependencies, entities; `types.PROVIDERS` lists them).
It returns new pairs and changes none. `conf/annotate` names the annotators by the class that implements them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from ..errors import ConfigError
from ..types import PROVIDERS, Sentence, SentencePair

__all__ = ["Annotator", "LayerAnnotator", "NoAnnotator", "annotate", "annotate_stream", "missing"]

Layers = Mapping[str, Sequence[Any]]


@runtime_checkable
class Annotator(Protocol):
    """Fills layers of sentence pairs.

    `requires`: the layers that it reads. `provides`: the layers that it fills. Annotators that read linguistic
    data also satisfy `types.ReadsResources`. Instances must pickle for worker processes.
    """

    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        """Return the pairs, in order, with more layers."""
        ...


@runtime_checkable
class ByChunk(Annotator, Protocol):
    """Declares whether a corpus may be passed in parts. Without this protocol, it may."""

    by_chunk: bool


class LayerAnnotator(Annotator):
    """Base class of annotators that look at one sentence at a time.

    Each distinct sentence is annotated once per call. Existing layers are kept, unless `overwrite` is set.
    """

    overwrite: bool = False

    @abstractmethod
    def layers_of(self, sentences: Sequence[Sentence]) -> list[Layers]:
        """Return the layers of each sentence, at least those that it lacks. Existing layers may be read."""

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        number: dict[tuple[object, ...], int] = {}
        sentences: list[Sentence] = []  # the distinct ones
        places: list[int] = []  # where each pair's source and target are among them
        lacking: dict[int, Sentence] = {}  # by place
        for pair in pairs:
            for sentence in (pair.source, pair.target):
                layers = tuple(sorted(sentence.layers.items())) if sentence.layers else ()
                place = number.setdefault((sentence.tokens, sentence.text, layers), len(sentences))
                places.append(place)
                if place < len(sentences):
                    continue
                sentences.append(sentence)
                for name in self.requires:
                    sentence.layer(name)  # raises MissingLayer, which names the annotators that provide it
                if self.overwrite or not sentence.layers.keys() >= set(self.provides):
                    lacking[place] = sentence
        if lacking:
            found = self.layers_of(list(lacking.values()))
            for (place, sentence), new in zip(lacking.items(), found, strict=True):
                sentences[place] = sentence.with_layers(**(new if self.overwrite else {**new, **sentence.layers}))
        annotated = []
        for pair, source, target in zip(pairs, places[::2], places[1::2], strict=True):
            annotated.append(SentencePair(sentences[source], sentences[target], pair.id))
        return annotated


class NoAnnotator(Annotator):
    """Returns pairs unchanged, for models that read only words."""

    def __call__(self, pairs: Sequence[SentencePair]) -> list[SentencePair]:
        return list(pairs)


def checked_layers(layers: Iterable[str], allowed: Iterable[str] = tuple(PROVIDERS)) -> tuple[str, ...]:
    """Return the layer names as a tuple, or raise ConfigError for one that is not allowed."""
    layers, allowed = (layers,) if isinstance(layers, str) else tuple(layers), tuple(allowed)
    for name in layers:
        if name not in allowed:
            raise ConfigError(f"unknown layer {name!r}: choose from {', '.join(allowed)}")
    return layers


def missing(pairs: Iterable[SentencePair], layers: Iterable[str]) -> set[str]:
    """Return those layers that at least one sentence lacks."""
    wanted, absent = set(checked_layers(layers)), set[str]()
    for pair in pairs:
        for sentence in (pair.source, pair.target):
            absent |= wanted - sentence.layers.keys()
        if absent == wanted:
            break
    return absent


def annotate(pairs: Iterable[SentencePair], annotator: Annotator, chunk: int = 1024) -> list[SentencePair]:
    """Annotate all pairs, `chunk` at a time."""
    return list(annotate_stream(pairs, annotator, chunk))


def annotate_stream(
    pairs: Iterable[SentencePair], annotator: Annotator, chunk: int = 1024
) -> Iterator[SentencePair]:
    """Annotate pairs lazily, so that a corpus need not fit in memory.

    An annotator whose `by_chunk` is False receives all pairs in one call.
    """
    if chunk < 1:
        raise ConfigError(f"chunk must be at least 1, not {chunk}")
    remaining = iter(pairs)
    size = None if isinstance(annotator, ByChunk) and not annotator.by_chunk else chunk
    while batch := list(islice(remaining, size)):
        yield from annotator(batch)
