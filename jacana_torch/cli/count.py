"""`jacana-torch count`: count word vectors over a corpus, for the distsim features."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import HEADER, at_least_one, note

if TYPE_CHECKING:
    from ..types import SentencePair

ABOUT = "Count word vectors over a corpus, for the distsim features."
EXAMPLES = """
examples:
  jacana-torch count pairs.txt counts.npz
  jacana-torch count pairs.jsonl counts.npz --contexts dependency
  jacana-torch train experiment=msr features.distsim.counts=$PWD/counts.npz"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="sentence pairs in any format, or - for stdin")
    parser.add_argument("output", metavar="OUT", help="an .npz file")
    parser.add_argument("--contexts", choices=("window", "dependency"), default="window", help="(window)")
    parser.add_argument("--window", type=at_least_one, default=2, metavar="N", help="words on either side (2)")
    parser.add_argument("--min-count", type=at_least_one, default=2, metavar="N", help="leave out rarer words (2)")
    parser.add_argument("--from", dest="from_", metavar="F", help="format of IN: {read} (guessed)")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=HEADER)


def run(arguments: argparse.Namespace) -> int:
    from .. import corpora
    from ..annotate import annotate_stream
    from ..features.counted_vectors import count_vectors

    contexts = arguments.contexts
    examples = corpora.read(arguments.input, arguments.from_, header=arguments.header)
    pairs: Iterable[SentencePair] = (example.pair for example in examples)
    if contexts == "dependency":
        from ..annotate.spacy import SpacyAnnotator

        pairs = annotate_stream(pairs, SpacyAnnotator(layers=("head", "deprel")))
    sentences = (sentence for pair in pairs for sentence in (pair.source, pair.target))
    vectors = count_vectors(sentences, contexts=contexts, window=arguments.window, min_count=arguments.min_count)
    vectors.save(arguments.output)
    note(f"vectors of {len(vectors.words)} words")
    return 0
