"""An alignment and what its aligner can say for it: both directions, and what was made of the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConfigError
from ..types import Alignment, Link, SentencePair
from .choice import Choice, Direction


@dataclass(frozen=True)
class LinkExplanation:
    """Why source token `source` and target token `target` are linked, or are not.

    `forward`  what the source token made of the target token, `backward` the other way round; None where the
               aligner has no such direction
    `verdict`  what was made of the two, in words
    """

    source: int
    target: int
    linked: bool
    confidence: float | None
    forward: Choice | None = None
    backward: Choice | None = None
    verdict: str = ""
    pair: SentencePair | None = field(default=None, repr=False)

    @property
    def choices(self) -> list[Choice]:
        return [choice for choice in (self.forward, self.backward) if choice is not None]

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, top: int = 8) -> str:
        """For people: both directions with their `top` strongest reasons."""
        from .text import link_text

        return link_text(self, top)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        return {
            "source": self.source,
            "target": self.target,
            "linked": self.linked,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "forward": None if self.forward is None else self.forward.to_dict(top),
            "backward": None if self.backward is None else self.backward.to_dict(top),
        }


@dataclass(frozen=True)
class Explanation:
    """What an aligner says of one pair. `directions` are one, two, or none where it can give no reasons, which
    `note` then says. Links are worked out when they are asked for."""

    pair: SentencePair
    alignment: Alignment
    directions: Sequence[Direction] = field(default=(), repr=False)
    symmetrizer: str | None = None
    note: str = ""

    def link(self, i: int, j: int) -> LinkExplanation:
        """Of source token i and target token j, from 0, linked or not."""
        self._check(i, j)
        linked = (i, j) in self.alignment.sure or (i, j) in self.alignment.possible
        found: dict[str, Choice] = {}
        for direction in self.directions:
            token, position = (i, j) if direction.name == "forward" else (j, i)
            found[direction.name] = direction.choice(token, position)
        confidence, verdict = self.alignment.confidence.get((i, j)), self._verdict((i, j), linked)
        return LinkExplanation(i, j, linked, confidence, **found, verdict=verdict, pair=self.pair)

    def links(self) -> list[LinkExplanation]:
        """Of all links, in reading order."""
        return [self.link(i, j) for i, j in self.alignment.all_links]

    def _check(self, i: int, j: int) -> None:
        for side, sentence, index in (("source", self.pair.source, i), ("target", self.pair.target, j)):
            if not 0 <= index < len(sentence):
                raise ConfigError(
                    f"there is no {side} token {index}: {str(sentence)[:60]!r} has {len(sentence)} tokens, "
                    "counted from 0"
                )

    def _verdict(self, link: Link, linked: bool) -> str:
        if len(self.directions) < 2:
            return self.note
        have = [d.name for d in self.directions if link in d.alignment.sure or link in d.alignment.possible]
        how = self.symmetrizer or "what joins them"
        done = f"{how} keeps it{self._beside(link)}" if linked else f"{how} leaves it out"
        if not have:
            return f"neither direction has it, and {how} adds it" if linked else "neither direction has it"
        if len(have) == 1:
            return f"only the {have[0]} direction has it, and {done}"
        return "both directions have it" if linked else f"both directions have it, and {done}"

    def _beside(self, link: Link) -> str:
        """Of a link that one direction has: which one that both have it stands beside."""
        i, j = link
        one, other = (direction.alignment.sure for direction in self.directions)
        beside = [(a, b) for a in (i - 1, i, i + 1) for b in (j - 1, j, j + 1) if (a, b) in one & other]
        return f", beside {beside[0][0]}-{beside[0][1]}" if beside else ""

    def __str__(self) -> str:
        return self.to_text()

    def to_dict(self, top: int | None = None, links: Iterable[Link] | None = None) -> dict[str, Any]:
        """Plain data for JSON: every link, or those asked for, with all that is known of them; `top` keeps the
        strongest reasons of each list only."""
        told = self.links() if links is None else [self.link(i, j) for i, j in links]
        return {
            "source": list(self.pair.source.tokens),
            "target": list(self.pair.target.tokens),
            "score": self.alignment.score,
            "symmetrizer": self.symmetrizer,
            "directions": [direction.name for direction in self.directions],
            "note": self.note,
            "links": [link.to_dict(top) for link in told],
        }

    def to_text(self, top: int = 3) -> str:
        """For people: every link with its `top` strongest reasons in either direction."""
        from .text import explanation_text

        return explanation_text(self, top)
