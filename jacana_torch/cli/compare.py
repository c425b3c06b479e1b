"""`jacana-torch compare`: compare systems on a corpus, by Hydra."""

from __future__ import annotations

import argparse

ABOUT = "Compare systems on a corpus."
EXAMPLES = """
Everything after `compare` goes to Hydra, as it does for `train`. Systems that learn are trained on the pairs that
they are scored on, as in the papers; cv=K cross-validates them. Results are kept: after Ctrl-C, it prints how to
resume. The row of a system that cannot run says why.

examples:
  jacana-torch compare data=msr annotate=given 'aligners=[sultan,hmm,crf]'
  jacana-torch compare data=msr cv=5 'train=[same,cv]' 'aligners=[crf]' symmetrizers=all output=table.tex
  jacana-torch compare data=msr 'aligners=[crf,{bare: "crf features=[string,position]"},standard,my/model]'"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="Hydra overrides and options")


def run(arguments: argparse.Namespace) -> int:
    from . import hydra

    hydra.compare(arguments.overrides)
    return 0
