"""Score systems by a task, as the papers do: by each score of their alignments, and by a small model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..types import Alignment, SentencePair
from ..util.tables import Sheet
from ..version import __version__
from .data import Judged, Task
from .features import matrix
from .fitted import by_kernel, by_regression, by_threshold, cross_validated, threshold
from .metrics import accuracy, average_precision, f1, pearson, weighted
from .scores import SCORES

MODEL = "model"  # the name of the regression among the scores
L2 = {"entailment": 30.0, "paraphrase": 10.0, "similarity": 0.5}
GAMMA = 0.005  # of the Gaussian kernel for similarities
Align = Callable[[Sequence[SentencePair]], Sequence[Alignment]]


@dataclass(frozen=True)
class Figures:
    """The figures of one score of one system.

    `tuned` is the accuracy with the threshold that is best on the same pairs, as in the papers; `accuracy` and F1
    are cross-validated, with the threshold of the other folds. Similarity has `correlations` by set instead.
    """

    system: str
    score: str
    tuned: float | None = None
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    average_precision: float | None = None
    correlations: Mapping[str, float] | None = None
    mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def measure(
    system: str,
    task: Task,
    sets: Sequence[Judged],
    alignments: Sequence[Sequence[Alignment]],
    folds: int,
    seed: int,
) -> list[Figures]:
    """Return the figures of every score of a system, and of the model on its alignments."""
    pairs = [[_aligned(pair, found) for pair, found in zip(some.pairs, own, strict=True)]
             for some, own in zip(sets, alignments, strict=True)]  # fmt: skip
    rows: list[Figures] = []
    values = {
        name: [
            np.array([score(p, a) for p, a in zip(ps, own, strict=True)])
            for ps, own in zip(pairs, alignments, strict=True)
        ]
        for name, score in SCORES.items()
    }
    wanted = [np.array(some.wanted, dtype=float) for some in sets]
    columns = [matrix(ps, own)[0] for ps, own in zip(pairs, alignments, strict=True)]
    fit = by_regression(True, L2[task.kind]) if task.labelled else by_kernel(L2[task.kind], GAMMA)
    if not task.labelled:
        values[MODEL] = [cross_validated(fit, x, y, folds, seed) for x, y in zip(columns, wanted, strict=True)]
        for name, found in values.items():
            each = {some.name: pearson(v, y) for some, v, y in zip(sets, found, wanted, strict=True)}
            mean = weighted(list(each.values()), [len(some) for some in sets])
            rows.append(Figures(system, name, correlations=each, mean=mean))
        return rows
    truth = np.concatenate(wanted)
    for name, found in values.items():
        scores = np.concatenate(found)
        predicted = cross_validated(by_threshold, scores, truth, folds, seed)
        tuned = accuracy(truth, scores > threshold(scores, truth))
        rows.append(_labelled(system, name, truth, scores, predicted, tuned))
    scores = cross_validated(fit, np.concatenate(columns), truth, folds, seed)
    rows.append(_labelled(system, MODEL, truth, scores, (scores > 0.5).astype(float), None))
    return rows


def _aligned(pair: SentencePair, alignment: Alignment) -> SentencePair:
    """The pair with the layers that the aligner read."""
    return alignment.pair or pair


def _labelled(
    system: str, name: str, truth: np.ndarray, scores: np.ndarray, predicted: np.ndarray, tuned: float | None
) -> Figures:
    return Figures(
        system, name, tuned, accuracy(truth, predicted), *f1(truth, predicted), average_precision(truth, scores)
    )


def sheet(name: str, task: Task, sets: Sequence[Judged], rows: Sequence[Figures], folds: int, seed: int) -> Sheet:
    """The table of a task."""
    sizes = "; ".join(f"{some.name}: {len(some)} pairs, {some.dropped} left out" for some in sets)
    notes = [f"{task.about}. {sizes}.", signature(name, task.kind, sets, folds, seed)]
    lines = []
    if not task.labelled:
        for row in rows:
            assert row.correlations is not None
            lines.append(
                ([row.system, row.score, *map(_percent, row.correlations.values()), _percent(row.mean)], ())
            )
        return Sheet(("system", "score", *(some.name for some in sets), "mean"), lines, notes, left=2)
    for row in rows:
        figures = (row.tuned, row.accuracy, row.precision, row.recall, row.f1, row.average_precision)
        lines.append(([row.system, row.score, *map(_percent, figures)], ()))
    return Sheet(("system", "score", "acc tuned", "acc cv", "P", "R", "F1", "avg P"), lines, notes, left=2)


def signature(name: str, kind: str, sets: Sequence[Judged], folds: int, seed: int) -> str:
    """What the figures mean."""
    pairs, model = sum(map(len, sets)), "logistic" if kind != "similarity" else "ridge-rbf"
    return f"task:{name}|folds:{folds}|seed:{seed}|model:{model}|n:{pairs}|v:{__version__}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
