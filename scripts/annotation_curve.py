"""A simulated annotator: F1 by the number of annotated pairs, the least confident first or in random order.

    JACANA_DATA=CORPORA nice python scripts/annotation_curve.py                        # MSR's dev part
    JACANA_DATA=CORPORA python scripts/annotation_curve.py --orders random,expected,mean,entropy
    python scripts/annotation_curve.py --corpus my.jsonl --unseen 100 --seeds 3

Of the corpus, 300 pairs are drawn once to be scored and are never annotated; the others are the pool. Each seed
draws the 20 pairs of the pool that annotation begins with, the same for every order. Then, again and again: a
model with the features of experiment=core is trained from nothing on what is annotated, scored on the unseen
pairs, and asked for its posteriors of the rest of the pool; the gold links of the next pairs in order are added.
Scores are means over seeds. `pairs needed` are those at which an order first reaches the F1 that random order has
with N pairs, interpolated between the two sizes around it; `corrections` counts the links that the annotator had
to add or remove in what the model of that moment proposed, and `tokens` those that were read.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from outcome import outcome

from jacana_torch import corpora
from jacana_torch.aligners.base import PosteriorOfCells
from jacana_torch.annotation import order
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.train.compose import composed
from jacana_torch.train.loop import fit
from jacana_torch.types import Alignment, Example
from jacana_torch.util.build import build

SIZES = (20, 40, 60, 80, 100, 120, 150, 180, 220, 260, 300, 350, 400)
GOALS = (60, 100, 150, 220, 300, 400)


def entropy(posterior: np.ndarray, proposed: Alignment) -> float:
    """The sum of the cells' entropies, in nats."""
    p = np.clip(posterior, 1e-12, 1 - 1e-12)
    return float(-(p * np.log(p) + (1 - p) * np.log1p(-p)).sum())


def mean(posterior: np.ndarray, proposed: Alignment) -> float:
    """Expected mistakes per token."""
    return order.expected_mistakes(posterior, proposed) / max(1, sum(posterior.shape))


ORDERS: dict[str, Callable[[np.ndarray, Alignment], float]] = {
    "expected": order.expected_mistakes,
    "mean": mean,
    "entropy": entropy,
    "length": lambda posterior, proposed: float(sum(posterior.shape)),
}


@dataclass
class Curve:
    """Figures of one order: a list over sizes, of each seed."""

    f1: list[list[float]] = field(default_factory=list)
    tokens: list[list[int]] = field(default_factory=list)
    corrections: list[list[int]] = field(default_factory=list)


def annotate(pool: Sequence[Example], unseen: Sequence[Example], by: str, seed: int, sizes: Sequence[int],
             curve: Curve) -> None:  # fmt: skip
    """Annotate the pool in one order, and add the figures of this seed to the curve."""
    config = composed("core", {}, {"symmetrize.folds": 0})["aligner"]  # few pairs calibrate nothing
    drawn = [int(k) for k in np.random.default_rng(seed).permutation(len(pool))]
    done, rest, corrections = drawn[: sizes[0]], drawn[sizes[0] :], 0
    f1, tokens, corrected = [], [], []
    for size, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        aligner = build(config)
        fit(aligner, [pool[k] for k in done])
        found = score(_gold(unseen), aligner.align([e.pair for e in unseen]))
        f1.append(100 * found.f1)
        tokens.append(sum(len(pool[k].pair.source) + len(pool[k].pair.target) for k in done))
        corrected.append(corrections)
        if by != "random":
            rest = ranked(aligner, pool, rest, by)
        some, rest = rest[: following - size], rest[following - size :]
        proposed = aligner.align([pool[k].pair for k in some])
        corrections += sum(
            len(a.sure ^ b.sure) for a, b in zip(_gold([pool[k] for k in some]), proposed, strict=True)
        )
        done = done + some
    curve.f1.append(f1)
    curve.tokens.append(tokens)
    curve.corrections.append(corrected)


def ranked(aligner: PosteriorOfCells, pool: Sequence[Example], rest: Sequence[int], by: str) -> list[int]:
    """The rest of the pool, the least confident first."""
    pairs = [pool[k].pair for k in rest]
    posteriors = aligner.posteriors(pairs)
    if posteriors is None:
        raise ConfigError("this aligner has no posteriors")
    doubt = [ORDERS[by](p, a) for p, a in zip(posteriors, aligner.align(pairs), strict=True)]
    return [rest[k] for k in np.argsort(-np.array(doubt), kind="stable")]


