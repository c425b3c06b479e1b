"""`jacana-torch align`: align pairs in batches, in several processes, and write one alignment for each.

This process reads and writes. On a CPU, workers align the batches; another device has this process to itself, and
the workers annotate for it. A bad line, or a pair that cannot be aligned, ends the run after everything before it
was written; with --skip-bad it gives an empty alignment, so that line n of the output always belongs to line n of
the input.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, CorpusError, JacanaError, PairError
from . import HEADER, at_least_one, presentable, two_names

if TYPE_CHECKING:
    from ..corpora import SkipBad, Source, Writable
    from ..types import Example
    from .inputs import Inputs
    from .loading import Aligning, Batch, Outcome

    Kept = tuple[str, int | None, Mapping[str, Any] | None]  # the file, the line and the other keys of a pair

ABOUT = "Align sentence pairs."
EXAMPLES = """
examples:
  jacana-torch align pairs.txt > links.txt           source TAB target in, 0-0 1-2 ... out
  jacana-torch align --to jsonl --confidence < pairs.txt
  jacana-torch align gold.jsonl --to talp --symmetrize grow-diag-final-and --output out.talp
  jacana-torch align big.txt.gz --workers 4 --output big.links
  tail -f pairs.txt | jacana-torch align             answers as soon as the input pauses
  jacana-torch align nli.csv --columns premise,hypothesis --output aligned.csv     adds a column `links`
  jacana-torch align 'data/*.parquet' --columns premise,hypothesis --output out/ --shard 1/8

