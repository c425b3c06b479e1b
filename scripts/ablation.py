"""Print an ablation table: what each feature family contributes, with intervals, as Markdown.

    python scripts/ablation.py experiment=msr cv=5
    python scripts/ablation.py experiment=msr cv=5 --only wordnet distsim --which backward

The overrides are those of `jacana-torch train`. Each row is a cross-validation without one family, on the same
folds. Differences are to the first row, with 95% intervals of the paired bootstrap and p-values of approximate
randomisation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from outcome import outcome
from validation import Validation

from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import Counts, Score, count
from jacana_torch.evaluate.significance import ROUNDS, Difference, differences
from jacana_torch.types import Alignment, Example

HEAD = (
    "| without | P | R | F1 | exact | F1, difference | p | exact, difference | p |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def ablation(
    validation: Validation, families: Sequence[str], which: str | None = None, rounds: int = ROUNDS
) -> str:
    """Format the table of one direction or symmetrizer, by default the best one with all families."""
    every = validation()
    name = which or next(iter(every))
    if name not in every:
        raise ConfigError(
            f"--which {name}: unknown direction or symmetrizer; choose one of {', '.join(sorted(every))}"
        )
    found = {"nothing": every[name]}
    for family in families:
        found[family] = validation([family])[name]
    return table(name, validation.examples, found, validation.links, rounds)


def table(
    name: str,
    examples: Sequence[Example],
    found: Mapping[str, Sequence[Alignment]],
    links: str = "sure",
    rounds: int = ROUNDS,
) -> str:
    """Format one row per item of `found`; differences are to the first."""
    gold = [example.gold for example in examples if example.gold is not None]
    counts = {label: count(gold, alignments, links) for label, alignments in found.items()}
    first = next(iter(counts.values()))
    rows = [_row(label, own, first, rounds) for label, own in counts.items()]
    return "\n".join([f"{len(gold)} pairs, {name}:\n", HEAD, *rows])


def _row(label: str, own: Counts, first: Counts, rounds: int) -> str:
    score = Score.of(own)
    figures = [f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1, score.exact)]
    if own is first:
        return f"| {' | '.join([label, *figures])} | | | | |"
    by_metric = differences(own, first, rounds)
    for metric in ("f1", "exact"):
        figures += _difference(by_metric[metric])
    return f"| {' | '.join([label, *figures])} |"


def _difference(difference: Difference) -> list[str]:
    value, low, high = (100 * x for x in (difference.value, difference.low, difference.high))
    return [f"{value:+.2f} [{low:+.2f}, {high:+.2f}]", f"{difference.p:.3f}"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="+", metavar="OVERRIDE", help="overrides of `jacana-torch train`")
    parser.add_argument(
        "--only", nargs="+", metavar="FAMILY", help="only without these (default: without each family)"
    )
    parser.add_argument("--which", metavar="NAME", help="a direction or symmetrizer (default: the best one)")
    options = parser.parse_intermixed_args(arguments)

    def script() -> None:
        validation = Validation(options.overrides)
        families = options.only or [f for f in validation.families if f not in validation.run.cfg["drop"]]
        sys.stdout.write(f"{ablation(validation, families, options.which)}\n")

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
