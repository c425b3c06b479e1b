"""`jacana-torch align`: align pairs in batches, in several processes, and write one alignment for each.

This process reads and writes. On a CPU, workers align the batches; another device has this process to itself, and
the workers annotate for it. A bad line, or a pair that cannot be aligned, ends the run after everything before it
was written; with --skip-bad it gives an empty alignment, so that line n of the output always belongs to line n of
the input.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, CorpusError, JacanaError, PairError
from . import HEADER, at_least_one, presentable

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..corpora import SkipBad, Source
    from ..types import Example
    from .loading import Aligning, Batch, Outcome

    Kept = tuple[int | None, Mapping[str, Any] | None]  # the line and the other keys of a pair

ABOUT = "Align sentence pairs."
EXAMPLES = """
examples:
  jacana-torch align pairs.txt > links.txt           source TAB target in, 0-0 1-2 ... out
  jacana-torch align --to jsonl --confidence < pairs.txt
  jacana-torch align gold.jsonl --to talp --symmetrize grow-diag-final-and --output out.talp
  jacana-torch align big.txt.gz --workers 4 --output big.links
  tail -f pairs.txt | jacana-torch align             answers as soon as the input pauses

Raw text (source TAB target, or source ||| target) is tokenised first: links count those tokens, which
--to jsonl shows. With --pretokenized, tokens are separated by spaces. Other formats bring their own tokens.
Output has one line per input line; with --skip-bad, a bad line gives an empty alignment. A line is also bad
if its pair is beyond one of the limits (--max-...), which keep time and memory within bounds."""

ALIGNED_BY = "aligned_by"  # the key of JSONL records that names the model
FIRST_BATCH = 32  # pairs; aligned before workers start, so that there is an answer soon
LAST_BATCHES = 128  # pairs; smaller batches cost more per pair
USUAL_CELLS = (
    312  # source times target tokens of a pair; a batch of longer pairs has fewer, as memory goes by cells
)
LONGEST_GATHERING = 0.5  # seconds that a pair waits for others
# What `model.Limits` limits, and the usual limits, as importing those would take --help too long.
LIMITS = {
    "letters": "letters of a token (1,000)",
    "tokens": "tokens of a sentence (3,000)",
    "cells": "cells of a pair, source times target tokens (4,000,000)",
}
SHOWN_AFTER, REDRAWN_AFTER = 1.0, 0.1  # seconds; a single pair at a prompt should give its links alone


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", nargs="?", default="-", metavar="FILE", help="a file, or - for stdin (stdin)")
    parser.add_argument("--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory")
    parser.add_argument("--from", dest="from_", metavar="F", help="input format: {read} (guessed; text on stdin)")
    parser.add_argument("--to", metavar="F", help="output format: {aligned} (pharaoh)")
    parser.add_argument("--pretokenized", action="store_true", help="tokens of raw text are separated by spaces")
    parser.add_argument(
        "--symmetrize",
        metavar="S",
        help="how to combine the two directions: {symmetrizers} (as the model was trained)",
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
    parser.add_argument("--output", metavar="FILE", help="a file, written completely or not at all (stdout)")


def run(arguments: argparse.Namespace) -> int:
    from ..corpora import SkipBad, Source, read_live, write
    from ..symmetrize import symmetrizer
    from ..types import Example, Sentence, SentencePair
    from .loading import Aligning, chosen_model

    source, output, workers = arguments.input, arguments.output, arguments.workers
    to = _output_format(arguments.to, output, arguments.confidence)
    if arguments.name_model and to != "jsonl":
        raise ConfigError(f"--name-model: {to} has no place for it; use --to jsonl")
    if arguments.symmetrize is not None:
        symmetrizer(arguments.symmetrize)  # report a misspelt name before anything is loaded
    empty = Example(SentencePair(Sentence(()), Sentence(())))
    bad = SkipBad(instead=empty) if arguments.skip_bad else None
    unwritable = None if bad is None else _emptied(bad)
    opened = Source(source, arguments.header)
    examples = read_live(opened, arguments.from_ or ("text" if source == "-" else None), on_bad=bad)
    work = Aligning(
        chosen_model(arguments.model),
        arguments.device,
        arguments.symmetrize,
        arguments.confidence,
        tokenise=not arguments.pretokenized,
        limits=_limits(arguments),
    )
    _ = work.model  # report mistakes before anything is written, and share the model with forked workers
    if workers is None:
        from ..util import parallel

        workers = 1 if opened.may_stall else parallel.available()
    size = partial(_size, arguments.batch_size, workers, opened.fraction)
    kept: deque[Kept] = deque()
    signed = {ALIGNED_BY: work.name} if arguments.name_model else {}
    batches = _batches(_noted(examples, opened, kept, signed), size, arguments.batch_size * USUAL_CELLS)
    outcomes = _outcomes(work, batches, workers)
    if sys.stderr.isatty() and not (output is None and sys.stdout.isatty()):
        outcomes = _with_progress(outcomes, opened.fraction)
    with closing(outcomes):
        aligned = _aligned(outcomes, opened.name, kept, bad)
        write(aligned, output or "-", to, links_only=True, on_bad=unwritable)
    if bad is not None and bad.count:
        sys.stderr.write(f"jacana-torch: {presentable(bad.report())}\nEach got an empty alignment.\n")
    return 0


def _limits(arguments: argparse.Namespace) -> dict[str, int]:
    given = {}
    for name in LIMITS:
        if (value := vars(arguments)[f"max_{name}"]) is not None:
            given[name] = value
    return given


def _emptied(bad: SkipBad) -> Callable[[CorpusError], Example]:
    """Return what counts a pair that cannot be written, and writes an empty alignment instead."""
    from ..types import Alignment, Example, Sentence, SentencePair

    nothing = Sentence(())
    empty = Example(SentencePair(nothing, nothing), Alignment(0, 0))

    def instead(error: CorpusError) -> Example:
        bad(error)
        return empty

    return instead


def _output_format(to: str | None, output: str | None, confidence: bool) -> str:
    from ..corpora import can_align, format_for_writing, format_named, formats

    if to is None and output is not None:
        try:
            to = format_for_writing(output)
            to = to if can_align(format_named(to)) else None
        except CorpusError:  # the name does not say
            to = None
    to = to or "pharaoh"
    found = format_named(to)
    if not can_align(found):
        able = ", ".join(formats(can_align))
        raise ConfigError(f"alignments cannot be written as {to}: --to takes {able}")
    if confidence and not found.holds_confidence:
        able = " or --to ".join(formats(lambda one: can_align(one) and one.holds_confidence))
        raise ConfigError(f"{to} cannot hold confidences: use --to {able}")
    return to


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
    examples: Iterable[Example | None], source: Source, kept: deque[Kept], signed: Mapping[str, Any]
) -> Iterator[Example | None]:
    """Pass the examples on, and append what is kept of each: a pair may turn out to be bad much later.

    `signed` is added to the other keys of each record.
    """
    for example in examples:
        if example is not None:
            kept.append((source.line, {**(example.extra or {}), **signed} if signed else example.extra))
        yield example


def _aligned(
    outcomes: Iterable[tuple[Batch, list[Outcome]]], file: str, kept: deque[Kept], bad: SkipBad | None
) -> Iterator[Example]:
    """Yield each pair with its alignment; flush stdout after each batch, as a reader may wait for it.

    A pair that could not be aligned is an error with its line, which `bad` replaces by an empty pair.
    """
    from ..types import Alignment, Example

    for batch, found in outcomes:
        for pair, (retokenised, alignment) in zip(batch, found, strict=True):
            line, extra = kept.popleft()
            if not isinstance(alignment, PairError):
                yield Example(pair if retokenised is None else retokenised, alignment, extra)
                continue
            error = CorpusError(alignment.reason, file, line)
            if bad is None:
                raise error
            if (instead := bad(error)) is not None:
                empty = Alignment(len(instead.pair.source), len(instead.pair.target))
                yield Example(instead.pair, empty, extra)
        sys.stdout.flush()


def _with_progress(
    outcomes: Generator[tuple[Batch, list[Outcome]], None, None], fraction: Callable[[], float | None]
) -> Generator[tuple[Batch, list[Outcome]], None, None]:
    """Draw on stderr how many pairs are done, and how much of the input if that is known.

    It draws between batches: a thread that draws would prevent forking.
    """
    progress: Progress | None = None
    done, begun = 0, time.monotonic()
    drawn = begun
    with closing(outcomes):
        try:
            for batch, found in outcomes:
                yield batch, found
                done += len(batch)
                now = time.monotonic()
                if now - drawn < (REDRAWN_AFTER if progress else SHOWN_AFTER):
                    continue
                if progress is None:
                    progress = _progress(fraction() is not None)
                    progress.start()
                rate = done / (now - begun)
                progress.update(progress.task_ids[0], completed=fraction() or 0.0, pairs=done, rate=rate)
                progress.refresh()
                drawn = now
        finally:
            if progress is not None:
                progress.stop()


def _progress(known: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    figures = TextColumn("{task.fields[pairs]:,} pairs, {task.fields[rate]:,.0f}/s")
    columns = (BarColumn(), TaskProgressColumn(), figures) if known else (figures,)
    console = Console(file=sys.stderr)
    progress = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, auto_refresh=False)
    progress.add_task("align", total=1.0, pairs=0, rate=0.0)
    return progress