Raw text (source TAB target, or source ||| target) is tokenised first: links count those tokens, which
--to jsonl shows. With --pretokenized, tokens are separated by spaces. Other formats bring their own tokens.
Output has one line per input line; with --skip-bad, a bad line gives an empty alignment. A line is also bad
if its pair is beyond one of the limits (--max-...), which keep time and memory within bounds."""

TABLES = (".csv", ".parquet")  # endings of files that surely have named columns
ALIGNED_BY = "aligned_by"  # the key of JSONL records that names the model
FIRST_BATCH = 32  # pairs; aligned before workers start, so that there is an answer soon
LAST_BATCHES = 128  # pairs; smaller batches cost more per pair
USUAL_CELLS = (
    312  # source times target tokens of a pair; a batch of longer pairs has fewer, as memory goes by cells
)
LONGEST_GATHERING = 0.5  # seconds that a pair waits for others
OF_FOLDERS = ("shard", "engine", "address", "block_size", "resume")  # options of an output of many files
# What `model.Limits` limits, and the usual limits, as importing those would take --help too long.
LIMITS = {
    "letters": "letters of a token (1,000)",
    "tokens": "tokens of a sentence (3,000)",
    "cells": "cells of a pair, source times target tokens (4,000,000)",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", nargs="*", metavar="FILE", help="files, also '*.csv' with wildcards, or - for stdin (stdin)"
    )
    parser.add_argument(
        "-m", "--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory"
    )
    parser.add_argument("--style", metavar="S", help="the convention to align by, of a model that has several")
    parser.add_argument("--from", dest="from_", metavar="F", help="input format: {read} (guessed; text on stdin)")
    parser.add_argument("--to", metavar="F", help="output format: {aligned} (pharaoh; of tables, as the input)")
    parser.add_argument(
        "--columns",
        type=two_names,
        metavar="A,B",
        help="the columns (csv, tsv, parquet) or keys (jsonl) of the two sentences; others pass through",
    )
    parser.add_argument("--tokens", action="store_true", help="add the tokens that links count to a table")
    parser.add_argument("--pretokenized", action="store_true", help="tokens of raw text are separated by spaces")
    parser.add_argument(
        "--symmetrize",
        metavar="S",
        help="how to combine the two directions: {symmetrizers} (as the model was trained)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="link words from this probability on: a higher one links less, and more surely (as trained)",
    )
    parser.add_argument("--confidence", action="store_true", help="write each link's confidence")
    parser.add_argument(
        "--name-model",
        action="store_true",
        help=f"write the model's name to each JSONL record, so that `evaluate` knows it ({ALIGNED_BY})",
    )
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda, cuda:1, mps ... (cpu)")
    parser.add_argument(
        "--batch-size",
        type=at_least_one,
        default=1024,
        metavar="N",
        help="pairs aligned at a time (1024; fewer if they are long)",
    )
    parser.add_argument("--workers", type=at_least_one, metavar="N", help="worker processes (one per CPU)")
    parser.add_argument("--skip-bad", action="store_true", help="write an empty alignment for a bad line")
    for name, about in LIMITS.items():
        parser.add_argument(f"--max-{name}", type=at_least_one, metavar="N", help=about)
    parser.add_argument("--header", action=argparse.BooleanOptionalAction, help=HEADER)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="a file, written completely or not at all; or a folder/ for many (stdout)",
    )
    parser.add_argument("--shard", metavar="I/N", help="with a folder: do part I of N, counted from 1")
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        help="with a folder: go on where an earlier run stopped (the default), or begin again",
    )
    parser.add_argument("--engine", choices=["local", "ray"], help="with a folder: where the workers are (local)")
    parser.add_argument("--address", metavar="A", help="of the Ray cluster, or auto (a local one of this machine)")
    parser.add_argument(
        "--block-size", type=at_least_one, metavar="N", help="with a folder: pairs of an output file (50,000)"
    )


@dataclass(frozen=True)
class Settings:
    """How pairs are read and alignments written."""

    to: str
    from_: str | None = None
    columns: tuple[str, str] | None = None
    header: bool | None = None
    tokens: bool = False
    confidence: bool = False
    name_model: bool = False
    skip_bad: bool = False
    batch_size: int = 1024


def run(arguments: argparse.Namespace) -> int:
    from ..corpora import Source, guess
    from ..symmetrize import symmetrizer
    from .loading import Aligning, chosen_model

    output, workers = arguments.output, arguments.workers
    names = list(arguments.input) or ["-"]
    if len(names) > 1 or set(names[0]) & set("*?["):
        from .inputs import expanded

        names = expanded(names)
    from_ = arguments.from_
    opened: Source | Inputs | None = None
    if names == ["-"] and from_ is None:
        from_ = "text"
        if arguments.columns is not None:  # the first lines say which table it is
            opened = Source("-", arguments.header)
            from_ = guess(opened.name, opened.head, columns=arguments.columns)
    arguments.from_ = from_
    to = _output_format(arguments, names[0], output)
    settings = Settings(
        to, from_, arguments.columns, arguments.header, arguments.tokens, arguments.confidence,
        arguments.name_model, arguments.skip_bad, arguments.batch_size,
    )  # fmt: skip
    if arguments.threshold is not None:
        if arguments.symmetrize is not None:
            raise ConfigError("--threshold is one of posteriors: leave out --symmetrize")
        arguments.symmetrize = f"posterior:{arguments.threshold}"
    if arguments.symmetrize is not None:
        symmetrizer(arguments.symmetrize)  # report a misspelt name before anything is loaded
    limits: dict[str, int] = {}
    for name in LIMITS:
        if (limit := vars(arguments)[f"max_{name}"]) is not None:
            limits[name] = limit
    to_folder = output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))
    for name in OF_FOLDERS:
        if vars(arguments)[name] is not None:
            to_folder = True
            if output is None:
                raise ConfigError(f"--{name.replace('_', '-')} needs a folder: --output FOLDER/")
    if to_folder:
        from .bulk import run_bulk

        return run_bulk(arguments, settings, names, limits)
    if len(names) > 1:
        from .inputs import Inputs

        opened = Inputs(names, arguments.header)
    elif opened is None:
        opened = Source(names[0], arguments.header)
    work = Aligning(
        chosen_model(arguments.model),
        arguments.device,
        arguments.symmetrize,
        arguments.confidence,
        tokenise=not arguments.pretokenized,
        limits=limits,
        style=arguments.style,
    )
    _ = work.model  # report mistakes before anything is written, and share the model with forked workers
    if workers is None:
        from ..util import parallel

        workers = 1 if opened.may_stall else parallel.available()
    shown = not arguments.quiet and sys.stderr.isatty() and not (output is None and sys.stdout.isatty())
    _, bad = align_source(settings, work, opened, output or "-", workers, shown)
    if bad is not None and bad.count:
        sys.stderr.write(f"jacana-torch: {presentable(bad.report())}\nEach got an empty alignment.\n")
    return 0


def align_source(
    settings: Settings,
    work: Aligning,
    opened: Source | Inputs,
    target: Writable,
    workers: int,
    shown: bool = False,
) -> tuple[int, SkipBad | None]:
    """Align all pairs of an input and write them; return how many, and what was bad if that is skipped."""
    from ..corpora import SkipBad, Source, format_named, read_live, write
    from ..types import Example, Sentence, SentencePair

    empty = Example(SentencePair(Sentence(()), Sentence(())))
    bad = SkipBad(instead=empty) if settings.skip_bad else None
    added = None
    if format_named(settings.to).write_table is not None:
        from ..corpora._tables import Added

        added = Added(settings.tokens, settings.confidence, lambda: opened.record)
    if isinstance(opened, Source):
        examples = read_live(opened, settings.from_, on_bad=bad, columns=settings.columns)
    else:
        examples = opened.read(settings.from_, bad, settings.columns)
    size = partial(_size, settings.batch_size, workers, opened.fraction)
    kept: deque[Kept] = deque()
    signed = {ALIGNED_BY: work.name} if settings.name_model else {}
    batches = _batches(_noted(examples, opened, kept, signed), size, settings.batch_size * USUAL_CELLS)
    outcomes = _outcomes(work, batches, workers)
    if shown:
        from .progress import with_progress

        outcomes = with_progress(outcomes, opened.fraction)
    with closing(outcomes):
        with_text = settings.to == "jsonl"  # which tells where the tokens lie in the text
        aligned = _aligned(outcomes, kept, bad, with_text)
        unwritable = None if bad is None else _emptied(bad)
        count = write(aligned, target, settings.to, links_only=True, on_bad=unwritable, added=added)
    return count, bad


def _emptied(bad: SkipBad) -> Callable[[CorpusError], Example]:
    """Return what counts a pair that cannot be written, and writes an empty alignment instead."""
    from ..types import Alignment, Example, Sentence, SentencePair

    nothing = Sentence(())
    empty = Example(SentencePair(nothing, nothing), Alignment(0, 0))

    def instead(error: CorpusError) -> Example:
        bad(error)
        return empty

    return instead


def _output_format(arguments: argparse.Namespace, first: str, output: str | None) -> str:
    """Return the format to write, which has a place for everything that is asked for."""
    from ..corpora import can_align, format_for_writing, format_named, formats

    to = arguments.to
    if to is None and output is not None:
        try:
            to = format_for_writing(output)
            to = to if can_align(format_named(to)) else None
        except CorpusError:  # the name does not say
            to = None
    if to is None and (first, arguments.from_) != ("-", None):
        to = _as_input(arguments, first)
    to = to or "pharaoh"
    found = format_named(to)
    if not can_align(found):
        able = ", ".join(formats(can_align))
        raise ConfigError(f"alignments cannot be written as {to}: --to takes {able}")
    if arguments.confidence and not found.holds_confidence:
        able = " or --to ".join(formats(lambda one: can_align(one) and one.holds_confidence))
        raise ConfigError(f"{to} cannot hold confidences: use --to {able}")
    if arguments.tokens and found.write_table is None and to != "jsonl":  # which always has tokens
        able = " or --to ".join(formats(lambda one: one.write_table is not None))
        raise ConfigError(f"--tokens: {to} has no columns; use --to {able}")
    if arguments.name_model and to != "jsonl":
        raise ConfigError(f"--name-model: {to} has no place for it; use --to jsonl")
    if found.binary and output is None and sys.stdout.isatty():
        raise ConfigError(f"{to} is not for terminals: name a file with --output")
    return to


def _as_input(arguments: argparse.Namespace, first: str) -> str:
    """Return the format of the input if its records have named columns, else pharaoh."""
    from ..corpora import Source, by_suffix, format_named, guess

    name = arguments.from_
    if name is None and arguments.columns is not None:
        opened = Source(first)
        opened.close()
        name = guess(first, opened.head, columns=arguments.columns)
    elif name is None and first.lower().removesuffix(".gz").endswith(TABLES):
        name = by_suffix(first)[0]
    if name is None or format_named(name).read_columns is None:
        return "pharaoh"
    return name if arguments.columns is not None or format_named(name).write_table is not None else "pharaoh"


def _outcomes(
    work: Aligning, batches: Iterable[Batch | None], workers: int
) -> Generator[tuple[Batch, list[Outcome]], None, None]:
    if workers == 1:  # no other process, and nothing to import for them
        for some in batches:
            if some is not None:
                yield some, work(some)
        return
    from dataclasses import replace

    from ..util import parallel

    if work.device == "cpu":
        yield from parallel.ordered(work, batches, workers)
        return

    helper = replace(work, device="cpu")
    helper.model = work.model  # in this process; a worker loads its own
    # Drivers of such devices do not survive a fork.
    for batch, ready in parallel.ordered(helper.prepare, batches, workers, "spawn"):
        yield batch, work.finish(batch, ready)


def _size(largest: int, workers: int, fraction: Callable[[], float | None], given: int) -> int:
    """Return how many pairs the next batch takes after `given` ones; `fraction` of the input has been read.

    The first batch is small. So are the last ones if the end of the input is known: all workers end together.
    """
    if not given:
        return min(largest, FIRST_BATCH)
    read = fraction() if workers > 1 else None
    left = given * (1 - read) / read if read else largest * 2 * workers
    return min(largest, max(int(left / (2 * workers)), LAST_BATCHES))


def _batches(
    examples: Iterable[Example | None], size: Callable[[int], int], most_cells: float = float("inf")
) -> Iterator[Batch | None]:
    """Gather pairs into batches, smaller ones if pairs are long or slow to come; pass a pause (None) on.

    `size` gets the number of pairs so far. An error of the input is raised after the pairs before it.
    """
    batch: Batch = []
    given, room, cells, begun = 0, size(0), 0, time.monotonic()
    try:
        for example in examples:
            if example is not None:
                batch.append(example.pair)
                cells += len(example.pair.source) * len(example.pair.target)
            waited = time.monotonic() - begun > LONGEST_GATHERING
            full = len(batch) == room or cells >= most_cells
            if batch and (example is None or full or waited):
                given += len(batch)
                yield batch
                batch, room, cells = [], size(given), 0
            if example is None:
                yield None
            if not batch:
                begun = time.monotonic()
    except JacanaError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _noted(
    examples: Iterable[Example | None], source: Source | Inputs, kept: deque[Kept], signed: Mapping[str, Any]
) -> Iterator[Example | None]:
    """Pass the examples on, and append what is kept of each: a pair may turn out to be bad much later.

    `signed` is added to the other keys of each record.
    """
    for example in examples:
        if example is not None:
            kept.append(
                (source.name, source.line, {**(example.extra or {}), **signed} if signed else example.extra)
            )
        yield example


def _aligned(
    outcomes: Iterable[tuple[Batch, list[Outcome]]], kept: deque[Kept], bad: SkipBad | None, with_text: bool
) -> Iterator[Example]:
    """Yield each pair with its alignment; flush stdout after each batch, as a reader may wait for it.

    A pair that could not be aligned is an error with its line, which `bad` replaces by an empty pair.
    """
    from ..types import Alignment, Example

    for batch, found in outcomes:
        for pair, (retokenised, alignment) in zip(batch, found, strict=True):
            file, line, extra = kept.popleft()
            if not isinstance(alignment, PairError):
                if retokenised is not None and with_text:
                    retokenised = retokenised.with_text(pair.source.text, pair.target.text)
                yield Example(pair if retokenised is None else retokenised, alignment, extra)
                continue
            error = CorpusError(alignment.reason, file, line)
            if bad is None:
                raise error
            if (instead := bad(error)) is not None:
                empty = Alignment(len(instead.pair.source), len(instead.pair.target))
                yield Example(instead.pair, empty, extra)
        sys.stdout.flush()
