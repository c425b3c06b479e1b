"""What one direction of a linear chain has to say of one choice: a token, and the position that it takes.

Everything here is a sum that can be checked: reasons add up to scores, and the parts of a margin to the margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, overload

import numpy as np

from ..types import Alignment


class Reason(NamedTuple):
    """A feature speaks for something (contribution above 0) or against it."""

    feature: str  # family.name
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight


class Reasons(Sequence[Reason]):
    """Reasons, the strongest first; made into objects and put in order when they are looked at, as most never are.

    `names` of all features, `numbers` of these, their `values` and `weights`.
    """

    __slots__ = ("_sorted", "names", "numbers", "values", "weights")

    def __init__(self, names: Sequence[str], numbers: np.ndarray, values: np.ndarray, weights: np.ndarray) -> None:
        self.names, self.numbers, self.values, self.weights = names, numbers, values, weights
        self._sorted = False

    def _rows(self, which: slice) -> Iterator[tuple[str, float, float]]:
        if not self._sorted:
            order = np.argsort(-np.abs(self.values * self.weights), kind="stable")
            self.numbers, self.values, self.weights = (x[order] for x in (self.numbers, self.values, self.weights))
            self._sorted = True
        numbers, values, weights = (x[which].tolist() for x in (self.numbers, self.values, self.weights))
        return zip(map(self.names.__getitem__, numbers), values, weights, strict=True)

    @classmethod
    def difference(cls, here: Sequence[Reasons], there: Sequence[Reasons]) -> Reasons:
        """By feature: the values here less those there, where these are not the same."""
        every = [*here, *there]
        if not every:
            return NO_REASONS
        signed = [reasons.values for reasons in here] + [-reasons.values for reasons in there]
        numbers, values, weights = (
            np.concatenate(x) for x in ([r.numbers for r in every], signed, [r.weights for r in every])
        )
        numbers, first, values = summed(numbers, values)
        unlike = values.nonzero()[0]
        return cls(every[0].names, numbers[unlike], values[unlike], weights[first[unlike]])

    @property
    def total(self) -> float:
        """The sum of the contributions."""
        return float(self.values @ self.weights)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Reason: ...

    @overload
    def __getitem__(self, index: slice) -> list[Reason]: ...

    def __getitem__(self, index: int | slice) -> Reason | list[Reason]:
        if isinstance(index, slice):
            return [Reason(*row) for row in self._rows(index)]
        place = range(len(self))[index]  # an IndexError where there is none
        return Reason(*next(self._rows(slice(place, place + 1))))

    def __iter__(self) -> Iterator[Reason]:
        return iter(self[:])

    def __repr__(self) -> str:
        return f"<{len(self)} reasons, {self.total:+.3f}>"

    def to_dicts(self, top: int | None = None) -> list[dict[str, Any]]:
        """Plain data; `top` keeps the strongest only."""
        return [
            {"feature": name, "value": value, "weight": weight, "contribution": value * weight}
            for name, value, weight in self._rows(slice(top))
        ]


def summed(numbers: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct numbers in order, where each was first seen, and the sums of their values."""
    if not len(numbers):
        return numbers, np.zeros(0, dtype=np.int64), values
    order = numbers.argsort(kind="stable")
    numbers = numbers[order]
    starts = np.concatenate(([0], (numbers[1:] != numbers[:-1]).nonzero()[0] + 1))
    return numbers[starts], order[starts], np.add.reduceat(values[order], starts)


NO_REASONS = Reasons((), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Step:
    """A transition of the best path through a choice. A position is None for NULL; `kind` is "start" (there is
    nothing before), "step" or "end" (there is nothing after)."""

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
    """Another token that takes another position where the choice falls to the rival: `here` for the choice,
    `there` for its rival. `difference` is of its scores, here less there."""

    token: int
    here: int | None
    there: int | None
    difference: float

    def to_dict(self) -> dict[str, Any]:
        return {"token": self.token, "here": self.here, "there": self.there, "difference": self.difference}


@dataclass(frozen=True)
class Margin:
    """By how much the best path with the choice beats the best one with its rival; below 0 where it loses.

    `value` is the sum of the contributions of `own` (the token's own features: values here less there), of
    `transitions`, and of the differences of `moved`.
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
    """`direction`'s token number `token` takes `position` in the other sentence, or None: NULL, no link.

    `chosen`     whether it does so on the best path
    `posterior`  the probability of it
    `score`      of the node; `reasons` add up to it, the strongest first
    `steps`      into it and out of it, on the best path through it
    `rival`      of a choice that was made, the next best position; of one that was not, the one that was
    `margin`     over the rival; None where there is no other state at all
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
        """Plain data; `top` keeps the strongest reasons of each list only."""
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
    """One direction of an aligner on one pair. `name` is "forward" where source tokens choose target positions,
    "backward" where target tokens choose source positions; `alignment` goes from source to target in both."""

    @property
    def name(self) -> str: ...

    @property
    def alignment(self) -> Alignment: ...

    def choice(self, token: int, position: int | None) -> Choice: ...
