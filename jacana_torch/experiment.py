"""What happens in a training run: examples and an aligner in; a trained aligner, its scores and its traces out.

Plain functions without Hydra, so that a notebook can call them as `run.py` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .aligners.base import Step, Trainable, TrainingReport
from .aligners.bidirectional import Bidirectional
from .errors import ConfigError
from .evaluate import Score, score
from .symmetrize import SYMMETRIZERS
from .train.tracking import Tracker
from .types import Alignment, Example

log = logging.getLogger(__name__)

Scores = dict[str, Score]


def predictions(aligner: Trainable, examples: Sequence[Example]) -> dict[str, list[Alignment]]:
    """What the aligner says: by direction and symmetrizer where it has two directions, else as `aligned`."""
    pairs = [e.pair for e in examples]
    if not isinstance(aligner, Bidirectional):
        return {"aligned": aligner.align(pairs)}
    forward, backward = aligner.directions(pairs)
    return symmetrized(forward, backward)


def symmetrized(forward: Sequence[Alignment], backward: Sequence[Alignment]) -> dict[str, list[Alignment]]:
    """Every symmetrizer's alignments of the two directions (`forward` and `backward` among them)."""
    return {
        name: [join(f, b) for f, b in zip(forward, backward, strict=True)] for name, join in SYMMETRIZERS.items()
    }


def scores(examples: Sequence[Example], predicted: dict[str, list[Alignment]]) -> Scores:
    gold = [e.gold for e in examples]
    return {name: score(gold, alignments) for name, alignments in predicted.items()}  # type: ignore[arg-type]


def best_direction(found: Scores) -> str:
    """The better of the two directions by F1; `aligned` where there is one."""
    return max((name for name in found if name in ("forward", "backward", "aligned")), key=lambda n: found[n].f1)


def table(found: Scores) -> str:
    """Scores as lines of text, best F1 first."""
    rows = [f"{'':20}{'P':>7}{'R':>7}{'F1':>7}{'exact':>7}"]
    for name, s in sorted(found.items(), key=lambda item: -item[1].f1):
        figures = "".join(f"{100 * value:7.2f}" for value in (s.precision, s.recall, s.f1, s.exact))
        rows.append(f"{name:20}{figures}")
    any_score = next(iter(found.values()))
    return "\n".join([*rows, any_score.signature("P,R,F1,exact")])


def folds(n: int, k: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(train, test) numbers of each of k folds of n examples, shuffled by seed."""
    if not 2 <= k <= n:
        raise ConfigError(f"cv={k}: the number of folds must be between 2 and the {n} examples")
    order = np.random.default_rng(seed).permutation(n)
    for fold in range(k):
        test = np.sort(order[fold::k])
        yield np.setdiff1d(np.arange(n), test), test


def cross_validate(
    make: Callable[[], Trainable], examples: Sequence[Example], k: int, seed: int = 1
) -> tuple[Scores, dict[str, list[Alignment]]]:
    """Every example aligned by a model that never saw it: scores over all of them, and the alignments."""
    joined: dict[str, list[Alignment]] = {}
    for number, (train, test) in enumerate(folds(len(examples), k, seed), 1):
        aligner = make()
        report = aligner.fit([examples[i] for i in train])
        if report.interrupted:
            raise KeyboardInterrupt
        held_out = [examples[i] for i in test]
        found = predictions(aligner, held_out)
        for name, alignments in found.items():
            slots = joined.setdefault(name, [None] * len(examples))  # type: ignore[list-item]
            for i, alignment in zip(test, alignments, strict=True):
                slots[i] = alignment
        fold_scores = scores(held_out, found)
        best = best_direction(fold_scores)
        log.info("fold %d of %d: %s F1 %.2f", number, k, best, 100 * fold_scores[best].f1)
    return scores(examples, joined), joined


@dataclass
class Watch:
    """Called at every iteration: writes losses, scores on `dev`, weights and a few alignments to a tracker."""

    tracker: Tracker
    dev: Sequence[Example] = ()
    every: int = 10
    examples: int = 5
    _seen: dict[str, dict[int, list[Alignment]]] = field(default_factory=dict)

    def __call__(self, step: Step) -> None:
        figures = {f"loss/{step.part}": step.loss, f"gradient_norm/{step.part}": step.gradient_norm}
        self.tracker.scalars(figures, step.iteration)
        if self.every and step.iteration % self.every == 0:
            log.info("%s %4d  loss %.4f  |g| %.3g", step.part, step.iteration, step.loss, step.gradient_norm)
            self._weights(step)
            if self.dev:
                self._score(step)

    def _weights(self, step: Step) -> None:
        state = step.aligner.state()  # type: ignore[attr-defined]
        families = np.array([str(name).split(".")[0] for name in state["names"]])
        for family in np.unique(families):
            self.tracker.histogram(f"weights/{step.part}/{family}", state["weights"][families == family], step.iteration)

    def _score(self, step: Step) -> None:
        pairs = [e.pair.flip() if step.part == "backward" else e.pair for e in self.dev]
        found = step.aligner.align(pairs)
        if step.part == "backward":
            found = [alignment.flip() for alignment in found]
        self._seen.setdefault(step.part, {})[step.iteration] = found
        by_name = {step.part: found}
        forward = self._seen.get("forward")
        if step.part == "backward" and forward:  # the directions train one after the other: pair equal iterations
            other = forward[max((i for i in forward if i <= step.iteration), default=min(forward))]
            by_name = {k: v for k, v in symmetrized(other, found).items() if k != "forward"}
        for name, s in scores(self.dev, by_name).items():
            figures = {"precision": s.precision, "recall": s.recall, "f1": s.f1, "exact": s.exact}
            self.tracker.scalars({f"dev/{key}/{name}": value for key, value in figures.items()}, step.iteration)

    def show(self, aligner: Trainable, examples: Sequence[Example]) -> None:
        """A few alignments as text: what was found, missed and invented."""
        chosen = list(examples)[: self.examples]
        if not chosen:
            return
        for number, (example, found) in enumerate(zip(chosen, aligner.align([e.pair for e in chosen]), strict=True)):
            self.tracker.text(f"alignments/{number}", as_markdown(example, found), 0)


def as_markdown(example: Example, found: Alignment) -> str:
    """The two sentences and their links, each with how it compares with gold."""
    source, target = example.pair.source.tokens, example.pair.target.tokens
    gold = example.gold.sure if example.gold is not None else frozenset()
    rows = [f"{example.pair.source}\n\n{example.pair.target}\n", "| source | target | |", "|---|---|---|"]
    for i, j in sorted(found.sure | gold):
        kind = "hit" if (i, j) in gold & found.sure else "missed" if (i, j) in gold else "invented"
        cells = (source[i].replace("|", "\\|"), target[j].replace("|", "\\|"), kind)
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def fit(
    aligner: Trainable,
    examples: Sequence[Example],
    dev: Sequence[Example] = (),
    watch: Watch | None = None,
) -> TrainingReport:
    """Train, and say what became of it."""
    report = aligner.fit(examples, dev, watch)
    if report.dropped_links:
        share = 100 * report.dropped_links / max(report.total_links, 1)
        log.info(
            "%d of %d links (%.1f%%) were left out of training: a word keeps one link in each direction",
            report.dropped_links, report.total_links, share,
        )  # fmt: skip
    if report.interrupted:
        log.warning("interrupted: the best weights so far are kept")
    elif not report.converged:
        log.warning("stopped before convergence: raise trainer.max_iterations or go on with resume=DIR")
    for note in report.notes:
        log.warning("%s", note)
    if watch is not None:
        watch.show(aligner, dev or examples)
    return report
