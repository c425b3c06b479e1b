"""Content words for unrelated.py and similarity.py: words with a letter or digit that are not on a stop list."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from jacana_torch.annotate.tokens import matching_form  # noqa: E402
from jacana_torch.types import Sentence  # noqa: E402

# Not a list of the package: what a model is measured on must not be what its features read.
STOP = frozenset(
    """a an the of in on at to for with by from as is are was were be been being and or not that which who whom
    whose it its this these those he she they them his her their i you we has have had do does did can could will
    would may might must should into than then there such""".split()
)


def content(sentence: Sentence) -> list[str | None]:
    """The tokens in lower case; None for those that are no content words."""
    words: list[str | None] = []
    for token in sentence.tokens:
        lower = matching_form(token).lower()
        words.append(lower if lower not in STOP and any(map(str.isalnum, lower)) else None)
    return words
