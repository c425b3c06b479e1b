"""The glosses of WordNet: definitions and example sentences, read from the data files when they are asked for.

Aligning never reads them. They are sentences of one style, and many share a beginning ("the act of ..."), so
that they make pairs that look alike and mean different things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from . import located
from .wordnet_files import FILES, lines

_QUOTED = re.compile('"([^"]+)"')


@dataclass(frozen=True)
class Gloss:
    """The definition of a synset, its words and the sentences that show their use."""

    words: tuple[str, ...]
    pos: str  # n, v, a, s or r
    definition: str
    examples: tuple[str, ...] = ()


def glosses() -> tuple[Gloss, ...]:
    """The glosses of all synsets, in the files' order."""
    return _read(located("wordnet"))


@lru_cache(maxsize=1)
def _read(path: Path) -> tuple[Gloss, ...]:
    found = []
    for suffix in FILES.values():
        for _, _, line in lines(path, f"data.{suffix}"):
            fields, _, gloss = line.partition(" | ")
            head = fields.split()
            count = int(head[3], 16)
            words = tuple(word.split("(", 1)[0].replace("_", " ") for word in head[4 : 4 + 2 * count : 2])
            quote = gloss.find('"')
            definition = (gloss if quote < 0 else gloss[:quote]).strip(" ;:\n")
            examples = tuple(map(str.strip, _QUOTED.findall(gloss)))
            if definition:
                found.append(Gloss(words, head[2], definition, examples))
    return tuple(found)
