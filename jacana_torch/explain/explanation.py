"""The explanation of a sentence pair, and of each of its links.

An `Explanation` covers a pair. Its `link(i, j)` is a `LinkExplanation` with one `Choice` (choices.py) for each
direction, groups of contributions, and the reason as a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import ConfigError
from ..features.titles import Titles
from ..types import Alignment, Link, SentencePair
from .choices import UNTITLED, Choice, Direction
from .facts import Facts, Heads, clauses
from .groups import OF_PATHS, Group, bars, of_choices
from .parts import Parts
from .sentence import because, sentence

PATHS = (
    "The groups add up exactly to the log-odds of two paths: the best one with the link against the best one "
    "without it, averaged over the directions."
)


@dataclass(frozen=True)
class LinkExplanation:
    """Why source token `source` and target token `target` are linked, or are not.

    `forward` is the source token's choice of the target token, `backward` the reverse; None if the aligner lacks
    that direction. `verdict` says in words how the two were combined; `whole` is the explanation of the pair.
    """

    source: int
    target: int
    linked: bool
    confidence: float | None
    forward: Choice | None = None
    backward: Choice | None = None
    verdict: str = ""
    whole: Explanation | None = field(default=None, repr=False)

    @property
    def pair(self) -> SentencePair | None:
        return None if self.whole is None else self.whole.pair

    @property
    def choices(self) -> list[Choice]:
        return [choice for choice in (self.forward, self.backward) if choice is not None]

    @property
    def titles(self) -> Titles:
        return UNTITLED if self.whole is None else self.whole.titles

    @cached_property
    def groups(self) -> list[Group]:
        """The contributions by group, the strongest first. They add up to `total`."""
        if self.whole is not None and self.whole.parts is not None:
            return self.whole.parts.groups((self.source, self.target))
        return of_choices(self.choices, self.titles)

    @cached_property
    def cells(self) -> list[Group]:
        """Contributions of a network by the cells that it reads, without those before any evidence."""
        parts = None if self.whole is None else self.whole.parts
        return [] if parts is None else parts.cells((self.source, self.target))

    @property
    def total(self) -> str:
        """What the groups add up to."""
        parts = None if self.whole is None else self.whole.parts
        return OF_PATHS if parts is None else "the log-odds of the link"

    @property
    def reason(self) -> str:
        """One sentence with the facts behind the largest groups; empty if the aligner gives no reasons."""
        if self.whole is None or not self.because:
            return ""
        sides = self.whole.pair.source.tokens, self.whole.pair.target.tokens
        return sentence((sides[0][self.source], sides[1][self.target]), self.linked, self.because)

    @cached_property
    def because(self) -> str:
        """The sentence without the words and what it says of them."""
        if self.whole is None or not self.groups:
            return ""
        found = clauses(self._facts(self.whole), self.titles)
        if self.whole.parts is not None:
            found |= self.whole.parts.clauses((self.source, self.target))
        return because(self.linked, self.confidence, self.groups, found)

    def _facts(self, whole: Explanation) -> Facts:
        sides = whole.pair.source.tokens, whole.pair.target.tokens
        if whole.parts is not None:
            return self._facts_of_parts(whole, whole.parts)
        competitors, unlinked = [], []
        for choice in self.choices:
            own, other = sides if choice.direction == "forward" else sides[::-1]
            unlinked.append((own[choice.token], choice.unlinked))
            if choice.candidate is not None:
                probabilities = choice.candidate_posterior, choice.posterior
                competitors.append((own[choice.token], other[choice.candidate], *probabilities))
        links, pair, place = whole.alignment.all_links, whole.pair, (self.source, self.target)
        heads = whole.heads
        if self.forward is None:  # the columns are those of the flipped pair
            links, pair, place = [(j, i) for i, j in links], pair.flip(), place[::-1]
            heads = None
        values = self.choices[0].reasons.features
        return Facts(pair, place, values, frozenset(links), competitors, unlinked, heads, self._surer(whole))

    def _facts_of_parts(self, whole: Explanation, parts: Parts) -> Facts:
        sides, place = (whole.pair.source.tokens, whole.pair.target.tokens), (self.source, self.target)
        competitors = []
        for side, best, probability, own in parts.candidates(place):
            competitors.append((sides[side][place[side]], sides[1 - side][best], probability, own))
        values = parts.features(place) if self.forward is None else self.forward.reasons.features
        links = frozenset(whole.alignment.all_links)
        return Facts(whole.pair, place, values, links, competitors, (), whole.heads, self._surer(whole))

    def _surer(self, whole: Explanation) -> bool:
        """Whether another link of one of the words is more probable."""
        own = 1.0 if self.confidence is None else self.confidence
        return any(
            (i == self.source) != (j == self.target) and probability > own
            for (i, j), probability in whole.alignment.confidence.items()
        )

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, top: int = 8, details: bool = False) -> str:
        """Text: the sentence, the groups, and with `details` the `top` strongest reasons of both directions."""
        from .text import link_text

        return link_text(self, top, details)

    def to_dict(self, top: int | None = None, cells: bool = True) -> dict[str, Any]:
        """Plain data. `cells`: those of a network, which take time, too."""
        return {
            "source": self.source,
            "target": self.target,
            "linked": self.linked,
            "confidence": self.confidence,
            "reason": self.reason,
            "groups": [group.to_dict(top) for group in bars(self.groups)],
            "total": self.total,
            **({"cells": [group.to_dict() for group in self.cells]} if cells and self.cells else {}),
            "verdict": self.verdict,
            "forward": self._choice(self.forward, top),
            "backward": self._choice(self.backward, top),
        }

    def _choice(self, choice: Choice | None, top: int | None) -> dict[str, Any] | None:
        if choice is None or self.whole is None:
            return None
        sides = self.whole.pair.source.tokens, self.whole.pair.target.tokens
        compared = choice.compared(*(sides if choice.direction == "forward" else sides[::-1]))
        return {**choice.to_dict(top, self.titles), "compared": compared}


@dataclass(frozen=True)
class Explanation:
    """The explanation of one pair; links are explained on demand.

    `directions` holds one or two directions, or none if the aligner has no reasons to give; `note` then says why.
    `titles` are those of the features, and `heads` finds the heads of the words if features compare them. `parts`
    are the log-odds of an aligner that is not linear; its directions explain its chains.
    """

    pair: SentencePair
    alignment: Alignment
    directions: Sequence[Direction] = field(default=(), repr=False)
    symmetrizer: str | None = None
    note: str = ""
    titles: Titles = field(default=UNTITLED, repr=False)
    heads: Heads | None = field(default=None, repr=False)
    parts: Parts | None = field(default=None, repr=False)

    @property
    def method(self) -> str:
        """How contributions were computed, and what of them is approximate."""
        if self.parts is not None:
            return self.parts.method
        return PATHS if self.directions else ""

    def link(self, i: int, j: int) -> LinkExplanation:
        """Explain source token i and target token j, counted from 0, linked or not."""
        for side, tokens, index in (("source", self.pair.source, i), ("target", self.pair.target, j)):
            if not 0 <= index < len(tokens):
                raise ConfigError(
                    f"there is no {side} token {index}: {str(tokens)[:60]!r} has {len(tokens)} tokens, "
                    "counted from 0"
                )
        choices: dict[str, Choice] = {}
        for direction in self.directions:
            token, position = (i, j) if direction.name == "forward" else (j, i)
            choices[direction.name] = direction.choice(token, position)
        linked = _has(self.alignment, (i, j))
        confidence, verdict = self.alignment.confidence.get((i, j)), self._verdict((i, j), linked)
        return LinkExplanation(i, j, linked, confidence, **choices, verdict=verdict, whole=self)

    def links(self) -> list[LinkExplanation]:
        """Explain all links, in reading order."""
        return [self.link(i, j) for i, j in self.alignment.all_links]

    def _verdict(self, link: Link, linked: bool) -> str:
        if self.parts is not None:
            return self.parts.verdict(link)
        if len(self.directions) < 2:
            return self.note
        found = [direction.name for direction in self.directions if _has(direction.alignment, link)]
        how = self.symmetrizer or "the combination"
        outcome = f"{how} keeps it{self._adjacent(link)}" if linked else f"{how} leaves it out"
        if not found:
            return f"neither direction has it, and {how} adds it" if linked else "neither direction has it"
        if len(found) == 1:
            return f"only the {found[0]} direction has it, and {outcome}"
        return "both directions have it" if linked else f"both directions have it, and {outcome}"

    def _adjacent(self, link: Link) -> str:
        """Name the first adjacent link that both directions have: growing starts from those."""
        i, j = link
        one, other = (direction.alignment.sure for direction in self.directions)
        near = [(a, b) for a in (i - 1, i, i + 1) for b in (j - 1, j, j + 1) if (a, b) in one & other]
        return f", beside {near[0][0]}-{near[0][1]}" if near else ""

    def __str__(self) -> str:
        return self.to_text()

    def to_dict(self, top: int | None = None, links: Iterable[Link] | None = None) -> dict[str, Any]:
        """Plain data for JSON, of every link or of those in `links`, with at most `top` reasons in each list.

        Only `links` that are named have the cells that a network reads.
        """
        explained = self.links() if links is None else [self.link(i, j) for i, j in links]
        return {
            "source": list(self.pair.source.tokens),
            "target": list(self.pair.target.tokens),
            **self.pair.offsets,
            "score": self.alignment.score,
            "symmetrizer": self.symmetrizer,
            "directions": [direction.name for direction in self.directions],
            "note": self.note,
            "method": self.method,
            "links": [link.to_dict(top, cells=links is not None) for link in explained],
        }

    def to_text(self, top: int = 3, details: bool = False) -> str:
        """Text with the sentence of every link and its groups; with `details`, the `top` strongest reasons too."""
        from .text import explanation_text

        return explanation_text(self, top, details)


def _has(alignment: Alignment, link: Link) -> bool:
    return link in alignment.sure or link in alignment.possible
