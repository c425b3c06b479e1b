"""What all pictures of one alignment share: kinds of links, their looks, and checks.

A picture is made of the words of both sentences, the kind of each link (from `kinds`) and probabilities, which
make links darker. Kinds differ in dashes, signs or markers, not in colour alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import JacanaError

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..types import Alignment, Link, Sentence, SentencePair

    Side: TypeAlias = str | Sequence[str] | Sentence
    Words: TypeAlias = SentencePair | tuple[Side, Side]

# The values of `kinds`, which are also CSS classes of the page.
LINK, POSSIBLE, CORRECT, MISSED, SPURIOUS = "link", "aside", "hit", "miss", "invention"

COLOURS = {LINK: "#2f7dc4", CORRECT: "#2f7dc4", MISSED: "#c4560a", SPURIOUS: "#b23aa0", POSSIBLE: "#808892"}
NAMES = {CORRECT: "correct", MISSED: "missed", SPURIOUS: "spurious", POSSIBLE: "possible"}
SIGNS = {MISSED: "○", SPURIOUS: "✕", POSSIBLE: "◇"}
DASHES: dict[str, tuple[float, float]] = {MISSED: (7, 5), SPURIOUS: (0.1, 5), POSSIBLE: (2, 4)}  # on, off
FAINTEST = 0.25  # the opacity of a link with probability 0


def kinds(alignment: Alignment, gold: Alignment | None = None) -> dict[Link, str]:
    """The kind of each link, in reading order. Sure links count, as in `evaluate`.

    Without gold a link is a "link", or an "aside" if it is only possible. Against gold it is a "hit" (correct), a
    "miss", an "invention" (spurious), or an "aside" if it is only possible on either side.
    """
    if gold is None:
        return {link: LINK if link in alignment.sure else POSSIBLE for link in alignment.all_links}
    kind_of = {(True, True): CORRECT, (True, False): SPURIOUS, (False, True): MISSED, (False, False): POSSIBLE}
    every = alignment.sure | alignment.possible | gold.sure | gold.possible
    return {link: kind_of[link in alignment.sure, link in gold.sure] for link in sorted(every)}


def checked(
    alignment: Alignment, pair: Words | None, gold: Alignment | None
) -> tuple[Sequence[str], Sequence[str], dict[Link, str], Mapping[Link, float]]:
    """What to draw of an alignment: source words, target words, kinds of links and their probabilities.

    `pair` defaults to the pair that the alignment was made for. Sizes that do not agree are an error.
    """
    size = alignment.n_source, alignment.n_target
    pair = alignment.pair if pair is None else pair
    if pair is None:
        raise JacanaError("this alignment does not know its words: give the pair that it belongs to")
    sides = pair if isinstance(pair, tuple) else (pair.source, pair.target)
    source, target = map(_tokens, sides)
    if (len(source), len(target)) != size:
        raise JacanaError(
            f"this alignment is of {size[0]} x {size[1]} tokens, and the pair has {len(source)} x {len(target)}: "
            "give the tokens that were aligned"
        )
    if gold is not None and (gold.n_source, gold.n_target) != size:
        raise JacanaError(
            f"gold is of {gold.n_source} x {gold.n_target} tokens and this alignment of {size[0]} x {size[1]}: "
            "both must be of the same tokens, in the same direction"
        )
    return source, target, kinds(alignment, gold), alignment.confidence


def _tokens(side: Side) -> Sequence[str]:
    if isinstance(side, str):
        return side.split()
    return side if isinstance(side, Sequence) else side.tokens


def clean(token: str) -> str:
    """The token, with characters replaced that neither a terminal nor XML can show."""
    return "".join(c if c.isprintable() else "\ufffd" for c in token)


def columns(text: str) -> int:
    """The width in columns of a fixed-width font: 0 for combining marks, 2 for wide East Asian characters."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def opacity(probability: float) -> float:
    """The opacity of a link; even an improbable link is visible."""
    return FAINTEST + (1 - FAINTEST) * min(max(probability, 0.0), 1.0)


def stroke(kind: str) -> float:
    """The width of a line."""
    return 1.2 if kind == POSSIBLE else 2


def described(found: Sequence[str]) -> str:
    """What a picture with links of these kinds shows."""
    counts = ", ".join(f"{found.count(k)} {NAMES[k]}" for k in (CORRECT, MISSED, SPURIOUS) if k in found)
    return f"Two sentences and the links between their words{': ' if counts else ''}{counts}"
