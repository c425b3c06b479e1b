"""`jacana-torch align`: pairs in, one alignment out for each, a batch at a time and never more in memory.

A bad line ends the run after everything before it has been written; with `skip_bad` it gives an empty alignment
instead, so that line n of the output always belongs to line n of the input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import corpora
from .cli import presentable
from .errors import ConfigError, JacanaError
from .symmetrize import symmetrizer
from .types import Alignment, Example, Sentence, SentencePair

if TYPE_CHECKING:
    from rich.progress import Progress

WRITES = ("pharaoh", "talp", "jsonl", "jacana", "naacl")
HOLDS_CONFIDENCE = ("jsonl", "naacl")
NOTHING = SentencePair(Sentence(()), Sentence(()))


def align(
    source: str = "-",
    *,
    model: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    pretokenized: bool = False,
    symmetrize: str | None = None,
    confidence: bool = False,
    device: str = "cpu",
    batch_size: int = 256,
    skip_bad: bool = False,
    output: str | None = None,
) -> int:
    """Align a file or stdin into a file or stdout; returns the exit code."""
    to = _output_format(to, output, confidence)
    if symmetrize is not None:
        symmetrizer(symmetrize)  # a misspelt name is noticed before anything is loaded
    bad = corpora.SkipBad(instead=Example(NOTHING)) if skip_bad else None
    examples = _pairs(source, from_, pretokenized, bad)
    aligner = _load(model, device)

    def predict(pairs: list[SentencePair]) -> list[Alignment]:
        return aligner.align(pairs, symmetrize=symmetrize)

    with _Counter() as counter:
        aligned = _aligned(examples, predict, batch_size, counter, keep_confidence=confidence)
        corpora.write(_flushing(aligned, batch_size), output or "-", to, links_only=True)
    if bad is not None and bad.count:
        sys.stderr.write(f"jacana-torch: {presentable(bad.report())}\nEach was given an empty alignment.\n")
    return 0


def _output_format(to: str | None, output: str | None, confidence: bool) -> str:
    if to is None and output is not None and output.rsplit(".", 1)[-1] in WRITES:
        to = output.rsplit(".", 1)[-1]
    to = to or "pharaoh"
    if to not in WRITES:
        raise ConfigError(f"alignments cannot be written as {to!r}: --to takes {', '.join(WRITES)}")
    if confidence and to not in HOLDS_CONFIDENCE:
        raise ConfigError(f"{to} has no place for confidences: use --to {' or --to '.join(HOLDS_CONFIDENCE)}")
    return to


def _pairs(
    source: str, from_: str | None, pretokenized: bool, bad: corpora.SkipBad | None
) -> Iterator[SentencePair]:
    """The pairs of a file, without their gold; raw text is tokenised unless it already is."""
    examples = corpora.read(source, from_ or ("text" if source == "-" else None), on_bad=bad)
    if pretokenized:
        return (_split(example.pair) for example in examples)
    from .annotate.tokenize import tokenized

    return (tokenized(example.pair) for example in examples)


def _split(pair: SentencePair) -> SentencePair:
    """The same tokens without the raw text, which aligners would tokenise."""
    if pair.source.text is None and pair.target.text is None:
        return pair
    return replace(pair, source=replace(pair.source, text=None), target=replace(pair.target, text=None))


def _load(model: str | None, device: str) -> Any:
    import torch

    import jacana_torch

    from . import persist

    torch.set_num_threads(1)  # lattices are small: a second thread waits more than it works

    if model is None:
        model = persist.best_available()
        sys.stderr.write(f"jacana-torch: using the model {model} (--model chooses another)\n")
    return jacana_torch.load(model, device=device)


def _aligned(
    pairs: Iterable[SentencePair],
    predict: Callable[[list[SentencePair]], list[Alignment]],
    batch_size: int,
    counter: _Counter,
    keep_confidence: bool,
) -> Iterator[Example]:
    """Every pair with its alignment, in order; an error of the input is raised after what came before it."""
    for batch in _batches(pairs, batch_size):
        # A side without words has no links, and no aligner needs to know what nothing looks like.
        worded = [pair for pair in batch if len(pair.source) and len(pair.target)]
        found = iter(predict(worded) if worded else [])
        for pair in batch:
            empty = not (len(pair.source) and len(pair.target))
            links = Alignment(len(pair.source), len(pair.target)) if empty else next(found)
            yield Example(pair, links if keep_confidence else replace(links, confidence={}, score=None))
        counter.advance(len(batch))


def _batches(pairs: Iterable[SentencePair], size: int) -> Iterator[list[SentencePair]]:
    pairs = iter(pairs)
    failure: JacanaError | None = None
    while failure is None:
        batch: list[SentencePair] = []
        try:
            for pair in islice(pairs, size):
                batch.append(pair)
        except JacanaError as error:
            failure = error
        if batch:
            yield batch
        elif failure is None:
            return
    raise failure


def _flushing(examples: Iterator[Example], every: int) -> Iterator[Example]:
    """Flush stdout after each batch, so that whoever reads the pipe gets it now."""
    for number, example in enumerate(examples, start=1):
        yield example
        if number % every == 0:
            sys.stdout.flush()


class _Counter:
    """Pairs done so far, on stderr, where that is a terminal."""

    def __enter__(self) -> _Counter:
        self.progress: Progress | None = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} pairs"), TimeElapsedColumn())
            self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.progress.add_task("align", total=None)
            self.progress.start()
        return self

    def advance(self, number: int) -> None:
        if self.progress is not None:
            self.progress.advance(self.task, number)

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.stop()
