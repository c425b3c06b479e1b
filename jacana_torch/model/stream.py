"""Align a stream of pairs: a generator in, a generator out, in order, in this process or in several.

This process takes pairs from the input, a batch at a time, and never more than the batches under way. Workers
tokenise, annotate and align them. A pair that cannot be aligned costs itself alone: the others of its batch are
aligned.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from ..errors import ConfigError, PairError, PairTypeError
from ..types import Alignment, Sentence, SentencePair
from ..util import parallel
from .model import Pair, _explain, align_each, as_pair, described, where_words

if TYPE_CHECKING:
    from .model import Model

Result = TypeVar("Result")
OnError = Literal["raise", "yield"]
Given = SentencePair | tuple[str, str] | PairError
# The pair with its tokens, if the given one had none, and its alignment or why it has none.
Found = tuple[SentencePair | None, Alignment | PairError]

USUAL_CELLS = 312  # of a pair; a batch of longer pairs has fewer, as memory goes by cells
_LETTERS = 36  # of a pair of strings for each token: to guess its cells before it is tokenised


def align_stream(
    model: Model,
    pairs: Iterable[Pair],
    batch_size: int,
    workers: int | None,
    symmetrize: str | None,
    confidence: bool,
    on_error: OnError,
) -> Generator[Alignment | PairError, None, None]:
    """Check the settings of `Model.align_stream`, and return its generator."""
    workers = parallel.available() if workers is None else workers
    for name, value in (("batch_size", batch_size), ("workers", workers)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name}={value!r}: give a whole number above 0")
    if on_error not in ("raise", "yield"):
        raise ConfigError(f"on_error={on_error!r}: choose raise or yield")
    if isinstance(pairs, (str, bytes, Mapping, SentencePair)) or not isinstance(pairs, Iterable):
        raise PairTypeError(f"pairs is {described(pairs)}, not an iterable of pairs, as in [(source, target)]")
    model._check_symmetrizer(symmetrize)
    return _stream(model, pairs, batch_size, workers, symmetrize, confidence, on_error)


def _stream(
    model: Model,
    pairs: Iterable[Pair],
    batch_size: int,
    workers: int,
    symmetrize: str | None,
    confidence: bool,
    on_error: OnError,
) -> Generator[Alignment | PairError, None, None]:
    work = AlignsBatch(model, symmetrize, confidence)
    explain = partial(_explain, model, symmetrize)
    number = 0
    with closing(_each_batch(work, batches(pairs, batch_size), workers)) as done:
        for batch, outcomes in done:
            for given, (tokenised, found) in zip(batch, outcomes, strict=True):
                number += 1
                if isinstance(found, Alignment):
                    pair = given
                    if tokenised is not None:  # the raw texts did not travel back
                        pair = tokenised.with_text(*given) if isinstance(given, tuple) else tokenised
                    assert isinstance(pair, SentencePair)
                    yield found.of(pair, explain)
                    continue
                error = type(found)(found.reason, number)
                if on_error == "raise":
                    raise error
                yield error


def _each_batch(
    work: AlignsBatch, tasks: Iterator[list[Given]], workers: int
) -> Generator[tuple[list[Given], list[Found]], None, None]:
    if workers == 1:
        for task in tasks:
            yield task, work(task)
        return
    yield from parallel.ordered(work, tasks, workers, _method())


def _method() -> str:
    """Return how to start workers: PyTorch's threads, and drivers of other devices, do not survive a fork."""
    torch = sys.modules.get("torch")
    if torch is not None and (torch.get_num_threads() > 1 or torch.cuda.is_initialized()):
        return "spawn"
    return parallel.usual_method()


def batches(pairs: Iterable[Pair], size: int) -> Iterator[list[Given]]:
    """Gather pairs into batches, smaller ones if pairs are long. An error of the input comes last."""
    batch: list[Given] = []
    cells = 0
    try:
        for pair in pairs:
            given = _given(pair)
            cells += _cells(given)
            batch.append(given)
            if len(batch) == size or cells >= size * USUAL_CELLS:
                yield batch
                batch, cells = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _given(pair: Pair) -> Given:
    """Return what travels to a worker: two strings as they are, anything else as a pair, or what is wrong."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        source, target = pair
        if isinstance(source, str) and isinstance(target, str):
            return str(source), str(target)
    try:
        return as_pair(pair)
    except PairError as error:
        return error


def _cells(given: Given) -> int:
    if isinstance(given, SentencePair):
        return len(given.source) * len(given.target)
    if isinstance(given, PairError):
        return 0
    return len(given[0]) * len(given[1]) // _LETTERS


@dataclass
class AlignsBatch:
    """What a worker does to a batch."""

    model: Model
    symmetrize: str | None = None
    confidence: bool = True

    def __call__(self, batch: Sequence[Given]) -> list[Found]:
        if multiprocessing.parent_process() is not None and "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # each CPU has a worker
        ready = prepare_each(self.model, batch)
        outcomes: list[Found] = []
        found = align_each(self.model, ready, self.symmetrize, self.confidence)
        for given, pair, outcome in zip(batch, ready, found, strict=True):
            if isinstance(pair, PairError) or isinstance(given, SentencePair):
                outcomes.append((None, outcome))
            else:
                outcomes.append((_tokens(pair), outcome))
        return outcomes


def _tokens(pair: SentencePair) -> SentencePair:
    return SentencePair(Sentence(pair.source.tokens), Sentence(pair.target.tokens), pair.id)


# Errors of single pairs


def prepare_each(model: Model, batch: Sequence[Given]) -> list[SentencePair | PairError]:
    """Tokenise, check and annotate pairs as `Model.prepare` does; an error takes the place of a bad pair."""
    ready: list[SentencePair | PairError] = []
    for given in batch:
        try:
            if isinstance(given, PairError):
                raise given
            pair = as_pair(given)
            model.limits.check(pair)
            ready.append(pair)
        except PairError as error:
            ready.append(error)
    return where_words(model.prepare, ready)
