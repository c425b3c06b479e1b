"""Contributions added up by group: what a few bars show of some hundred features.

The groups of a link add up to the mean margin of its choices, and the details of a group to its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..features.titles import Titles

if TYPE_CHECKING:
    from .choices import Choice

OTHERS = "links of other words"  # what they gain or lose on the paths that a margin compares
REST = "the rest"
OF_PATHS = "the best path with the link against the best path without it (log-odds)"
MOST_BARS = 5


@dataclass(frozen=True)
class Detail:
    """A feature's contribution to a group."""

    title: str
    contribution: float


@dataclass(frozen=True)
class Group:
    """Contributions of one kind; positive ones support the link. `details` are sorted, the strongest first.

    `spread` is how much of the sum may as well belong to other groups: 0 if it is exact.
    """

    title: str
    sum: float
    details: tuple[Detail, ...]
    spread: float = 0.0

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        details = [{"title": one.title, "contribution": one.contribution} for one in self.details[:top]]
        return {"title": self.title, "sum": self.sum, "spread": self.spread, "details": details}


def of_choices(choices: Sequence[Choice], titles: Titles) -> list[Group]:
    """Group the margins of the choices, averaged, the strongest group first."""
    found: dict[str, dict[str, float]] = {}
    compared = [choice for choice in choices if choice.margin is not None]
    for choice in compared:
        for group, title, contribution in _contributions(choice, titles):
            own = found.setdefault(group, {})
            own[title] = own.get(title, 0.0) + contribution / len(compared)
    return grouped(found.items())


def grouped(contributions: Iterable[tuple[str, dict[str, float]]]) -> list[Group]:
    """Make groups of contributions by title, the strongest first."""
    groups = []
    for name, own in contributions:
        details = sorted((Detail(*one) for one in own.items()), key=lambda one: -abs(one.contribution))
        groups.append(Group(name, sum(own.values()), tuple(details)))
    return sorted(groups, key=lambda group: -abs(group.sum))


def bars(groups: Sequence[Group], most: int = MOST_BARS) -> list[Group]:
    """Return at most so many groups: the strongest, and the rest as one."""
    if len(groups) <= most:
        return list(groups)
    rest = groups[most - 1 :]
    details = tuple(Detail(group.title, group.sum) for group in rest)
    sums, spreads = (sum(values) for values in zip(*((group.sum, group.spread) for group in rest), strict=True))
    return [*groups[: most - 1], Group(REST, sums, details, spreads)]


def _contributions(choice: Choice, titles: Titles) -> Iterable[tuple[str, str, float]]:
    """Yield group, title and contribution of everything that the choice's margin is the sum of."""
    assert choice.margin is not None
    for reasons in (choice.margin.own, choice.margin.transitions):
        for feature, contribution in reasons.contributions():
            title = titles[feature]
            yield title.group, title.text, contribution
    for moved in choice.margin.moved:
        yield OTHERS, OTHERS, moved.difference
