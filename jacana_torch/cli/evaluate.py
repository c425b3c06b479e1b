"""`jacana-torch evaluate`: score predicted links against gold links, or measure the agreement of annotators."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ConfigError, CorpusError, ModelError
from . import HEADER
from .align import ALIGNED_BY

if TYPE_CHECKING:
    from ..evaluate.agreement import AgreementReport
    from ..evaluate.report import Report
    from ..types import Example

BELOW = 1  # the exit code where --fail-under is not reached
FORMATS = ("text", "markdown", "latex", "json")
SPLITS = ("identical", "pos", "type", "length")
FIGURES = ("precision", "recall", "f1", "exact", "micro_precision", "micro_recall", "micro_f1")

ABOUT = "Score predicted links against gold ones."
EXAMPLES = """
examples:
  jacana-torch evaluate gold.jsonl predicted.jsonl
  jacana-torch evaluate gold.align.txt links.txt --from msr --predicted-from pharaoh --links all
  jacana-torch align gold.jsonl | jacana-torch evaluate gold.jsonl -
  jacana-torch evaluate gold.jsonl old.jsonl new.jsonl --by identical,pos,type,length --format markdown
  jacana-torch evaluate gold.jsonl predicted.jsonl --fail-under 88.5 --fail-under exact=36
  jacana-torch evaluate --agreement first.jsonl second.jsonl third.jsonl

P, R, F1 and exact are means over pairs (F1 is the harmonic mean of mean P and mean R); micro ones are over all
links. AER counts gold's possible links as neither right nor wrong. Several predictions are compared with the
first. --by pos reads the corpus's tags, or else tags the corpus with NLTK's tagger.
The exit code is 1 if a prediction is below --fail-under, 2 for mistakes, else 0."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("gold", metavar="GOLD", help="pairs with their links")
    parser.add_argument("predicted", nargs="+", metavar="PREDICTED", help="links in any format, or - for stdin")
    parser.add_argument("--links", choices=("sure", "all"), default="sure", help="which links count (sure)")
    parser.add_argument("--by", default="", metavar="S,...", help=f"scores by kind of link: {', '.join(SPLITS)}")
    parser.add_argument("--format", choices=FORMATS, default="text", help="(text)")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="--format json")
    parser.add_argument(
        "--fail-under", action="append", default=[], metavar="[FIGURE=]PERCENT",
        help=f"exit with 1 if a score is lower; {', '.join(FIGURES)} (f1); repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--agreement", action="store_true", help="measure how far all files, one per annotator, agree"
    )
    parser.add_argument("--sym", metavar="NAME", help="name of the symmetrizer for signatures")
    parser.add_argument(
        "-m", "--model", action="append", default=[], metavar="NAME|DIR",
        help="the model that predicted: warns if it was trained on pairs of GOLD; repeatable",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=10_000, metavar="N", help="rounds of resampling (10000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of resampling (1)")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of GOLD: {read} (guessed)")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=f"of GOLD: {HEADER}")
    parser.add_argument("--predicted-from", metavar="F", help="format of PREDICTED: {formats} (guessed)")


def run(arguments: argparse.Namespace) -> int:
    from ..evaluate.report import Report

    least = [_least(text) for text in arguments.fail_under]  # report mistakes before anything is read
    by = [split for split in re.split(r"[,\s]+", arguments.by) if split]
    for split in by:
        if split not in SPLITS:
            raise ConfigError(f"--by {split}: choose some of {', '.join(SPLITS)}")
    if arguments.agreement and (least or by or arguments.sym or arguments.model):
        raise ConfigError("--agreement compares annotators: --fail-under, --by, --sym and --model do not apply")
    gold = _gold(arguments.gold, arguments.from_, arguments.header)
    records = _predictions(gold, arguments.predicted, arguments.predicted_from)
    found = [[record.gold for record in file if record.gold is not None] for file in records]
    if arguments.agreement:
        from ..evaluate.agreement import AgreementReport

        first = [example.gold for example in gold if example.gold is not None]
        people = dict(zip(_names([arguments.gold, *arguments.predicted]), [first, *found], strict=True))
        _write(AgreementReport.of(people, arguments.links), arguments.format)
        return 0
    _warn_if_seen(arguments.model, records, gold)
    gold = _with_tags(gold) if "pos" in by else gold
    systems = dict(zip(_names(arguments.predicted), found, strict=True))
    report = Report.of(gold, systems, arguments.links, by, arguments.rounds, arguments.seed, arguments.sym)
    _write(report, arguments.format)
    return _fails(report, least)


