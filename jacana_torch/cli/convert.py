"""`jacana-torch convert`: rewrite a corpus in another format."""

from __future__ import annotations

import argparse
import sys

from . import HEADER, ending_on_sigterm, note, presentable

ABOUT = "Rewrite aligned pairs in another format."
EXAMPLES = """
examples:
  jacana-torch convert RTE2_dev_M.align.txt dev.jsonl
  jacana-torch convert gold.json gold.talp --from jacana --to talp
  jacana-torch convert - - --from msr --to jsonl < RTE2_dev_M.align.txt > dev.jsonl"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="a file, or - for stdin")
    parser.add_argument("output", metavar="OUT", help="a file, or - for stdout")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of IN: {read} (guessed)")
    parser.add_argument("--to", metavar="F", help="format of OUT: {written} (guessed from its name)")
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out what cannot be read or written, and report how much"
    )
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=HEADER)


def run(arguments: argparse.Namespace) -> int:
    from .. import corpora

    skip = corpora.SkipBad() if arguments.skip_bad else None
    with ending_on_sigterm():
        number = corpora.convert(
            arguments.input, arguments.output, arguments.from_, arguments.to, on_bad=skip, header=arguments.header
        )
    note(f"{number} pairs")
    if skip is not None and skip.count:
        sys.stderr.write(f"jacana-torch: {presentable(skip.report())}\n")
    return 0
