"""Print the reliability of confidences before and after calibration, as Markdown.

    python scripts/calibration.py experiment=msr cv=5      # as `jacana-torch train` takes it

Every pair is held out from the models that score it and from their calibration. `before` is the mean of the two
directions' posteriors. `after` combines their log-odds with weights fitted on folds of the training pairs,
`default` with the weights that are used without fitting. Candidates are the links with a posterior of at least 1%
in either direction.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import numpy as np
from outcome import outcome
from validation import FOLDS, Validation

from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.aligners.calibration import sampled
from jacana_torch.aligners.posterior import Combination
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate.calibration import log_loss, reliability
from jacana_torch.model import persist
from jacana_torch.train import loop as experiment

CANDIDATE = 0.01
KINDS = ("forward", "backward", "before", "default", "after")

log = logging.getLogger("calibration")


def held_out(validation: Validation) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """For every cell of every pair: the posterior of each kind, whether gold links it, whether the model does."""
    cfg, config = validation.run.cfg, validation.run.model_config["aligner"]
    examples = [e for e in validation.examples if e.gold is not None and len(e.pair.source) and len(e.pair.target)]
    columns: dict[str, list[np.ndarray]] = {kind: [] for kind in (*KINDS, "gold", "linked")}
    folds = cfg["cv"] or FOLDS
    for number, (train, test) in enumerate(experiment.folds(len(examples), folds, cfg["seed"]), 1):
        aligner = persist.build(config)
        if not isinstance(aligner, Bidirectional):
            raise ConfigError(
                "only an aligner with two directions has posteriors to calibrate: choose aligner=crf"
            )
        if experiment.fit(aligner, validation.run.augment([examples[i] for i in train])).interrupted:
            raise KeyboardInterrupt
        sample = sampled(aligner.forward, aligner.backward, [examples[i] for i in test])  # type: ignore[arg-type]
        after = aligner.combination.combine(sample.forward, sample.backward)
        figures = {
            "forward": sample.forward,
            "backward": sample.backward,
            "before": (sample.forward + sample.backward) / 2,
            "default": Combination().combine(sample.forward, sample.backward),
            "after": after,
            "gold": sample.gold,
            "linked": after >= aligner.combination.threshold,
        }
        for name, values in figures.items():
            columns[name].append(values)
        log.info("fold %d of %d: %s", number, folds, aligner.combination)
    whole = {name: np.concatenate(values) for name, values in columns.items()}
    return {kind: whole[kind] for kind in KINDS}, whole["gold"], whole["linked"]


def report(title: str, posteriors: dict[str, np.ndarray], gold: np.ndarray, linked: np.ndarray) -> str:
    candidate = np.maximum(posteriors["forward"], posteriors["backward"]) >= CANDIDATE
    out = [
        f"### {title}\n",
        f"{len(gold)} cells, {gold.sum()} of them gold links; {candidate.sum()} candidates, "
        f"{linked.sum()} links.\n",
        "| posteriors | log loss per cell | ECE of candidates | worst bin | ECE of links |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, values in posteriors.items():
        curve, made = reliability(values[candidate], gold[candidate]), reliability(values[linked], gold[linked])
        out.append(
            f"| {kind} | {log_loss(values, gold):.5f} | {100 * curve.error:.2f}% | {100 * curve.worst:.1f}% "
            f"| {100 * made.error:.2f}% |"
        )
    before, after = (reliability(posteriors[kind][candidate], gold[candidate]) for kind in ("before", "after"))
    heads = [
        f"{name}: {what}" for name in ("before", "after") for what in ("candidates", "mean probability", "gold")
    ]
    out += ["", f"| probability | {' | '.join(heads)} |", f"|---|{'---:|' * 6}"]
    for k in range(len(before.count)):
        sides = (
            f"{c.count[k]} | {100 * c.probability[k]:.1f}% | {100 * c.share[k]:.1f}%" for c in (before, after)
        )
        out.append(f"| {before.edges[k]:.1f}–{before.edges[k + 1]:.1f} | {' | '.join(sides)} |")
    return "\n".join([*out, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    options = parser.parse_args(arguments)

    def script() -> None:
        validation = Validation([*options.overrides, "symmetrize=posterior"])
        title = f"`{' '.join(options.overrides)}`"
        sys.stdout.write(f"{report(title, *held_out(validation))}\n")

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
