"""What one direction of a linear chain has to say of one choice: a token, and the position that it takes.

Everything here is a sum that can be checked: reasons add up to scores, and the parts of a margin to the margin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..types import Alignment


class Reason(NamedTuple):
    """A feature speaks for something (contribution above 0) or against it."""

    feature: str  # family.name
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "contribution": self.contribution}


@dataclass(frozen=True)
class Step:
    """A transition of the best path through a choice. A position is None for NULL; `kind` is "start" (there is
    nothing before), "step" or "end" (there is nothing after)."""

    kind: str
    before: int | None
    after: int | None
    reasons: tuple[Reason, ...] = field(repr=False)

    @property
    def score(self) -> float:
        return sum(reason.contribution for reason in self.reasons)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        places = {"before": self.before, "after": self.after}
        return {"kind": self.kind, **places, "score": self.score, "reasons": _dicts(self.reasons, top)}


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
    own: tuple[Reason, ...] = field(repr=False)
    transitions: tuple[Reason, ...] = field(repr=False)
    moved: tuple[Moved, ...] = ()

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        return {
            "value": self.value,
            "own": _dicts(self.own, top),
            "transitions": _dicts(self.transitions, top),
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
    reasons: tuple[Reason, ...] = field(repr=False)
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
            "reasons": _dicts(self.reasons, top),
            "steps": [step.to_dict(top) for step in self.steps],
            "rival": self.rival,
            "rival_posterior": self.rival_posterior,
            "margin": None if self.margin is None else self.margin.to_dict(top),
        }


def _dicts(reasons: Iterable[Reason], top: int | None) -> list[dict[str, Any]]:
    return [reason.to_dict() for reason in list(reasons)[:top]]


class Direction(Protocol):
    """One direction of an aligner on one pair. `name` is "forward" where source tokens choose target positions,
    "backward" where target tokens choose source positions; `alignment` goes from source to target in both."""

    @property
    def name(self) -> str: ...

    @property
    def alignment(self) -> Alignment: ...

    def choice(self, token: int, position: int | None) -> Choice: ...
