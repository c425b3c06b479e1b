"""Log-odds of links as sums of parts, for aligners that are not linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..types import Link
from .facts import percent
from .groups import Detail, Group

START = "average words"  # what the log-odds of a link would be before any evidence
CELLS = ("these two words", "their other candidates", "the other words")
Occlude = Callable[[Link], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Parts:
    """The log-odds of every cell of a pair: `start` plus the sum of `parts`.

    `names`     of the parts, groups of evidence.
    `start`     [M, N], and `parts` [G, M, N].
    `spread`    [G, M, N] how much of a part another order of the groups may move to other parts; 0 if it is exact.
    `given`     [M, N] the probabilities by each component of the aligner, and `combined` by all of them.
    `cosines`   [M, N] of the words' vectors in the encoder's last layer, if there is an encoder.
    `columns`   of the features, and `values` [M, N, columns].
    `method`    how the parts were computed, and what of them is approximate.
    `occlude`   the network's log-odds of a link by where its inputs are: [3] of CELLS, and their spread.
    `weight`    [M, N] of the network's log-odds in the sum.
    """

    names: Sequence[str]
    start: np.ndarray
    parts: np.ndarray
    spread: np.ndarray
    given: Mapping[str, np.ndarray]
    combined: np.ndarray
    method: str
    cosines: np.ndarray | None = None
    columns: Sequence[str] = ()
    values: np.ndarray | None = None
    occlude: Occlude | None = None
    weight: np.ndarray | None = None

    @property
    def log_odds(self) -> np.ndarray:
        """[M, N] of the sum."""
        total: np.ndarray = self.start + self.parts.sum(0)
        return total

    def groups(self, link: Link) -> list[Group]:
        """Return the parts of a link's log-odds, the strongest first."""
        found = [Group(START, float(self.start[link]), (Detail(START, float(self.start[link])),))]
        for name, part, spread in zip(self.names, self.parts, self.spread, strict=True):
            amount = float(part[link])
            found.append(Group(name, amount, (Detail(name, amount),), float(spread[link])))
        return sorted(found, key=lambda group: -abs(group.sum))

    def cells(self, link: Link) -> list[Group]:
        """Return the network's part of the log-odds, without what is before any evidence, by the cells read."""
        if self.occlude is None:
            return []
        weight = 1.0 if self.weight is None else float(self.weight[link])
        found = zip(CELLS, *self.occlude(link), strict=True)
        return [Group(name, weight * one, (), abs(weight) * spread) for name, one, spread in found]

    def verdict(self, link: Link) -> str:
        """Say what each component makes of a link."""
        said = [
            f"{name} {'give' if name.endswith('s') else 'gives'} {percent(float(p[link]))}"
            for name, p in self.given.items()
        ]
        return ", ".join(said)

    def features(self, link: Link) -> dict[str, float]:
        """Return the columns of a cell that are not 0."""
        if self.values is None:
            return {}
        own = self.values[link]
        there = np.flatnonzero(own)
        return dict(zip(map(self.columns.__getitem__, there.tolist()), own[there].tolist(), strict=True))

    def candidates(self, link: Link) -> Iterator[tuple[int, int, float, float]]:
        """Yield for both words the side, the best other candidate, and the probabilities of it and of the link."""
        i, j = link
        own = float(self.combined[link])
        for side, line, place in ((0, self.combined[i], j), (1, self.combined[:, j], i)):
            others = line.copy()
            others[place] = -1.0
            if len(others) > 1:
                best = int(others.argmax())
                yield side, best, float(others[best]), own

    def clauses(self, link: Link) -> dict[str, list[list[str]]]:
        """Return clauses of the encoder and of components, by group."""
        found: dict[str, list[list[str]]] = {}
        if self.cosines is not None:
            found["encoder"] = [list(_of_cosines(self.cosines, link))]
        for name, given in self.given.items():
            sign = "+" if given[link] >= 0.5 else "-"
            said = "give it" if name.endswith("s") else "gives it"
            found[name.removeprefix("the ")] = [[f"{sign} {name} {said} {percent(float(given[link]))}"]]
        return found

    def scaled(self, weight: np.ndarray) -> Parts:
        """Return the parts with log-odds multiplied by [M, N] weights."""
        size = np.abs(weight)
        start, parts, spread = self.start * weight, self.parts * weight, self.spread * size
        return replace(self, start=start, parts=parts, spread=spread, weight=weight)


def _of_cosines(cosines: np.ndarray, link: Link) -> Iterator[str]:
    i, j = link
    own = float(cosines[link])
    nearest = own >= cosines[i].max() and own >= cosines[:, j].max()
    if nearest and max(cosines.shape) > 1:
        yield f"+ nearest to each other in context (cosine {own:.2f})"
    elif not nearest:
        yield f"- another word is nearer in context (cosine {own:.2f})"
