"""First lines that name the columns of a file instead of holding a pair.

A header is recognised by two of its columns, which have names that corpora give to the two sentences of a pair.
`read(..., header=True)` takes any first line for one, `header=False` none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..errors import quote
from ._files import NAME_BLANKS, columns

log = logging.getLogger(__name__)

# Names of the source and the target. Case, blanks, hyphens, underscores and quotes do not matter.
_NAMES = (
    ("source", "target"), ("src", "tgt"), ("src", "trg"), ("sourcesentence", "targetsentence"),
    ("sourcetext", "targettext"), ("sentence1", "sentence2"), ("sentence0", "sentence1"),
    ("sentencea", "sentenceb"), ("sent1", "sent2"), ("senta", "sentb"), ("s1", "s2"), ("text1", "text2"),
    ("texta", "textb"), ("string1", "string2"), ("#1string", "#2string"), ("phrase1", "phrase2"),
    ("question1", "question2"), ("premise", "hypothesis"), ("text", "hypothesis"), ("original", "paraphrase"),
    ("original", "simplified"),
)  # fmt: skip
_IGNORED = str.maketrans("", "", " \t_-\"'")
_LONGEST = 30  # characters of a name
NAMED = "source\ttarget\n"  # written before a first line that would be taken for a header


def name_columns(found: Sequence[str]) -> tuple[int, int] | None:
    """Return which columns are the source and the target if these are names of columns."""
    places: dict[str, int] = {}
    for place, column in enumerate(found):
        if len(column) <= _LONGEST and column.count(" ") <= NAME_BLANKS:
            places.setdefault(column.translate(_IGNORED).casefold(), place)
    for source, target in _NAMES:
        if source in places and target in places:
            return places[source], places[target]
    return None


def recognised(found: Sequence[str], file: str) -> bool:
    """Whether these columns are a header; a ValueError if it names the target first."""
    places = name_columns(found)
    if places is None:
        return False
    if places[0] > places[1]:
        raise ValueError(
            f"the columns are named {quote(found[places[1]])} and {quote(found[places[0]])}, and the source "
            "should come first: exchange them, or read the columns as they are (header=True, --header)"
        )
    log.warning("%s:1: the line names the columns and is not read as a pair (--no-header reads it)", file)
    return True


def opens_with_names(text: str) -> bool:
    """Whether a reader would take the line that begins a file for a header."""
    return name_columns(columns(text.rstrip("\n"))) is not None


def body(lines: Sequence[str], header: bool | None) -> Sequence[str]:
    """Return the lines to guess the format from, without the header."""
    if lines and (header or (header is None and opens_with_names(lines[0]))):
        return lines[1:]
    return lines
