"""Pairs made for training: of the training pairs themselves and of WordNet's glosses, with links that are known.

Corpora of paraphrases hold related sentences alone, and what is trained on them links whatever stands in the place
of a word. Made pairs show what not to link. An `Augmentation` joins the pairs of several makers; each maker is a
class in a module of this package, and `data.augment` names those of a run.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Protocol, runtime_checkable

from ...aligners.base import Aligner, Weighs
from ...annotate import Annotator
from ...errors import ConfigError
from ...types import Alignment, Example, Link, Sentence, SentencePair, resources_of
from ...util.build import Seed, build
from .again import Again

log = logging.getLogger(__name__)

Prepare = Callable[[Sequence[SentencePair]], list[SentencePair]]


@runtime_checkable
class Maker(Protocol):
    """Makes pairs with links, without layers, of pairs with the layers that it `requires`.

    What it makes of a pair, or of several, has their `group`. `weight` is how much its pairs count in training.
    """

    weight: float

    @property
    def requires(self) -> tuple[str, ...]: ...

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterable[Example]: ...


@dataclass(frozen=True)
class Augmentation:
    """Adds the pairs of `makers` to training pairs; null turns a maker off.

    `annotate` provides the layers that makers read, where the pairs lack them. The same pairs and `seed` give the
    same made pairs, and a maker's do not depend on the others.
    """

    makers: Mapping[str, Maker | None]
    annotate: Annotator
    seed: Seed = 1

    def __post_init__(self) -> None:
        for name, maker in self.makers.items():
            if maker is not None and not isinstance(maker, Maker):
                raise ConfigError(
                    f"data.augment.makers.{name}={maker!r}: not a Maker (jacana_torch/train/augment)"
                )
            if maker is not None and not 0 < maker.weight < float("inf"):
                raise ConfigError(f"data.augment.makers.{name}.weight={maker.weight}: above 0, and finite")

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the makers and the annotator read."""
        return resources_of(self.annotate, *filter(None, self.makers.values()))

    def __call__(self, examples: Sequence[Example], prepare: Prepare) -> list[Example]:
        """Return the examples, each with a group, and after them what is made of them.

        What is made of a pair has its style, unless the maker names one, and counts as much as the pair times the
        weight of the maker. What is made of none is dealt to pairs at random, so that each style has its share:
        the deviations of styles undo what the shared weights alone learn. `prepare` adds the layers that training
        reads. Every example without a group becomes one by itself.
        """
        grouped = []
        for k, example in enumerate(examples):
            grouped.append(example if example.group is not None else replace(example, group=f"pair {k}"))
        layered, made = self._layered(grouped), list[Example]()
        own = {example.group: example for example in layered}
        by_style: dict[str | None, list[Example]] = {None: list(layered)}
        for style in {example.style for example in layered} - {None}:
            by_style[style] = [example for example in layered if example.style == style]
        for name, maker in self.makers.items():
            if maker is None:
                continue
            dealt, first = random.Random(f"{self.seed} {name} dealt"), len(made)
            for example in maker.make(layered, random.Random(f"{self.seed} {name}")):
                if (of := own.get(example.group)) is None:
                    if example.style not in by_style:
                        raise ConfigError(
                            f"data.augment.makers.{name}: no training pair has the style {example.style!r}: "
                            "name it in data.styles, or set the maker's style to null"
                        )
                    of = dealt.choice(by_style[example.style])
                style, origin = example.style or of.style, None if isinstance(maker, Again) else name
                made.append(replace(example, weight=maker.weight * of.weight, origin=origin, style=style))
            for style in sorted({example.style or "" for example in made[first:]} - {"", *by_style}):
                by_style[style] = [example for example in made[first:] if example.style == style]
                by_style[None] += by_style[style]
        pairs = prepare(list(map(attrgetter("pair"), made)))
        return [*grouped, *(replace(example, pair=pair) for example, pair in zip(made, pairs, strict=True))]

    def _layered(self, examples: Sequence[Example]) -> list[Example]:
        """The examples with words on both sides and gold links, with the layers that makers read."""
        usable = []
        for example in examples:
            if example.gold is not None and len(example.pair.source) and len(example.pair.target):
                usable.append(example)
        required = set[str]()
        for maker in filter(None, self.makers.values()):
            required.update(maker.requires)
        pairs = list(map(attrgetter("pair"), usable))
        lacking = []
        for k, pair in enumerate(pairs):
            if not (required <= pair.source.layers.keys() and required <= pair.target.layers.keys()):
                lacking.append(k)
        for k, pair in zip(lacking, self.annotate(list(map(pairs.__getitem__, lacking))), strict=True):
            pairs[k] = pair
        return [replace(example, pair=pair) for example, pair in zip(usable, pairs, strict=True)]


def augmented(
    config: Mapping[str, Any], examples: Sequence[Example], prepare: Prepare | None, aligner: Aligner
) -> list[Example]:
    """Return the examples and what the `Augmentation` of a config makes of them to train an aligner.

    `prepare` is None if made sentences cannot get the layers that training reads.
    """
    if prepare is None:
        raise ConfigError(
            "data.augment makes sentences, and annotate=given has no layers for them: choose another annotator, "
            "or data.augment=null"
        )
    augmentation: Augmentation = build(config, Augmentation)
    weights = {name: maker.weight for name, maker in augmentation.makers.items() if maker is not None}
    if set(weights.values()) != {1.0} and not (isinstance(aligner, Weighs) and aligner.weighs_examples):
        raise ConfigError(
            f"{type(aligner).__name__} counts every training pair alike: set the weights of data.augment.makers "
            f"to 1 ({', '.join(weights)})"
        )
    found = augmentation(examples, prepare)
    made = Counter(example.origin or example.style for example in found[len(examples) :])
    counts = ", ".join(f"{count} {name}" for name, count in made.items())
    log.info("%d pairs, and made of them: %s", len(examples), counts or "none")
    return found


def made_pair(
    source: Sequence[str], target: Sequence[str], links: Iterable[Link], group: str | None, name: str | None = None
) -> Example:
    """Return an example of two lists of tokens. A maker's weight and name are set later."""
    pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)), name)
    return Example(pair, Alignment(len(source), len(target), frozenset(links)), group=group)


def sides(example: Example) -> tuple[Sentence, Sentence]:
    """Both sentences."""
    return example.pair.source, example.pair.target


def with_side(example: Example, side: int, tokens: Sequence[str], links: Sequence[Link]) -> Example:
    """The example with other tokens on one side."""
    one, other = (tokens, example.pair.target.tokens) if side == 0 else (example.pair.source.tokens, tokens)
    return made_pair(one, other, links, example.group, example.pair.id)
