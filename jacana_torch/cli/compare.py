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
  jacana-torch compare data=msr 'aligners=[crf,{bare: "crf features=[string,position]"},standard,my/model]'
  jacana-torch compare task=rte2 'aligners=[bag_of_words,stanford,standard]'   what alignments are good for
  jacana-torch compare task=sts files=[STS.input.MSRpar.txt] 'aligners=[core,my/model]' format=markdown

With task=rte2, rte3, sts or msrp it compares what alignments tell of entailment, similarity or paraphrase, and
Hydra has no part in it; `jacana-torch compare task=` lists the settings."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="Hydra overrides and options")


def run(arguments: argparse.Namespace) -> int:
    if any(item.startswith("task=") for item in arguments.overrides):
        from . import task_comparison

        task_comparison.run(arguments.overrides)
        return 0
    from . import hydra

    hydra.compare(arguments.overrides)
    return 0
