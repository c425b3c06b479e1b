"""Precision, recall, F1, exact match and alignment error rate of predicted alignments.

Scores are aggregates of a table of link counts per pair, so resampling its rows resamples the score. A score
prints with a signature that says exactly what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ..errors import ConfigError, JacanaError
from ..types import Alignment, Link
from ..version import __version__

LINKS = ("sure", "all")


@dataclass(frozen=True)
class Counts:
    """`table` [pairs, 3]: links in gold, predicted links, links in both. `links` says which links are counted."""

    table: np.ndarray
    links: str = "sure"

    def __len__(self) -> int:
        return len(self.table)

    @property
    def gold(self) -> np.ndarray:
        """[pairs] the number of gold links."""
        return self.table[:, 0]

    @property
    def predicted(self) -> np.ndarray:
        """[pairs] the number of predicted links."""
        return self.table[:, 1]

    @property
    def both(self) -> np.ndarray:
        """[pairs] the number of correct links."""
        return self.table[:, 2]

    @property
    def of_pairs(self) -> np.ndarray:
        """[3, pairs] precision, recall and whether both sets of links are equal.

        An empty prediction has precision 0, and an empty gold recall 0, even if the other is empty too.
        """
        gold, predicted, both = self.table.T
        equal = (both == gold) & (both == predicted)
        return np.stack([both / np.maximum(predicted, 1), both / np.maximum(gold, 1), equal])

    @property
    def precision(self) -> np.ndarray:
        """[pairs]: see `of_pairs`."""
        return np.asarray(self.of_pairs[0])

    @property
    def recall(self) -> np.ndarray:
        """[pairs]: see `of_pairs`."""
        return np.asarray(self.of_pairs[1])

    @property
    def exact(self) -> np.ndarray:
        """[pairs]: whether the two sets of links are equal; two empty ones are."""
        return np.asarray(self.of_pairs[2] == 1)

    def take(self, rows: np.ndarray) -> Counts:
        """The counts of some pairs, in any order and with repetitions."""
        return Counts(self.table[rows], self.links)


def count(gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str = "sure") -> Counts:
    """Count the links of each pair: the sure ones, or with `links="all"` also the possible ones of both sides."""
    check_same(gold, predicted)
    table = np.zeros((len(gold), 3), dtype=np.int64)
    for row, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        in_gold, in_found = links_of(right, links), links_of(found, links)
        table[row] = len(in_gold), len(in_found), len(in_gold & in_found)
    table.setflags(write=False)
    return Counts(table, links)


def check_same(gold: Sequence[Alignment], predicted: Sequence[Alignment]) -> None:
    """Raise an error unless both align the same pairs, as far as their sizes tell."""
    if len(gold) != len(predicted):
        raise JacanaError(
            f"gold has {len(gold)} pairs and the prediction {len(predicted)}: they must match one to one"
        )
    for row, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        if (right.n_source, right.n_target) != (found.n_source, found.n_target):
            raise JacanaError(
                f"pair {row + 1}: gold has {right.n_source} x {right.n_target} tokens and the prediction "
                f"{found.n_source} x {found.n_target}: both must be of the same tokens, in the same direction"
            )


def links_of(alignment: Alignment, which: str) -> frozenset[Link]:
    """The links that count: the sure ones, or all."""
    if which not in LINKS:
        raise ConfigError(f"links are counted as {' or '.join(LINKS)}, not {which!r}")
    return alignment.sure if which == "sure" else alignment.sure | alignment.possible


@dataclass(frozen=True)
class Score:
    """Fractions between 0 and 1, unrounded. Macro figures are means over pairs; micro figures are over all links.

    Macro F1 is the harmonic mean of macro precision and macro recall, not the mean of the pairs' F1.
    """

    precision: float
    recall: float
    f1: float
    exact: float
    micro_precision: float
    micro_recall: float
    micro_f1: float
    pairs: int
    links: str
    gold_links: int
    predicted_links: int
    common_links: int

    @classmethod
    def of(cls, counts: Counts) -> Score:
        """The score of a table of counts with at least one row."""
        pairs = len(counts.table)
        if not pairs:
            raise JacanaError("there are no pairs to score: is the gold file empty?")
        gold, predicted, both = counts.table.sum(axis=0).tolist()
        precision, recall, exact = counts.of_pairs.mean(axis=1).tolist()
        micro_precision, micro_recall = both / max(predicted, 1), both / max(gold, 1)
        return cls(
            precision=precision,
            recall=recall,
            f1=harmonic_mean(precision, recall),
            exact=exact,
            micro_precision=micro_precision,
            micro_recall=micro_recall,
            micro_f1=harmonic_mean(micro_precision, micro_recall),
            pairs=pairs,
            links=counts.links,
            gold_links=gold,
            predicted_links=predicted,
            common_links=both,
        )

    def signature(
        self, metric: str = "F1", average: str = "macro", sym: str | None = None, case: str | None = None
    ) -> str:
        """What a figure means: metric, average, links, symmetrizer and case (if known), pairs, version."""
        known = (f"|sym:{sym}" if sym else "") + (f"|case:{case}" if case else "")
        return f"{metric}|avg:{average}|links:{self.links}{known}|n:{self.pairs}|v:{__version__}"

    def to_dict(self) -> dict[str, float | int | str]:
        return {**asdict(self), "version": __version__, "signature": self.signature()}

    def __str__(self) -> str:
        macro = f"P {100 * self.precision:.2f}  R {100 * self.recall:.2f}  F1 {100 * self.f1:.2f}"
        micro = (
            f"P {100 * self.micro_precision:.2f}  R {100 * self.micro_recall:.2f}  F1 {100 * self.micro_f1:.2f}"
        )
        return (
            f"{macro}  exact {100 * self.exact:.2f}    {self.signature('P,R,F1,exact')}\n"
            f"{micro}    {self.signature('P,R,F1', 'micro')}"
        )


def score(gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str = "sure") -> Score:
    """Count and score in one step."""
    return Score.of(count(gold, predicted, links))


def alignment_error_rate(gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str = "sure") -> float:
    """The error rate of Och and Ney (2003), 1 - (|A & S| + |A & P|) / (|A| + |S|) over all pairs.

    S are gold's sure links, P its sure and possible ones, and A the predicted links: the sure ones, or all. The
    rate is 0 if neither side has links.
    """
    check_same(gold, predicted)
    agreed = whole = 0
    for right, other in zip(gold, predicted, strict=True):
        found = links_of(other, links)
        agreed += len(found & right.sure) + len(found & (right.sure | right.possible))
        whole += len(found) + len(right.sure)
    return 1 - agreed / whole if whole else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """F1; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
