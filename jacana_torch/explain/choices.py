"""The values that explain one direction: reasons, steps of paths, margins, and the choices of tokens.

A choice is a token and the position that it takes in the other sentence. Its reasons add up to its score, and the
parts of its margin over the best competing position add up to the margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from ..features.titles import Titles
from ..types import Alignment
from .facts import percent, quoted

UNTITLED = Titles()


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

    @property
    def features(self) -> dict[str, float]:
        """The value of each feature."""
        return dict(zip(map(self.names.__getitem__, self.numbers.tolist()), self.values.tolist(), strict=True))

    def contributions(self) -> Iterator[tuple[str, float]]:
        """Yield each feature and its contribution, in no order."""
        amounts = (self.values * self.weights).tolist()
        return zip(map(self.names.__getitem__, self.numbers.tolist()), amounts, strict=True)

    def to_dicts(self, top: int | None = None, titles: Titles = UNTITLED) -> list[dict[str, Any]]:
        """Plain data of the `top` strongest reasons, or of all."""
        return [
            {
                "feature": name,
                "title": titles[name].text,
                "value": value,
                "weight": weight,
                "contribution": value * weight,
            }
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

    def to_dict(self, top: int | None = None, titles: Titles = UNTITLED) -> dict[str, Any]:
        places = {"before": self.before, "after": self.after}
        return {"kind": self.kind, **places, "score": self.score, "reasons": self.reasons.to_dicts(top, titles)}


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

    def to_dict(self, top: int | None = None, titles: Titles = UNTITLED) -> dict[str, Any]:
        return {
            "value": self.value,
            "own": self.own.to_dicts(top, titles),
            "transitions": self.transitions.to_dicts(top, titles),
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
    `candidate`  the most probable other position, not NULL; None if there is no other
    `unlinked`   the probability of NULL
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
    candidate: int | None = None
    candidate_posterior: float = 0.0
    unlinked: float = 0.0

    def compared(self, own: Sequence[str], other: Sequence[str]) -> str:
        """Say what the margin and the probabilities compare, given the tokens of both sides."""

        def named(position: int | None) -> str:
            return quoted(None if position is None else other[position])

        text = f"{quoted(own[self.token])} takes {named(self.position)} with probability {percent(self.posterior)}"
        if self.margin is None:
            return f"{text}."
        competitor = named(self.rival)
        more = "more" if self.margin.value >= 0 else "less"
        return (
            f"{text}, {competitor} with {percent(self.rival_posterior)}. "
            f"The best path with {named(self.position)} scores {abs(self.margin.value):.2f} {more} than "
            f"the best path with {competitor}."
        )

    def to_dict(self, top: int | None = None, titles: Titles = UNTITLED) -> dict[str, Any]:
        """Plain data, with at most `top` reasons in each list."""
        return {
            "direction": self.direction,
            "token": self.token,
            "position": self.position,
            "chosen": self.chosen,
            "posterior": self.posterior,
            "score": self.score,
            "reasons": self.reasons.to_dicts(top, titles),
            "steps": [step.to_dict(top, titles) for step in self.steps],
            "rival": self.rival,
            "rival_posterior": self.rival_posterior,
            "margin": None if self.margin is None else self.margin.to_dict(top, titles),
        }


class Direction(Protocol):
    """One direction of an aligner on one pair; `alignment` runs from source to target in both directions."""

    @property
    def name(self) -> str: ...

    @property
    def alignment(self) -> Alignment: ...

    def choice(self, token: int, position: int | None) -> Choice: ...
