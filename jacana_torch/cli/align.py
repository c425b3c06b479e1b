"""`jacana-torch align`: pairs in, one alignment out for each, by several processes and a few batches at a time.

This process reads and writes; on a processor batches are aligned by workers, each the whole way. Other devices
have one process to themselves, this one, and the workers annotate for it. A bad line ends the run after everything
before it was written; with `skip_bad` it gives an empty alignment instead, so that line n of the output always
belongs to line n of the input.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from .. import corpora
from ..errors import ConfigError, JacanaError
from ..symmetrize import symmetrizer
from ..types import Alignment, Example, Sentence, SentencePair
from ..util import heap, parallel
from . import presentable
from .progress import Counter

if TYPE_CHECKING:
    from ..model.model import Model

WRITES = ("pharaoh", "talp", "jsonl", "jacana", "naacl")
HOLDS_CONFIDENCE = ("jsonl", "naacl")
NOTHING = SentencePair(Sentence(()), Sentence(()))
FIRST_BATCH = 32  # pairs; done before workers are started, so that there is an answer soon
LAST_BATCHES = 128  # pairs; smaller ones take longer for what they hold
USUAL_CELLS = 312  # of a pair, tokens by tokens; of longer ones a batch takes fewer, as memory goes by cells
LONGEST_GATHERING = 0.5  # seconds that a pair waits for others to come

Batch = list[SentencePair]
# An alignment, and the pair where it has other tokens than the one that was given.
Outcome = tuple[SentencePair | None, Alignment]


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
    batch_size: int = 1024,
    workers: int | None = None,
    skip_bad: bool = False,
    output: str | None = None,
) -> int:
    """Align a file or stdin into a file or stdout; returns the exit code."""
    to = _output_format(to, output, confidence)
    if symmetrize is not None:
        symmetrizer(symmetrize)  # a misspelt name is noticed before anything is loaded
    bad = corpora.SkipBad(instead=Example(NOTHING)) if skip_bad else None
    opened = corpora.Source(source)
    examples = corpora.read_live(opened, from_ or ("text" if source == "-" else None), on_bad=bad)
    work = Aligning(chosen_model(model), device, symmetrize, confidence, tokenise=not pretokenized)
    _ = work.model  # mistakes are told before anything is written, and what is loaded now is shared by workers
    if workers is None:
        workers = 1 if opened.may_stall else parallel.available()
    on_terminal = sys.stderr.isatty() and not (output is None and sys.stdout.isatty())
    sizes = _sizes(batch_size, workers, opened.fraction)
    outcomes = _outcomes(work, _batches(examples, sizes, batch_size * USUAL_CELLS), workers)
    with Counter(opened.fraction, on_terminal) as counter, closing(outcomes):
        corpora.write(_aligned(outcomes, counter), output or "-", to, links_only=True)
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


@dataclass
class Aligning:
    """All that is done to a batch. Pickles as its recipe: a process that did not inherit the model loads it."""

    name: str
    device: str = "cpu"
    symmetrize: str | None = None
    confidence: bool = False
    tokenise: bool = True

    @cached_property
    def model(self) -> Model:
        return _loaded(self.name, self.device)

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    def __call__(self, batch: Batch) -> list[Outcome]:
        return self.finish(batch, self.prepare(batch))

    def prepare(self, batch: Batch) -> Batch:
        """The batch as the aligner needs it: tokenised, annotated."""
        from ..annotate.tokenize import tokenized

        pairs = [tokenized(pair) if self.tokenise else _settled(pair) for pair in batch]
        # A side without words has no links, and nobody needs to know what nothing looks like.
        worded = [k for k, pair in enumerate(pairs) if _has_words(pair)]
        for k, pair in zip(worded, self.model.prepare([pairs[k] for k in worded]), strict=True):
            pairs[k] = pair
        return pairs

    def finish(self, batch: Batch, ready: Batch) -> list[Outcome]:
        worded = [pair for pair in ready if _has_words(pair)]
        found = iter(self.model.align(worded, self.symmetrize, self.confidence) if worded else ())
        return [
            (
                _retokenised(given, pair),
                next(found) if _has_words(pair) else Alignment(len(pair.source), len(pair.target)),
            )
            for given, pair in zip(batch, ready, strict=True)
        ]


def _outcomes(
    work: Aligning, batches: Iterable[Batch | None], workers: int
) -> Generator[tuple[Batch, list[Outcome]], None, None]:
    if work.device == "cpu":
        yield from parallel.ordered(work, batches, workers)
        return
    helper = replace(work, device="cpu")
    helper.model = work.model  # in this process; a worker loads one for itself
    # Drivers of such devices do not survive a fork.
    for batch, ready in parallel.ordered(helper.prepare, batches, workers, "spawn"):
        yield batch, work.finish(batch, ready)


def _has_words(pair: SentencePair) -> bool:
    return bool(pair.source.tokens and pair.target.tokens)


def _settled(pair: SentencePair) -> SentencePair:
    """The same tokens without the raw text, which aligners would tokenise."""
    source, target = (
        side if side.text is None else Sentence(side.tokens, side.layers) for side in (pair.source, pair.target)
    )
    return SentencePair(source, target, pair.id)


def _retokenised(given: SentencePair, pair: SentencePair) -> SentencePair | None:
    """What was given, with the tokens of `pair` where they are others; None where there are no others."""
    if given.source.tokens == pair.source.tokens and given.target.tokens == pair.target.tokens:
        return None
    source, target = (
        was if was.tokens == now.tokens else Sentence(now.tokens)
        for was, now in ((given.source, pair.source), (given.target, pair.target))
    )
    return SentencePair(source, target, given.id)


def chosen_model(model: str | None) -> str:
    """The model that was named, else the best that can run here."""
    if model is not None:
        return model
    from ..model import persist

    model = persist.best_available()
    sys.stderr.write(f"jacana-torch: using the model {model} (--model chooses another)\n")
    return model


def _loaded(model: str, device: str) -> Model:
    # Lattices are small: a second thread waits more than it works, and there is a worker for each processor.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    heap.keep_freed()
    gc.disable()  # nothing of all that comes now is garbage, and looking for some takes a tenth of the start
    try:
        from ..model import persist

        loaded = persist.load(model, device=device)
        if "torch" in sys.modules:  # most models do without
            sys.modules["torch"].set_num_threads(1)
    finally:
        gc.enable()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # sentences and links are many, and no cycles
    return loaded


def _sizes(largest: int, workers: int, fraction: Callable[[], float | None]) -> Callable[[int], int]:
    """How many pairs a batch takes after `given` ones: few at first, and where the end of the input is known also
    towards it, so that all workers end at the same time. `fraction` of the input has been read."""

    def size(given: int) -> int:
        if not given:
            return min(largest, FIRST_BATCH)
        read = fraction() if workers > 1 else None
        left = given * (1 - read) / read if read else largest * 2 * workers
        return min(largest, max(int(left / (2 * workers)), LAST_BATCHES))

    return size


def _batches(
    examples: Iterable[Example | None], size: Callable[[int], int], most_cells: float = float("inf")
) -> Iterator[Batch | None]:
    """Pairs by the batch, or fewer where they are long, or long in coming; None for a pause, and an error of the
    input, after what came before it. `size` of a batch depends on how many were given before."""
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


def _aligned(outcomes: Iterable[tuple[Batch, list[Outcome]]], counter: Counter) -> Iterator[Example]:
    """Every pair with its alignment. Stdout is flushed after each batch: whoever reads the pipe gets it now."""
    for batch, found in outcomes:
        for pair, (retokenised, alignment) in zip(batch, found, strict=True):
            yield Example(pair if retokenised is None else retokenised, alignment)
        sys.stdout.flush()
        counter.advance(len(batch))