def _gold(examples: Sequence[Example]) -> list[Alignment]:
    return [example.gold for example in examples if example.gold is not None]


def needed(sizes: Sequence[int], f1: np.ndarray, goal: float) -> float | None:
    """The number of pairs at which a curve first reaches the goal."""
    for k, value in enumerate(f1):
        if value >= goal:
            if k == 0:
                return float(sizes[0])
            before = f1[k - 1]
            return float(sizes[k - 1] + (sizes[k] - sizes[k - 1]) * (goal - before) / (value - before))
    return None


def report(curves: dict[str, Curve], sizes: Sequence[int]) -> str:
    means = {name: np.mean(curve.f1, axis=0) for name, curve in curves.items()}
    several = bool(next(iter(curves.values())).f1[1:])
    errors = {
        name: np.std(curve.f1, axis=0, ddof=int(several)) / np.sqrt(len(curve.f1))
        for name, curve in curves.items()
    }
    out = ["| pairs | " + " | ".join(f"{name} F1 | tokens | corrections" for name in curves) + " |"]
    out.append("|---:|" + "---:|" * (3 * len(curves)))
    for k, size in enumerate(sizes):
        cells = (
            f"{means[name][k]:.2f} ± {errors[name][k]:.2f} | {np.mean(curve.tokens, axis=0)[k]:.0f} "
            f"| {np.mean(curve.corrections, axis=0)[k]:.0f}"
            for name, curve in curves.items()
        )
        out.append(f"| {size} | {' | '.join(cells)} |")
    others = [name for name in curves if name != "random"]
    if "random" in curves and others:
        out += [
            "",
            "| random order | F1 | " + " | ".join(f"{name}: pairs needed | share" for name in others) + " |",
        ]
        out.append("|---:|---:|" + "---:|" * (2 * len(others)))
        for goal in GOALS:
            if goal in sizes:
                wanted = float(means["random"][list(sizes).index(goal)])
                found = [needed(sizes, means[name], wanted) for name in others]
                cells = ("never | " if n is None else f"{n:.0f} | {n / goal:.2f}" for n in found)
                out.append(f"| {goal} | {wanted:.2f} | {' | '.join(cells)} |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="aligned pairs (MSR's dev part in JACANA_DATA)")
    parser.add_argument("--orders", default="random,expected", help=f"some of random, {', '.join(ORDERS)}")
    parser.add_argument("--unseen", type=int, default=300, help="pairs to score on (300)")
    parser.add_argument("--seeds", type=int, default=5, help="means are over so many (5)")
    parser.add_argument("--most", type=int, default=max(SIZES), help=f"pairs to annotate ({max(SIZES)})")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("jacana_torch").setLevel(logging.WARNING)  # nobody wants to read of 300 trainings
    path = given.corpus or str(Path(os.environ.get("JACANA_DATA", "."), "msr/RTE2_dev_M.align.txt"))
    examples = [e for e in corpora.read(path) if e.gold is not None and len(e.pair.source) and len(e.pair.target)]
    if len(examples) < given.unseen + SIZES[1]:
        raise ConfigError(f"{path} has {len(examples)} pairs: too few to score {given.unseen} and annotate others")
    places = np.random.default_rng(0).permutation(len(examples))
    unseen, pool = ([examples[k] for k in part] for part in (places[: given.unseen], places[given.unseen :]))
    sizes = [size for size in SIZES if size <= min(given.most, len(pool))]
    curves = {name: Curve() for name in given.orders.split(",")}
    for name in curves:
        if name != "random" and name not in ORDERS:
            raise ConfigError(f"--orders {name}: choose some of random, {', '.join(ORDERS)}")
    for seed in range(1, given.seeds + 1):
        for name, curve in curves.items():
            annotate(pool, unseen, name, seed, sizes, curve)
        sys.stderr.write(f"seed {seed} of {given.seeds}\n")
    print(f"{path}: {len(pool)} pairs to annotate, {len(unseen)} unseen;", end=" ")
    print(f"mean ± standard error of {given.seeds} seeds\n")
    print(report(curves, sizes))


if __name__ == "__main__":
    sys.exit(outcome(main))
