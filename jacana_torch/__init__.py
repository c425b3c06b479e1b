"""jacana_torch: align the words of two English sentences.

>>> import jacana_torch as jt
>>> jt.load("core").align([("the cat sat", "a cat was sitting")])  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import JacanaError
from .types import Alignment, Example, Sentence, SentencePair
from .version import __version__

if TYPE_CHECKING:
    from .differences import corpus_coverage, coverage, diff, pair_sentences
    from .model.model import Model
    from .model.persist import load, shipped
    from .train.api import train

__all__ = [
    "Alignment", "Example", "JacanaError", "Model", "Sentence", "SentencePair", "__version__",
    "corpus_coverage", "coverage", "diff", "load", "pair_sentences", "shipped", "train",
]  # fmt: skip


_OF_DIFFERENCES = ("corpus_coverage", "coverage", "diff", "pair_sentences")


def __getattr__(name: str) -> Any:  # so that `import jacana_torch` does not load NumPy
    if name == "Model":
        from .model.model import Model

        return Model
    if name == "train":  # a package that can be called
        return importlib.import_module(".train", __name__)
    if name in _OF_DIFFERENCES:
        return getattr(importlib.import_module(".differences", __name__), name)
    if name in ("load", "shipped"):
        from .model import persist

        return persist.load if name == "load" else persist.shipped
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
