"""Pairs of several conventions once more, as those of one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from ...types import Example, Sentence, SentencePair
from ...util.build import Items, Positive


@dataclass(frozen=True)
class Again:
    """Repeat the pairs of `styles` as pairs of the style `style`, which suits text of unknown convention.

    They count as pairs of a corpus in calibration. Pairs of later makers that are made of no pair are dealt to it,
    too.
    """

    styles: Annotated[Sequence[str], Items(1)]
    style: str
    weight: Positive = 1.0
    requires: tuple[str, ...] = ()

    def make(self, examples: Sequence[Example], rng: random.Random) -> Iterator[Example]:
        for example in examples:
            if example.style in self.styles:
                pair = example.pair
                bare = SentencePair(Sentence(pair.source.tokens), Sentence(pair.target.tokens), pair.id)
                yield replace(example, pair=bare, style=self.style)
