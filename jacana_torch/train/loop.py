"""Train an aligner, and score it: plain functions, which a notebook can call as well."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import cast

import numpy as np

from ..aligners.base import (
    UNKEPT,
    Aligner,
    Checkpoint,
    Directional,
    Trainable,
    TrainingReport,
    Watcher,
    fit_phase,
)
from ..errors import ConfigError
from ..evaluate import Score, count
from ..symmetrize import functions
from ..types import Alignment, Example

log = logging.getLogger(__name__)

Scores = dict[str, Score]
Predictions = dict[str, list[Alignment]]  # by the name of a symmetrizer, or under "aligned"
Augment = Callable[[Sequence[Example]], list[Example]]  # training pairs to these and what is made of them


def fit(
    aligner: Aligner,
    examples: Sequence[Example],
    dev: Sequence[Example] = (),
    watch: Watcher | None = None,
    phase: Checkpoint = UNKEPT,
) -> TrainingReport:
    """Train the aligner, if it is trainable, and log what the user should know of its report."""
    if not isinstance(aligner, Trainable):
        log.info("there is nothing to train in %s", type(aligner).__name__)
        return TrainingReport()
    report = fit_phase(aligner, examples, dev, watch, phase)
    if report.dropped_links:
        share = 100 * report.dropped_links / max(report.total_links, 1)
        log.info(
            "%d of %d links (%.1f%%) were left out of training: a word keeps one link in each direction",
            report.dropped_links, report.total_links, share,
        )  # fmt: skip
    if not report.converged and not report.interrupted:
        log.warning("stopped before convergence: raise trainer.max_iterations")
    for note in report.notes:
        log.warning("%s", note)
    return report


def predictions(aligner: Aligner, examples: Sequence[Example]) -> Predictions:
    """Align the examples in every way that the aligner can.

    An aligner of two directions gives an alignment per symmetrizer, `forward` and `backward` among them. Others
    give one, named "aligned". An example is aligned by its style, if the aligner has learnt it.
    """
    if set(map(attrgetter("style"), examples)) - {None}:
        return _by_style(aligner, examples)
    pairs = list(map(attrgetter("pair"), examples))
    if not isinstance(aligner, Directional):
        return {"aligned": aligner.align(pairs)}
    found = symmetrized(*aligner.directions(pairs))
    if aligner.symmetrizer_name not in found:  # posterior, or a symmetrizer of the user's own
        found[aligner.symmetrizer_name] = aligner.align(pairs)
    return found


def _by_style(aligner: Aligner, examples: Sequence[Example]) -> Predictions:
    """Align the examples of each style by it, and those of no learnt style by the usual one."""
    from ..aligners.styles import Styled

    plain = [replace(example, style=None) for example in examples]
    if not isinstance(aligner, Styled):
        return predictions(aligner, plain)
    found: dict[str, list[Alignment | None]] = {}
    for style in (None, *aligner.styles):
        places = []
        for k, example in enumerate(examples):
            if style == (example.style if example.style in aligner.styles else None):
                places.append(k)
        aligner.choose(style)
        for name, alignments in predictions(aligner, [plain[k] for k in places]).items() if places else ():
            of_all = found.setdefault(name, [None] * len(examples))
            for k, alignment in zip(places, alignments, strict=True):
                of_all[k] = alignment
    aligner.choose(None)
    return cast(Predictions, found)  # every example has one style


def output_name(aligner: Aligner) -> str:
    """The name under which `predictions` has the alignments of `align`."""
    return aligner.symmetrizer_name if isinstance(aligner, Directional) else "aligned"


def symmetrized(forward: Sequence[Alignment], backward: Sequence[Alignment]) -> Predictions:
    """Join two directions by every symmetrizer."""
    found: Predictions = {}
    for name, join in functions().items():
        found[name] = list(map(join, forward, backward))
    return found


def scores(examples: Sequence[Example], predicted: Predictions, links: str = "sure") -> Scores:
    """Score predictions against the gold alignments of the examples."""
    gold: list[Alignment] = []
    for example in examples:
        if example.gold is not None:
            gold.append(example.gold)
    found: Scores = {}
    for name, alignments in predicted.items():
        found[name] = Score.of(count(gold, alignments, links))
    return found


def table(found: Scores) -> str:
    """Format scores as lines of text, the best F1 first."""
    rows = []
    for name, s in found.items():
        figures = f"{100 * s.precision:7.2f}{100 * s.recall:7.2f}{100 * s.f1:7.2f}{100 * s.exact:7.2f}"
        rows.append((s.f1, f"{name:20}{figures}"))
    rows.sort(key=itemgetter(0), reverse=True)
    title = f"{'':20}{'P':>7}{'R':>7}{'F1':>7}{'exact':>7}"
    return "\n".join([title, *map(itemgetter(1), rows), s.signature("P,R,F1,exact")])


def text_of(alignment: Alignment) -> str:
    """An alignment as JSON, exactly."""
    confidence = [[i, j, value] for (i, j), value in alignment.confidence.items()]
    links = sorted(alignment.sure), sorted(alignment.possible)
    return json.dumps([alignment.n_source, alignment.n_target, *links, confidence, alignment.score])


def alignment_of(text: object) -> Alignment:
    """The alignment that `text_of` made this of."""
    m, n, *links, confidence, score = json.loads(str(text))
    sure, possible = (frozenset((i, j) for i, j in kind) for kind in links)
    return Alignment(m, n, sure, possible, {(i, j): value for i, j, value in confidence}, score)


def folds(n: int, k: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split n examples at random into k folds: the indices of the rest, and those of the fold."""
    if not 2 <= k <= n:
        raise ConfigError(f"cv={k}: the number of folds must be between 2 and the {n} examples")
    order = np.random.default_rng(seed).permutation(n)
    for fold in range(k):
        test = np.sort(order[fold::k])
        yield np.setdiff1d(np.arange(n), test), test
