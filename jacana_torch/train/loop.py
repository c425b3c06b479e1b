"""What happens in a training run: examples and an aligner in; a trained aligner, its scores and its traces out.

Plain functions without Hydra, so that a notebook can call them as `train/run.py` does.
"""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..aligners.base import Aligner, Directional, Prepares, Step, Trainable, TrainingReport
from ..errors import ConfigError
from ..evaluate import Score, score
from ..evaluate.scores import links_of
from ..symmetrize import functions
from ..types import Alignment, Example
from . import lettering, pictures
from .tracking import Tracker

log = logging.getLogger(__name__)

Scores = dict[str, Score]
Predictions = dict[str, list[Alignment]]


def output_name(aligner: Aligner) -> str:
    """What `predictions` calls the alignments that `align` gives: the symmetrizer's name, where there is one."""
    return aligner.symmetrizer_name if isinstance(aligner, Directional) else "aligned"


def predictions(aligner: Aligner, examples: Sequence[Example]) -> Predictions:
    """What the aligner says: by direction and symmetrizer where it has two directions, else as `aligned`."""
    pairs = [e.pair for e in examples]
    if not isinstance(aligner, Directional):
        return {"aligned": aligner.align(pairs)}
    forward, backward = aligner.directions(pairs)
    found = symmetrized(forward, backward)
    if output_name(aligner) not in found:  # posteriors, or somebody's own symmetrizer
        found[output_name(aligner)] = aligner.align(pairs)
    return found


def symmetrized(forward: Sequence[Alignment], backward: Sequence[Alignment]) -> Predictions:
    """Every symmetrizer's alignments of the two directions (`forward` and `backward` among them)."""
    return {
        name: [join(f, b) for f, b in zip(forward, backward, strict=True)] for name, join in functions().items()
    }


def scores(examples: Sequence[Example], predicted: Predictions, links: str = "sure") -> Scores:
    gold = [e.gold for e in examples if e.gold is not None]
    return {name: score(gold, alignments, links) for name, alignments in predicted.items()}


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
    make: Callable[[], Aligner],
    examples: Sequence[Example],
    k: int,
    seed: int = 1,
    links: str = "sure",
    each: Callable[[Aligner, list[Example], list[Alignment]], None] | None = None,
) -> tuple[Scores, Predictions]:
    """Every example aligned by a model that never saw it: scores over all of them, and the alignments. `each` gets
    every fold's model, the examples that were kept from it, and how it aligns them."""
    joined: Predictions = {}
    for number, (train, test) in enumerate(folds(len(examples), k, seed), 1):
        aligner = make()
        if fit(aligner, [examples[i] for i in train]).interrupted:
            raise KeyboardInterrupt
        held_out = [examples[i] for i in test]
        found = predictions(aligner, held_out)
        for name, alignments in found.items():
            slots = joined.setdefault(name, [None] * len(examples))  # type: ignore[list-item]
            for i, alignment in zip(test, alignments, strict=True):
                slots[i] = alignment
        own = output_name(aligner)
        if each is not None:
            each(aligner, held_out, found[own])
        f1 = scores(held_out, {own: found[own]}, links)[own].f1
        log.info("fold %d of %d: %s F1 %.2f", number, k, own, 100 * f1)
    return scores(examples, joined, links), joined


