"""Agreement between annotators who aligned the same pairs: F1, exact match and kappa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import JacanaError
from ..types import Alignment
from ..util.tables import Sheet
from ..version import __version__
from .scores import Score, check_same, links_of, score


@dataclass(frozen=True)
class Agreement:
    """The agreement of two annotators. F1 and exact match do not depend on which of them counts as gold."""

    first: str
    second: str
    score: Score  # with the first annotator as gold
    kappa: float  # Cohen's, over all cells


def agreements(annotators: Mapping[str, Sequence[Alignment]], links: str = "sure") -> list[Agreement]:
    """The agreement of each two annotators."""
    if len(annotators) < 2:
        raise JacanaError(f"agreement needs at least two annotators, not {len(annotators)}")
    found = []
    for one, other in combinations(annotators, 2):
        both = annotators[one], annotators[other]
        found.append(Agreement(one, other, score(*both, links), cohen(*both, links)))
    return found


def cohen(one: Sequence[Alignment], other: Sequence[Alignment], links: str = "sure") -> float:
    """Cohen's kappa of two annotators, over the decisions whether each cell is a link."""
    check_same(one, other)
    cells = np.zeros((2, 2))
    for a, b in zip(one, other, strict=True):
        mine, theirs = links_of(a, links), links_of(b, links)
        both = len(mine & theirs)
        apart = len(mine) - both, len(theirs) - both
        cells += [[a.n_source * a.n_target - both - sum(apart), apart[1]], [apart[0], both]]
    return _kappa(
        np.trace(cells) / max(cells.sum(), 1), float(cells.sum(0) @ cells.sum(1)) / max(cells.sum(), 1) ** 2
    )


def fleiss(annotators: Sequence[Sequence[Alignment]], links: str = "sure") -> float:
    """Fleiss's kappa of all annotators, over the same decisions."""
    for other in annotators[1:]:
        check_same(annotators[0], other)
    raters = len(annotators)
    votes = np.zeros(raters + 1)  # [k] the number of cells that k annotators link
    for alignments in zip(*annotators, strict=True):
        linked = [links_of(alignment, links) for alignment in alignments]
        every = frozenset().union(*linked)
        for link in every:
            votes[sum(link in one for one in linked)] += 1
        votes[0] += alignments[0].n_source * alignments[0].n_target - len(every)
    yes = np.arange(raters + 1)
    total = max(votes.sum(), 1)
    agreed = votes @ (yes * (yes - 1) + (raters - yes) * (raters - yes - 1)) / (total * raters * (raters - 1))
    share = votes @ yes / (total * raters)
    return _kappa(float(agreed), float(share**2 + (1 - share) ** 2))


def _kappa(observed: float, expected: float) -> float:
    """1 if agreement was certain."""
    return float((observed - expected) / (1 - expected)) if expected < 1 else 1.0


@dataclass(frozen=True)
class AgreementReport:
    """The agreement of each two annotators, and Fleiss's kappa of all if they are more than two."""

    found: Sequence[Agreement]
    fleiss: float | None

    @classmethod
    def of(cls, annotators: Mapping[str, Sequence[Alignment]], links: str = "sure") -> AgreementReport:
        every = list(annotators.values())
        return cls(agreements(annotators, links), fleiss(every, links) if len(every) > 2 else None)

    def to_dict(self) -> dict[str, Any]:
        pairs = [{"first": a.first, "second": a.second, "kappa": a.kappa, **a.score.to_dict()} for a in self.found]
        return {"version": __version__, "agreement": pairs, "fleiss_kappa": self.fleiss}

    def sheets(self) -> list[Sheet]:
        lines = []
        for a in self.found:
            figures = (f"{100 * value:.2f}" for value in (a.score.f1, a.score.exact, a.score.micro_f1))
            lines.append(([a.first, a.second, *figures, f"{a.kappa:.4f}"], ()))
        notes = [
            self.found[0].score.signature("F1,exact"),
            self.found[0].score.signature("F1", "micro"),
            "kappa: Cohen's, over all cells"
            + ("" if self.fleiss is None else f"; Fleiss's of all: {self.fleiss:.4f}"),
        ]
        return [Sheet(("annotator", "annotator", "F1", "exact", "micro F1", "kappa"), lines, notes, left=2)]
