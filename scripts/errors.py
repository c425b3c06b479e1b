"""Print tables of errors by kind of link, missed and spurious, as Markdown.

    python scripts/errors.py gold.jsonl predicted.jsonl
    python scripts/errors.py --train experiment=msr cv=5      # as `jacana-torch train` takes it

A link counts under every kind whose condition it meets. `missed` counts gold links that were not predicted,
`spurious` predicted links that are not gold. `would be exact` counts the pairs whose errors are all of that kind.
Relations of WordNet and PPDB are used if installed. Tags come with the corpus or from NLTK's tagger.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from link_kinds import GROUPS, Case, Kind, cases_of
from outcome import outcome

from jacana_torch import corpora, resources
from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.types import Alignment, Example

HEAD = ("gold links", "missed", "% of kind", "% of all missed", "spurious", "% of all spurious", "would be exact")


@dataclass
class Count:
    """Counts of one kind: gold links, missed ones, spurious ones, and pairs without errors of other kinds."""

    gold: int = 0
    missed: int = 0
    spurious: int = 0
    exact: int = 0


def count(cases: Sequence[Case], kind: Kind) -> Count:
    total = Count()
    for case in cases:
        missed, spurious = case.gold - case.found, case.found - case.gold
        bad_missed, bad_spurious, gold = (sum(kind(case, x) for x in y) for y in (missed, spurious, case.gold))
        total.gold += gold
        total.missed += bad_missed
        total.spurious += bad_spurious
        total.exact += 0 < len(missed) + len(spurious) == bad_missed + bad_spurious
    return total


def report(title: str, cases: Sequence[Case]) -> str:
    """Format the tables of one corpus."""
    every = count(cases, lambda case, link: True)
    exact = sum(case.gold == case.found for case in cases)
    out = [
        f"### {title}\n",
        f"{len(cases)} pairs, {exact} of them exact; {every.gold} gold links, {every.missed} missed, "
        f"{every.spurious} spurious.\n",
    ]
    for group, kinds in GROUPS.items():
        rows = [(name, count(cases, kind)) for name, kind in kinds.items()]
        rows = [(name, c) for name, c in rows if c.gold or c.missed or c.spurious]
        if not rows:
            continue
        out += [f"| {group} | {' | '.join(HEAD)} |", f"|---|{'---:|' * len(HEAD)}"]
        for name, c in rows:
            shares = _share(c.missed, c.gold), _share(c.missed, every.missed), _share(c.spurious, every.spurious)
            out.append(
                f"| {name} | {c.gold} | {c.missed} | {shares[0]} | {shares[1]} | {c.spurious} | {shares[2]} "
                f"| {c.exact} |"
            )
        out.append("")
    return "\n".join([*out, _errors_per_pair(cases)])


def _errors_per_pair(cases: Sequence[Case]) -> str:
    """Format the distribution of the number of errors per pair."""
    sizes = Counter(min(len(case.gold ^ case.found), 6) for case in cases)
    names = [str(k) if k < 6 else "6 or more" for k in range(7)]
    return "\n".join(
        [
            f"| errors per pair | {' | '.join(names)} |",
            f"|---|{'---:|' * 7}",
            f"| pairs | {' | '.join(str(sizes[k]) for k in range(7))} |",
            "",
        ]
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def from_files(gold: str, predicted: str) -> tuple[list[Example], list[Alignment]]:
    examples, answers = (list(corpora.read(name)) for name in (gold, predicted))
    if len(examples) != len(answers):
        raise CorpusError(f"has {len(answers)} pairs, and {gold} has {len(examples)}", predicted)
    for one, other in zip(examples, answers, strict=True):
        if one.gold is None or other.gold is None or (one.gold.n_source, one.gold.n_target) != (
            other.gold.n_source, other.gold.n_target,
        ):  # fmt: skip
            raise CorpusError(
                f"its pairs are not those of {gold}: no links for {str(one.pair.source)[:60]!r}", predicted
            )
    return examples, [other.gold for other in answers if other.gold is not None]


def tagged(examples: Sequence[Example]) -> list[Example]:
    """Add tags and lemmas, if they are missing and the tagger and WordNet are installed."""
    from jacana_torch.annotate.nltk import NltkAnnotator

    if not (resources.available("tagger") and resources.available("wordnet")):
        return list(examples)
    pairs = NltkAnnotator()([example.pair for example in examples])
    return [replace(example, pair=pair) for example, pair in zip(examples, pairs, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="+", metavar="GOLD PREDICTED | OVERRIDE")
    parser.add_argument("--train", action="store_true", help="cross-validate the configuration of the overrides")
    parser.add_argument(
        "--which", metavar="NAME", help="with --train: a direction or symmetrizer (default: the best)"
    )
    options = parser.parse_intermixed_args(arguments)

    def script() -> None:
        if options.train:
            from validation import Validation  # imports Hydra and torch

            validation = Validation(options.arguments)
            examples, by_name = validation.examples, validation()
            name = options.which or next(iter(by_name))
            if name not in by_name:
                raise ConfigError(
                    f"--which {name}: unknown direction or symmetrizer; choose one of {', '.join(by_name)}"
                )
            title, found = f"`{' '.join(options.arguments)}`, {name}", by_name[name]
        elif len(options.arguments) == 2:
            (examples, found), title = from_files(*options.arguments), Path(options.arguments[1]).name
        else:
            parser.error("give two files, gold and predicted, or --train and overrides of `jacana-torch train`")
        sys.stdout.write(f"{report(title, cases_of(tagged(examples), found))}\n")

    return outcome(script)


if __name__ == "__main__":
    sys.exit(main())
