"""Load the model that a command names, and prepare the process and the pairs for it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ..annotate.tokens import tokenized
from ..errors import CorpusError, PairError
from ..model.model import align_each, where_words
from ..types import Alignment, Sentence, SentencePair
from . import note

if TYPE_CHECKING:
    from ..model.model import Model

Result = TypeVar("Result")
Batch = list[SentencePair]
# A pair that is annotated, or why it cannot be aligned.
Ready = SentencePair | PairError
# The pair, if its tokens differ from those of the pair that was given, and its alignment or why it has none.
Outcome = tuple[SentencePair | None, Alignment | PairError]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # their numbers in glibc's malloc.h
_KEPT = 128 << 20  # bytes that may stay free at the end of the heap
_LARGE = 32 << 20  # bytes of a block that goes back to the system at once


def chosen_model(model: str | None) -> str:
    """Return the model that was named, or else the best that can run here; say which, and what others lack."""
    if model is not None:
        return model
    from ..model import persist

    model, skipped = persist.best_and_skipped()
    note(f"using the model {model} (--model chooses another)")
    for needs in skipped:
        note(f"a better model is skipped: {needs}")
    return model


def chosen(model: str | None, style: str | None) -> Model | str:
    """Return the model that was named, or else the best that can run here: by name, if no style is asked for."""
    from ..model import persist

    name = chosen_model(model)
    return name if style is None else persist.load(name, style=style)


@dataclass
class Aligning:
    """Everything that is done to a batch. It pickles without the model: a spawned process loads its own."""

    name: str
    device: str = "cpu"
    symmetrize: str | None = None
    confidence: bool = False
    tokenise: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)  # other than the usual ones, by name
    style: str | None = None

    @cached_property
    def model(self) -> Model:
        # Chains are small: a second thread waits more than it works, and each CPU has a worker.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        keep_freed()
        gc.disable()  # loading makes no garbage, and to look for some takes a tenth of the start
        try:
            from ..model import persist

            loaded = persist.load(self.name, device=self.device, style=self.style)
            loaded.limits = replace(loaded.limits, **self.limits)
            if "torch" in sys.modules:  # most models do without
                sys.modules["torch"].set_num_threads(1)
        finally:
            gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)  # there are many sentences and links, and no cycles
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    def __call__(self, batch: Batch) -> list[Outcome]:
        return self.finish(batch, self.prepare(batch))

    def prepare(self, batch: Batch) -> list[Ready]:
        """Tokenise and annotate the pairs as the aligner needs them."""
        ready: list[Ready] = []
        for pair in map(tokenized if self.tokenise else SentencePair.without_text, batch):
            try:
                self.model.limits.check(pair)
                ready.append(pair)
            except PairError as error:
                ready.append(error)
        # A side without words has no links, and annotators need not know empty sentences.
        return where_words(self.model.prepare, ready)

    def finish(self, batch: Batch, ready: Sequence[Ready]) -> list[Outcome]:
        """Align prepared pairs."""
        outcomes: list[Outcome] = []
        found = align_each(self.model, ready, self.symmetrize, self.confidence)
        for given, pair, outcome in zip(batch, ready, found, strict=True):
            before, changed = (given.source.tokens, given.target.tokens), None
            if isinstance(pair, SentencePair) and (pair.source.tokens, pair.target.tokens) != before:
                changed = _retokenised(given, pair)
            outcomes.append((changed, outcome))
        return outcomes


def all_good(results: Sequence[Result | PairError], file: str) -> list[Result]:
    """Return the results; the first pair that has an error instead is an error."""
    good: list[Result] = []
    for number, result in enumerate(results, start=1):
        if isinstance(result, PairError):
            raise CorpusError(f"pair {number}: {result.reason}", file)
        good.append(result)
    return good


def has_words(pair: SentencePair) -> bool:
    return bool(pair.source.tokens and pair.target.tokens)


def _retokenised(given: SentencePair, pair: SentencePair) -> SentencePair:
    """Return the given pair with the tokens of `pair`, but without its annotation if the tokens are new."""
    source, target = (
        was if was.tokens == now.tokens else Sentence(now.tokens)
        for was, now in ((given.source, pair.source), (given.target, pair.target))
    )
    return SentencePair(source, target, given.id)


def keep_freed() -> bool:
    """Let this process keep memory that it freed; return whether it does.

    Each batch asks for the same memory again. glibc returns larger blocks to the system, which clears them for the
    next batch: 5% of the time of aligning. Other C libraries, and settings in the environment, are left alone.
    """
    for name in os.environ:
        if name.startswith(("MALLOC_", "GLIBC_TUNABLES")):
            return False
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 - the mallopt of other libraries means something else
        return bool(libc.mallopt(_TRIM_THRESHOLD, _KEPT) and libc.mallopt(_MMAP_THRESHOLD, _LARGE))
    except (AttributeError, OSError, TypeError):
        return False
