"""Gold and predicted alignments in, a table of link counts out: one row a pair.

Every score is an aggregate of this table, and resampling its rows resamples the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError, JacanaError
from ..types import Alignment, Link

LINKS = ("sure", "all")


@dataclass(frozen=True)
class Counts:
    """`table` [pairs, 3]: links in gold, links predicted, links in both. `links` says which ones were counted."""

    table: np.ndarray
    links: str = "sure"

    def __len__(self) -> int:
        return len(self.table)

    @property
    def gold(self) -> np.ndarray:
        return self.table[:, 0]

    @property
    def predicted(self) -> np.ndarray:
        return self.table[:, 1]

    @property
    def both(self) -> np.ndarray:
        return self.table[:, 2]

    @property
    def precision(self) -> np.ndarray:
        """[pairs]: an empty prediction has precision 0, even where gold is empty too."""
        return _ratio(self.both, self.predicted)

    @property
    def recall(self) -> np.ndarray:
        """[pairs]: an empty gold has recall 0, even where the prediction is empty too."""
        return _ratio(self.both, self.gold)

    @property
    def exact(self) -> np.ndarray:
        """[pairs]: whether the two sets of links are the same; two empty ones are."""
        return (self.both == self.gold) & (self.both == self.predicted)

    def take(self, rows: np.ndarray) -> Counts:
        """The counts of some pairs, in any order and any number of times."""
        return Counts(self.table[rows], self.links)


def count(gold: Sequence[Alignment], predicted: Sequence[Alignment], links: str = "sure") -> Counts:
    """One row a pair. `links` is `sure`, or `all` to count possible links on both sides as well."""
    check_same(gold, predicted)
    table = np.zeros((len(gold), 3), dtype=np.int64)
    for row, (right, guess) in enumerate(zip(gold, predicted, strict=True)):
        in_gold, in_guess = links_of(right, links), links_of(guess, links)
        table[row] = len(in_gold), len(in_guess), len(in_gold & in_guess)
    table.setflags(write=False)
    return Counts(table, links)


def check_same(gold: Sequence[Alignment], predicted: Sequence[Alignment]) -> None:
    """An error unless both are of the same pairs, as far as their sizes tell."""
    if len(gold) != len(predicted):
        raise JacanaError(
            f"gold has {len(gold)} pairs and the prediction {len(predicted)}: they must match one to one"
        )
    for row, (right, guess) in enumerate(zip(gold, predicted, strict=True)):
        if (right.n_source, right.n_target) != (guess.n_source, guess.n_target):
            raise JacanaError(
                f"pair {row + 1}: gold has {right.n_source} x {right.n_target} tokens and the prediction "
                f"{guess.n_source} x {guess.n_target}: both must be of the same tokens, in the same direction"
            )


def links_of(alignment: Alignment, which: str) -> frozenset[Link]:
    """What counts as links: the sure ones, or all."""
    if which not in LINKS:
        raise ConfigError(f"links are counted as {' or '.join(LINKS)}, not {which!r}")
    return alignment.sure if which == "sure" else alignment.sure | alignment.possible


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
