"""Train an aligner, score it, and cross-validate it: plain functions, which a notebook can call as well."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import cast

import numpy as np

from ..aligners.base import UNKEPT, Aligner, Checkpoint, Directional, Trainable, TrainingReport, Watcher, fit_phase
from ..errors import ConfigError
from ..evaluate import Score, score
from ..symmetrize import functions
from ..types import Alignment, Example

log = logging.getLogger(__name__)

Scores = dict[str, Score]
Predictions = dict[str, list[Alignment]]  # by the name of a symmetrizer, or under "aligned"


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
    give one, named "aligned".
    """
    pairs = list(map(attrgetter("pair"), examples))
    if not isinstance(aligner, Directional):
        return {"aligned": aligner.align(pairs)}
    found = symmetrized(*aligner.directions(pairs))
    if aligner.symmetrizer_name not in found:  # posterior, or a symmetrizer of the user's own
        found[aligner.symmetrizer_name] = aligner.align(pairs)
    return found


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
        found[name] = score(gold, alignments, links)
    return found


def table(found: Scores) -> str:
    """Format scores as lines of text, the best F1 first."""
    rows = [f"{'':20}{'P':>7}{'R':>7}{'F1':>7}{'exact':>7}"]
    for name in sorted(found, key=lambda name: -found[name].f1):
        s = found[name]
        rows.append(f"{name:20}{100 * s.precision:7.2f}{100 * s.recall:7.2f}{100 * s.f1:7.2f}{100 * s.exact:7.2f}")
    any_score = next(iter(found.values()))
    return "\n".join([*rows, any_score.signature("P,R,F1,exact")])


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


def cross_validate(
    make: Callable[[], Aligner],
    examples: Sequence[Example],
    k: int,
    seed: int = 1,
    links: str = "sure",
    each: Callable[[Aligner, list[Example], list[Alignment]], None] | None = None,
    checkpoint: Checkpoint = UNKEPT,
) -> tuple[Scores, Predictions]:
    """Align every example by an aligner that was trained on the other folds: scores over all, and alignments.

    `make` builds an untrained aligner. `each` is called for each fold, with the trained aligner, the examples of
    the fold and their alignments. Folds that an interrupted run ended are not trained and aligned again.
    """
    joined: dict[str, list[Alignment | None]] = {}
    for number, (train, test) in enumerate(folds(len(examples), k, seed), 1):
        aligner, phase = make(), checkpoint.phase(f"fold-{number}")
        ended, held_out = phase.finished(), [examples[i] for i in test]
        if ended is None or each is not None:
            training = checkpoint.phase(f"fold-{number}-training")
            if fit(aligner, [examples[i] for i in train], phase=training).interrupted:
                raise KeyboardInterrupt
        if ended is None:
            found = predictions(aligner, held_out)
            phase.finish(
                {name: list(map(text_of, alignments)) for name, alignments in found.items()}, TrainingReport()
            )
        else:
            found = {name: list(map(alignment_of, texts)) for name, texts in ended[0].items()}
        for name, alignments in found.items():
            of_all = joined.setdefault(name, [None] * len(examples))
            for i, alignment in zip(test, alignments, strict=True):
                of_all[i] = alignment
        own = output_name(aligner)
        if each is not None:
            each(aligner, held_out, found[own])
        f1 = scores(held_out, {own: found[own]}, links)[own].f1
        log.info("fold %d of %d: %s F1 %.2f", number, k, own, 100 * f1)
    complete = cast(Predictions, joined)  # the folds cover all examples
    return scores(examples, complete, links), complete
