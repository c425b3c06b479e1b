"""A table of counts in, one Score out: it prints with a signature that says exactly what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..errors import JacanaError
from ..types import Alignment
from ..version import __version__
from .counts import Counts, count


@dataclass(frozen=True)
class Score:
    """Fractions between 0 and 1, unrounded. Macro figures are means over pairs, micro ones are over all links.

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
        """The score of a table of counts, which must have a row at least."""
        if not len(counts):
            raise JacanaError("there are no pairs to score: is the gold file empty?")
        gold, predicted, both = (int(total) for total in counts.table.sum(axis=0))
        precision, recall = float(counts.precision.mean()), float(counts.recall.mean())
        micro_precision, micro_recall = _part(both, predicted), _part(both, gold)
        return cls(
            precision=precision,
            recall=recall,
            f1=harmonic_mean(precision, recall),
            exact=float(counts.exact.mean()),
            micro_precision=micro_precision,
            micro_recall=micro_recall,
            micro_f1=harmonic_mean(micro_precision, micro_recall),
            pairs=len(counts),
            links=counts.links,
            gold_links=gold,
            predicted_links=predicted,
            common_links=both,
        )

    def signature(
        self, metric: str = "F1", average: str = "macro", sym: str | None = None, case: str | None = None
    ) -> str:
        """What a figure means: metric, average, which links, what joined two directions and what became of case
        (where these are known), how many pairs, which version counted them."""
        known = "".join(f"|{name}:{value}" for name, value in (("sym", sym), ("case", case)) if value)
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
    """Counts and scores in one step."""
    return Score.of(count(gold, predicted, links))


def harmonic_mean(precision: float, recall: float) -> float:
    """F1; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _part(both: int, whole: int) -> float:
    return both / whole if whole else 0.0
