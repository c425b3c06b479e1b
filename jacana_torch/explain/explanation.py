"""The values of an explanation, from a single reason to the explanation of a sentence pair.

An `Explanation` covers a pair. Its `link(i, j)` is a `LinkExplanation` with one `Choice` for each direction: a
token and the position that it takes in the other sentence. A choice has the reasons of its score, and its margin
over the best competing position. Reasons add up to scores, and the parts of a margin add up to the margin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from ..errors import ConfigError
from ..types import Alignment, Link, SentencePair


class Reason(NamedTuple):
    """A feature that supports something (contribution above 0) or opposes it."""

    feature: str  # family.name
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight


class Reasons(Sequence[Reason]):
    """A sequence of reasons, the strongest first, backed by arrays: most reasons are never looked at.

    `names` are those of all features; `numbers`, `values` and `weights` are arrays with one item per reason.
    """

    __slots__ = ("_sorted", "names", "numbers", "values", "weights")

    def __init__(self, names: Sequence[str], numbers: np.ndarray, values: np.ndarray, weights: np.ndarray) -> None:
        self.names, self.numbers, self.values, self.weights = names, numbers, values, weights
        self._sorted = False

    @classmethod
    def difference(cls, here: Sequence[Reasons], there: Sequence[Reasons]) -> Reasons:
        """For each feature, the sum of its values in `here` minus the sum in `there`, without the zeros."""
        every = [*here, *there]
        if not every:
            return cls((), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
        signed = [reasons.values for reasons in here] + [-reasons.values for reasons in there]
        numbers, first, values = summed(np.concatenate([r.numbers for r in every]), np.concatenate(signed))
        weights = np.concatenate([r.weights for r in every])
        unlike = values.nonzero()[0]
        return cls(every[0].names, numbers[unlike], values[unlike], weights[first[unlike]])

    @property
    def total(self) -> float:
        """The sum of the contributions."""
        return float(self.values @ self.weights)

    def to_dicts(self, top: int | None = None) -> list[dict[str, Any]]:
        """Plain data of the `top` strongest reasons, or of all."""
        return [
            {"feature": name, "value": value, "weight": weight, "contribution": value * weight}
            for name, value, weight in self._rows(slice(top))
        ]

    def _rows(self, which: slice) -> Iterator[tuple[str, float, float]]:
        if not self._sorted:
            order = np.argsort(-np.abs(self.values * self.weights), kind="stable")
            self.numbers, self.values, self.weights = (x[order] for x in (self.numbers, self.values, self.weights))
            self._sorted = True
        numbers, values, weights = (x[which].tolist() for x in (self.numbers, self.values, self.weights))
        return zip(map(self.names.__getitem__, numbers), values, weights, strict=True)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Reason: ...

    @overload
    def __getitem__(self, index: slice) -> list[Reason]: ...

    def __getitem__(self, index: int | slice) -> Reason | list[Reason]:
        if isinstance(index, slice):
            return [Reason(*row) for row in self._rows(index)]
        place = range(len(self))[index]  # raises IndexError beyond the end
        return Reason(*next(self._rows(slice(place, place + 1))))

    def __iter__(self) -> Iterator[Reason]:
        return iter(self[:])

    def __repr__(self) -> str:
        return f"<{len(self)} reasons, {self.total:+.3f}>"


def summed(numbers: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum values by number: the distinct numbers in order, where each first occurs, and their sums."""
    if not len(numbers):
        return numbers, np.zeros(0, dtype=np.int64), values
    order = numbers.argsort(kind="stable")
    numbers = numbers[order]
    starts = np.concatenate(([0], (numbers[1:] != numbers[:-1]).nonzero()[0] + 1))
    return numbers[starts], order[starts], np.add.reduceat(values[order], starts)


@dataclass(frozen=True)
class Step:
    """A transition of the best path through a choice.

    `before` and `after` are positions, None for NULL. `kind` is "start" (nothing comes before), "step" or "end"
    (nothing comes after).
    """

    kind: str
    before: int | None
    after: int | None
    reasons: Reasons

    @property
    def score(self) -> float:
        return self.reasons.total

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        places = {"before": self.before, "after": self.after}
        return {"kind": self.kind, **places, "score": self.score, "reasons": self.reasons.to_dicts(top)}


@dataclass(frozen=True)
class Moved:
    """Another token whose position differs between the two paths that a margin compares.

    It takes `here` on the path of the choice and `there` on the competitor's path. `difference` is its node score
    here minus that there.
    """

    token: int
    here: int | None
    there: int | None
    difference: float

    def to_dict(self) -> dict[str, Any]:
        return {"token": self.token, "here": self.here, "there": self.there, "difference": self.difference}


