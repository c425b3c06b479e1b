"""`jacana-torch coverage`: how much of a reference's content a text expresses."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from ..errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from ..differences.covering import CorpusCoverage, Word

BELOW = 1  # the exit code where --fail-under is not reached
ABOUT = "Measure how much of a reference's content a text expresses."
EXAMPLES = """
examples:
  jacana-torch coverage sources.txt summaries.txt            line n of one belongs to line n of the other
  jacana-torch coverage --whole answer_key.txt answer.txt    each file is one text
  jacana-torch coverage pairs.jsonl --each | jq '.uncovered'
  jacana-torch coverage references.txt rewrites.txt --fail-under 85

Coverage is the share of the reference's content words that are aligned, weighted by how rare they are; support is
the same share of the text. Both lie between 0 and 100. Another number, an antonym or a negated word covers
nothing. Intervals are 95% over resampled pairs. The exit code is 1 if coverage is below --fail-under, 2 for
mistakes, else 0."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="references and texts; or one file of pairs, or - for stdin",
    )
    parser.add_argument("--from", dest="from_", metavar="F", help="format of the pairs: {read} (guessed)")
    parser.add_argument("--whole", action="store_true", help="each of the two files is one text")
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory"
    )
    parser.add_argument("--style", metavar="S", help="the convention to align by, of a model that has several")
    parser.add_argument("--each", action="store_true", help="write a JSON record for each pair instead")
    parser.add_argument("--json", action="store_true", help="write the figures as JSON")
    parser.add_argument("--rounds", type=int, default=10_000, metavar="N", help="of the intervals (10000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the intervals (1)")
    parser.add_argument("--fail-under", type=float, metavar="PERCENT", help="exit with 1 if coverage is lower")


def run(arguments: argparse.Namespace) -> int:
    least = arguments.fail_under
    if least is not None and not 0 <= least <= 100:
        raise ConfigError(f"--fail-under {least:g}: a percentage from 0 to 100")
    pairs = _pairs(arguments)
    from ..differences.covering import corpus_coverage
    from .loading import chosen

    found = corpus_coverage(pairs, chosen(arguments.model, arguments.style), arguments.rounds, arguments.seed)
    if arguments.each:
        for one in found.each:
            sys.stdout.write(json.dumps(one.to_dict(), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(json.dumps(found.to_dict()) + "\n" if arguments.json else _text(found))
    if least is not None and 100 * found.value < least:
        sys.stderr.write(f"jacana-torch: coverage {100 * found.value:.2f} is below {least:g}\n")
        return BELOW
    return 0


def _pairs(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    from .texts import read_lines, read_text

    files = arguments.files
    if len(files) > 2 or (arguments.whole and len(files) != 2):
        raise ConfigError("coverage takes references and texts, two files, or one file of pairs")
    if files == ["-", "-"]:
        raise ConfigError("only one of the two texts can come from stdin")
    if len(files) == 2:
        if arguments.from_:
            raise ConfigError("--from is the format of one file of pairs")
        if arguments.whole:
            return [(read_text(files[0]), read_text(files[1]))]
        lines = read_lines(files[0]), read_lines(files[1])
        if len(lines[0]) != len(lines[1]):
            raise CorpusError(
                f"{len(lines[0])} lines, but {files[1]} has {len(lines[1])}: use --whole for two texts", files[0]
            )
        return list(zip(*lines, strict=True))
    from ..corpora import read

    found = []
    for example in read(files[0], arguments.from_ or ("text" if files[0] == "-" else None)):
        sides = []
        for sentence in (example.pair.source, example.pair.target):
            sides.append(str(sentence) if sentence.text is None else sentence.text)
        found.append((sides[0], sides[1]))
    if not found:
        raise CorpusError("has no pairs", files[0])
    return found


def _text(found: CorpusCoverage) -> str:
    rows = [("coverage", found.value, found.interval), ("support", found.support, found.support_interval)]
    if len(found.each) > 1:
        lines = [
            f"{name:9} {100 * value:6.2f}  ({100 * low:.2f}-{100 * high:.2f})" for name, value, (low, high) in rows
        ]
        lines.append(f"{'weighted':9} {100 * found.weighted:6.2f}")
    else:
        (one,) = found.each
        lines = [f"{name:9} {100 * value:6.2f}" for name, value, _ in rows]
        for name, some in (("uncovered", one.uncovered), ("unsupported", one.unsupported)):
            lines.append(f"{name}: {', '.join(map(_with_contradiction, some)) or '-'}")
    return "\n".join([*lines, found.signature]) + "\n"


def _with_contradiction(word: Word) -> str:
    if not word.instead:
        return word.text
    same = word.instead.lower() == word.text.lower()
    return f"{word.text} ({'negated' if same else f'not {word.instead}'})"
