"""Load the model that a command names, and prepare the process and the pairs for it."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..annotate.tokens import tokenized
from ..types import Alignment, Sentence, SentencePair

if TYPE_CHECKING:
    from ..model.model import Model

Batch = list[SentencePair]
# The pair, if its tokens differ from those of the pair that was given, and its alignment.
Outcome = tuple[SentencePair | None, Alignment]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # their numbers in glibc's malloc.h
_KEPT = 128 << 20  # bytes that may stay free at the end of the heap
_LARGE = 32 << 20  # bytes of a block that goes back to the system at once


def chosen_model(model: str | None) -> str:
    """Return the model that was named, or else the best that can run here."""
    if model is not None:
        return model
    from ..model import persist

    model = persist.best_available()
    sys.stderr.write(f"jacana-torch: using the model {model} (--model chooses another)\n")
    return model


@dataclass
class Aligning:
    """Everything that is done to a batch. It pickles without the model: a spawned process loads its own."""

    name: str
    device: str = "cpu"
    symmetrize: str | None = None
    confidence: bool = False
    tokenise: bool = True

    @cached_property
    def model(self) -> Model:
        # Chains are small: a second thread waits more than it works, and each CPU has a worker.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        keep_freed()
        gc.disable()  # loading makes no garbage, and to look for some takes a tenth of the start
        try:
            from ..model import persist

            loaded = persist.load(self.name, device=self.device)
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

    def prepare(self, batch: Batch) -> Batch:
        """Tokenise and annotate the pairs as the aligner needs them."""
        pairs = list(map(tokenized if self.tokenise else SentencePair.without_text, batch))
        # A side without words has no links, and annotators need not know empty sentences.
        worded: list[SentencePair] = list(filter(has_words, pairs))
        ready = iter(self.model.prepare(worded))
        return [next(ready) if has_words(pair) else pair for pair in pairs]

    def finish(self, batch: Batch, ready: Batch) -> list[Outcome]:
        """Align prepared pairs."""
        worded = list(filter(has_words, ready))
        found = iter(self.model.align(worded, self.symmetrize, self.confidence) if worded else ())
        outcomes: list[Outcome] = []
        for given, pair in zip(batch, ready, strict=True):
            alignment = next(found) if has_words(pair) else Alignment(len(pair.source), len(pair.target))
            same = given.source.tokens == pair.source.tokens and given.target.tokens == pair.target.tokens
            outcomes.append((None if same else _retokenised(given, pair), alignment))
        return outcomes


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