@dataclass(frozen=True)
class Margin:
    """Score of the best path with the choice minus that of the best path with its competitor.

    `value` is the sum of the contributions in `own` (features of the token itself), of those in `transitions`, and
    of the differences in `moved`.
    """

    value: float
    own: Reasons
    transitions: Reasons
    moved: tuple[Moved, ...] = ()

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        return {
            "value": self.value,
            "own": self.own.to_dicts(top),
            "transitions": self.transitions.to_dicts(top),
            "moved": [moved.to_dict() for moved in self.moved],
        }


@dataclass(frozen=True)
class Choice:
    """One direction's choice of a `position` (None for NULL, no link) for the token number `token`.

    `direction`  "forward" if source tokens choose target positions, else "backward"
    `chosen`     whether the best path makes this choice
    `posterior`  its probability
    `score`      its node score, the sum of `reasons`
    `steps`      the transitions into it and out of it, on the best path through it
    `rival`      its best competitor: the second best position if it was chosen, else the position that was
    `margin`     over the competitor; None if there is no other state
    """

    direction: str
    token: int
    position: int | None
    chosen: bool
    posterior: float
    score: float
    reasons: Reasons
    steps: tuple[Step, ...] = field(repr=False)
    rival: int | None = None
    rival_posterior: float = 0.0
    margin: Margin | None = None

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Plain data, with at most `top` reasons in each list."""
        return {
            "direction": self.direction,
            "token": self.token,
            "position": self.position,
            "chosen": self.chosen,
            "posterior": self.posterior,
            "score": self.score,
            "reasons": self.reasons.to_dicts(top),
            "steps": [step.to_dict(top) for step in self.steps],
            "rival": self.rival,
            "rival_posterior": self.rival_posterior,
            "margin": None if self.margin is None else self.margin.to_dict(top),
        }


class Direction(Protocol):
    """One direction of an aligner on one pair; `alignment` runs from source to target in both directions."""

    @property
    def name(self) -> str: ...

    @property
    def alignment(self) -> Alignment: ...

    def choice(self, token: int, position: int | None) -> Choice: ...


@dataclass(frozen=True)
class LinkExplanation:
    """Why source token `source` and target token `target` are linked, or are not.

    `forward` is the source token's choice of the target token, `backward` the reverse; None if the aligner lacks
    that direction. `verdict` says in words how the two were combined.
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
        """Text with the `top` strongest reasons of both directions."""
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
    """The explanation of one pair; links are explained on demand.

    `directions` holds one or two directions, or none if the aligner has no reasons to give; `note` then says why.
    """

    pair: SentencePair
    alignment: Alignment
    directions: Sequence[Direction] = field(default=(), repr=False)
    symmetrizer: str | None = None
    note: str = ""

    def link(self, i: int, j: int) -> LinkExplanation:
        """Explain source token i and target token j, counted from 0, linked or not."""
        for side, sentence, index in (("source", self.pair.source, i), ("target", self.pair.target, j)):
            if not 0 <= index < len(sentence):
                raise ConfigError(
                    f"there is no {side} token {index}: {str(sentence)[:60]!r} has {len(sentence)} tokens, "
                    "counted from 0"
                )
        choices: dict[str, Choice] = {}
        for direction in self.directions:
            token, position = (i, j) if direction.name == "forward" else (j, i)
            choices[direction.name] = direction.choice(token, position)
        linked = _has(self.alignment, (i, j))
        confidence, verdict = self.alignment.confidence.get((i, j)), self._verdict((i, j), linked)
        return LinkExplanation(i, j, linked, confidence, **choices, verdict=verdict, pair=self.pair)

    def links(self) -> list[LinkExplanation]:
        """Explain all links, in reading order."""
        return [self.link(i, j) for i, j in self.alignment.all_links]

    def _verdict(self, link: Link, linked: bool) -> str:
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
        """Plain data for JSON, of every link or of those in `links`, with at most `top` reasons in each list."""
        explained = self.links() if links is None else [self.link(i, j) for i, j in links]
        return {
            "source": list(self.pair.source.tokens),
            "target": list(self.pair.target.tokens),
            "score": self.alignment.score,
            "symmetrizer": self.symmetrizer,
            "directions": [direction.name for direction in self.directions],
            "note": self.note,
            "links": [link.to_dict(top) for link in explained],
        }

    def to_text(self, top: int = 3) -> str:
        """Text with every link and its `top` strongest reasons in each direction."""
        from .text import explanation_text

        return explanation_text(self, top)


def _has(alignment: Alignment, link: Link) -> bool:
    return link in alignment.sure or link in alignment.possible