@dataclass
class Watch:
    """Called at every iteration: writes losses, scores on `dev`, weights and a few alignments to a tracker.

    Scores, weights and pictures every `every` iterations and after the first (0: never); the first `examples`
    alignments are shown.
    """

    tracker: Tracker
    dev: Sequence[Example] = ()
    every: int = 10
    examples: int = 5
    links: str = "sure"
    _seen: dict[str, dict[int, list[Alignment]]] = field(default_factory=dict, repr=False)
    _prepared: dict[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self, step: Step) -> None:
        figures = {f"loss/{step.part}": step.loss, f"gradient_norm/{step.part}": step.gradient_norm}
        self.tracker.scalars(figures, step.iteration)
        if self.every and (step.iteration == 1 or step.iteration % self.every == 0):
            log.info("%s %4d  loss %.4f  |g| %.3g", step.part, step.iteration, step.loss, step.gradient_norm)
            self._weights(step)
            if self.dev:
                self._score(step)

    def _weights(self, step: Step) -> None:
        state = step.aligner.state()
        if "names" not in state or "weights" not in state:
            return
        families = np.array([str(name).split(".")[0] for name in state["names"]])
        for family in np.unique(families):
            of_family = np.asarray(state["weights"])[families == family]
            self.tracker.histogram(f"weights/{step.part}/{family}", of_family, step.iteration)

    def _score(self, step: Step) -> None:
        found = self._aligned(step)
        if step.part == "backward":
            found = [alignment.flip() for alignment in found]
        self._seen.setdefault(step.part, {})[step.iteration] = found
        self.draw(step.part, found, self.dev, step.iteration)
        by_name = {step.part: found}
        forward = self._seen.get("forward")
        if step.part == "backward" and forward:  # the directions train one after the other: pair equal iterations
            other = forward[max((i for i in forward if i <= step.iteration), default=min(forward))]
            by_name = {k: v for k, v in symmetrized(other, found).items() if k != "forward"}
        self.scores(scores(self.dev, by_name, self.links), step.iteration)

    def _aligned(self, step: Step) -> list[Alignment]:
        """Dev as the aligner sees it now; its features are computed once a direction."""
        aligner = step.aligner
        if step.part not in self._prepared:
            pairs = [e.pair.flip() if step.part == "backward" else e.pair for e in self.dev]
            self._prepared[step.part] = aligner.prepared(pairs) if isinstance(aligner, Prepares) else pairs
        prepared = self._prepared[step.part]
        return aligner.decode(prepared) if isinstance(aligner, Prepares) else aligner.align(prepared)

    def scores(self, found: Scores, iteration: int) -> None:
        for name, s in found.items():
            figures = {"precision": s.precision, "recall": s.recall, "f1": s.f1, "exact": s.exact}
            self.tracker.scalars({f"dev/{key}/{name}": value for key, value in figures.items()}, iteration)

    def draw(self, name: str, found: Sequence[Alignment], of: Sequence[Example], iteration: int) -> None:
        """A few alignments as pictures, the same pairs every time: what was found, missed and invented."""
        if not self.tracker.keeps:
            return
        for number, (example, alignment) in enumerate(zip(of[: self.examples], found, strict=False)):
            gold = example.gold or Alignment(alignment.n_source, alignment.n_target)
            picture = pictures.matrix(pictures.cells(gold, self.links), pictures.cells(alignment, self.links))
            words = (side.tokens for side in (example.pair.source, example.pair.target))
            self.tracker.image(f"matrix_{number}/{name}", lettering.worded(picture, *words), iteration)

    def show(self, found: Sequence[Alignment], of: Sequence[Example], iteration: int = 0) -> None:
        """A few alignments as text and as pictures, once training is over."""
        self.draw("final", found, of, iteration)
        for number, (example, alignment) in enumerate(zip(of[: self.examples], found, strict=False)):
            self.tracker.text(f"alignments/{number}", as_markdown(example, alignment, self.links), 0)


def as_markdown(example: Example, found: Alignment, links: str = "sure") -> str:
    """The two sentences and their links, each with how it compares with gold."""
    source, target = (
        [_plain(token) for token in side.tokens] for side in (example.pair.source, example.pair.target)
    )
    gold = links_of(example.gold, links) if example.gold is not None else frozenset()
    rows = [f"{' '.join(source)}\n\n{' '.join(target)}\n", "| source | target | |", "|---|---|---|"]
    for i, j in sorted(links_of(found, links) | gold):
        kind = "invented" if (i, j) not in gold else "hit" if (i, j) in links_of(found, links) else "missed"
        rows.append(f"| {source[i]} | {target[j]} | {kind} |")
    return "\n".join(rows)


def _plain(token: str) -> str:
    """So that Markdown shows a token as it is, even one that looks like its signs or like HTML."""
    return re.sub(r"[\\`*_{}\[\]()#+\-.!|]", r"\\\g<0>", html.escape(token, quote=False))


def fit(
    aligner: Aligner,
    examples: Sequence[Example],
    dev: Sequence[Example] = (),
    watch: Watch | None = None,
) -> TrainingReport:
    """Train, and say what became of it. An aligner that learns nothing is left as it is."""
    if not isinstance(aligner, Trainable):
        log.info("there is nothing to train in %s", type(aligner).__name__)
        return TrainingReport()
    report = aligner.fit(examples, dev, watch)
    if report.dropped_links:
        share = 100 * report.dropped_links / max(report.total_links, 1)
        log.info(
            "%d of %d links (%.1f%%) were left out of training: a word keeps one link in each direction",
            report.dropped_links, report.total_links, share,
        )  # fmt: skip
    if not report.converged and not report.interrupted:
        log.warning("stopped before convergence: raise trainer.max_iterations or go on with resume=DIR")
    for note in report.notes:
        log.warning("%s", note)
    return report