def _warn_if_seen(given: Sequence[str], records: Sequence[Sequence[Example]], gold: Sequence[Example]) -> None:
    """Say which models were trained on pairs of `gold`: those given, and those that the predictions name."""
    named = {str((record.extra or {}).get(ALIGNED_BY, "")) for file in records for record in file} - {"", *given}
    from ..model import persist
    from ..model.seen import warning

    if not given and not named:
        return _note_if_shipped_saw(gold)
    pairs = [example.pair for example in gold]
    for model in (*given, *sorted(named)):
        try:
            if model in given:
                persist.read_config(persist.locate(model))  # a misspelt name is a mistake
            said = warning(model, pairs)
        except (ModelError, OSError):
            if model in given:
                raise
            continue  # a file may name a model of another machine
        if said is not None:
            sys.stderr.write(f"jacana-torch: warning: {said}\n")


def _note_if_shipped_saw(gold: Sequence[Example]) -> None:
    """Say which shipped models were trained on pairs of `gold`, since nobody said what made the predictions."""
    from ..model import persist

    pairs = [example.pair.checksum for example in gold]
    seen = {name: sum(map(persist.trained_on(name).__contains__, pairs)) for name in persist.names()}
    if most := max(seen.values(), default=0):
        names = ", ".join(name for name, count in seen.items() if count)
        sys.stderr.write(
            f"jacana-torch: note: {most} of the {len(pairs)} scored pairs are training pairs of {names}: if one "
            "of these made the predictions, the scores are too high for new text (--model NAME says which did)\n"
        )


def _gold(path: str, format: str | None, header: bool | None = None) -> list[Example]:
    from .. import corpora

    examples = list(corpora.read(path, format, header=header))
    for number, example in enumerate(examples, start=1):
        if example.gold is None:
            raise CorpusError(f"pair {number} has no links to score against", path)
    return examples


def _predictions(gold: Sequence[Example], paths: Sequence[str], format: str | None) -> list[list[Example]]:
    from .. import corpora

    if list(paths).count("-") > 1:
        raise ConfigError("stdin holds one prediction: name - only once")
    return [corpora.records_of(gold, path, format) for path in paths]


def _names(paths: Sequence[str]) -> list[str]:
    """Return the shortest names that differ."""
    short = ["stdin" if path == "-" else os.path.basename(path) for path in paths]
    names = short if len(set(short)) == len(short) else list(paths)
    return [name if names.count(name) == 1 else f"{name} ({k + 1})" for k, name in enumerate(names)]


def _with_tags(gold: Sequence[Example]) -> list[Example]:
    """Return the gold with tags of the source words: the corpus's, or else NLTK's."""
    if all("pos" in example.pair.source.layers for example in gold):
        return list(gold)
    from ..annotate.nltk import NltkAnnotator
    from ..evaluate.report import tagged

    return tagged(gold, NltkAnnotator(lemmas=False)([example.pair for example in gold]))


def _write(report: Report | AgreementReport, format: str) -> None:
    from ..util.tables import FORMATS

    as_json = format == "json"
    text = json.dumps(report.to_dict(), allow_nan=False) if as_json else FORMATS[format](report.sheets())
    sys.stdout.write(f"{text}\n")


def _least(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    name = name or "f1"
    try:
        percent = float(value)
    except ValueError:
        percent = -1.0
    if name not in FIGURES or not 0 <= percent <= 100:
        raise ConfigError(
            f"--fail-under {text}: [FIGURE=]PERCENT, as in 88.5 or exact=36; figures are {', '.join(FIGURES)}"
        )
    return name, percent


def _fails(report: Report, least: Sequence[tuple[str, float]]) -> int:
    code = 0
    for system in report.systems:
        for name, percent in least:
            value = 100 * float(system.score.to_dict()[name])
            if value < percent:
                sys.stderr.write(f"jacana-torch: {system.name}: {name} {value:.2f} is below {percent:g}\n")
                code = BELOW
    return code
