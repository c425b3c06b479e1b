"""`jacana-torch project`: labelled spans of sentences onto their counterparts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, CorpusError, PairError

if TYPE_CHECKING:
    from ..model.model import Model
    from ..projection import Projected
    from ..tasks.spans import Record
    from ..types import Sentence

FORMATS = ("jsonl", "bio", "spacy")
ABOUT = "Project labelled spans of sentences onto their counterparts."
EXAMPLES = """
examples:
  jacana-torch project entities.jsonl rewrites.txt            line n of one belongs to record n of the other
  jacana-torch project train.bio rewrites.txt --output train.rewritten.bio
  jacana-torch project train.spacy rewrites.txt --to jsonl
  jacana-torch project pairs.jsonl --least 0.5                records with text, spans and target

JSONL has {"text", "spans": [{"start", "end", "label"}]}, or "label" or "entities" as doccano has them. Spans are
written with their confidence; one in several parts has "parts"; what has no counterpart is in "not_projected"."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spans", metavar="SPANS", help="sentences with spans: .jsonl, .bio, .conll, .spacy")
    parser.add_argument("targets", nargs="?", metavar="TARGETS", help="the other sentences, one a line")
    parser.add_argument("--from", dest="from_", choices=FORMATS, help="format of SPANS (by its name)")
    parser.add_argument("--to", choices=FORMATS, help="output format (that of SPANS)")
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory"
    )
    parser.add_argument("--style", metavar="S", help="the convention to align by, of a model that has several")
    parser.add_argument(
        "--least", type=float, default=0.0, metavar="P", help="drop spans with less confidence (0)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="a file, written completely or not at all (stdout)")


def run(arguments: argparse.Namespace) -> int:
    from ..model import persist
    from ..tasks.spans import chunks, format_of, read
    from .loading import chosen_model

    if not 0 <= arguments.least <= 1:
        raise ConfigError(f"--least {arguments.least:g}: a probability from 0 to 1")
    form = arguments.from_ or format_of(arguments.spans)
    to = arguments.to or form
    if to == "spacy" and not arguments.output:
        raise ConfigError("a DocBin is binary: name a file, --output FILE.spacy")
    records = read(arguments.spans, form)
    targets = _targets(records, arguments.spans, arguments.targets)
    model = persist.load(chosen_model(arguments.model), style=arguments.style)
    content = chunks(_projected(records, targets, model, arguments.least), to)
    if arguments.output:
        from ..resources.store import write_whole

        whole = [chunk if isinstance(chunk, bytes) else chunk.encode() for chunk in content]
        write_whole(Path(arguments.output).expanduser(), b"".join(whole))
    else:
        for chunk in content:
            assert isinstance(chunk, str)
            sys.stdout.write(chunk)
    return 0


def _targets(records: list[Record], name: str, targets: str | None) -> list[Sentence]:
    """The other sentences, from their file or from the records."""
    from ..annotate.tokens import tokenize
    from ..types import Sentence
    from .texts import read_lines

    if targets is None:
        found = [record.target for record in records if record.target is not None]
        if len(found) != len(records):
            raise ConfigError(f"{name}: a record has no target: name a file of the other sentences, one a line")
        return found
    lines = read_lines(targets)
    if len(lines) != len(records):
        raise CorpusError(f"{len(lines)} lines for the {len(records)} sentences of {name}", targets)
    return [Sentence(tokenize(line), text=line) for line in lines]


def _projected(
    records: list[Record], targets: list[Sentence], model: Model, least: float
) -> Iterator[tuple[Record, Sentence, list[Projected]]]:
    from dataclasses import replace

    from ..types import Alignment, Sentence, SentencePair

    pairs = []
    for record, target in zip(records, targets, strict=True):
        pairs.append(SentencePair(Sentence(record.sentence.tokens), Sentence(target.tokens)))
    found = model.align_stream(pairs, on_error="yield")
    for number, (record, target, alignment) in enumerate(zip(records, targets, found, strict=True), start=1):
        if not isinstance(alignment, Alignment):
            raise PairError(alignment.reason, number)
        spans = alignment.of(SentencePair(record.sentence, target)).project(record.spans, characters=True)
        yield record, target, [one if one.confidence >= least else replace(one, parts=()) for one in spans]
