"""jacana_torch: align the words of two English sentences.

>>> import jacana_torch as jt
>>> jt.load("core").align([("the cat sat", "a cat was sitting")])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import JacanaError
from .types import Alignment, Example, Sentence, SentencePair
from .version import __version__

if TYPE_CHECKING:
    from .model.persist import load, shipped

__all__ = ["Alignment", "Example", "JacanaError", "Sentence", "SentencePair", "__version__", "load", "shipped"]


def __getattr__(name: str) -> Any:  # so that `import jacana_torch` does not load NumPy
    if name in ("load", "shipped"):
        from .model import persist

        return persist.load if name == "load" else persist.shipped
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
