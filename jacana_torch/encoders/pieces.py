"""What an encoder reads: sentence pairs in, numbered word pieces out, and which word each piece is of.

A pair is read together (each word sees both sentences) or apart. What is longer than the encoder takes is read in
windows that cut both sentences at the same shares of their lengths; nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..annotate.normalise import matching_form
from ..errors import ConfigError
from ..types import SentencePair
from .checkpoint import Tokenizer

READINGS = ("together", "apart")
_MOST_CUTS = 4096  # a single word of more pieces than the encoder takes is all that needs so many


@dataclass(frozen=True)
class Window:
    """One run of the encoder: piece numbers [T], segments [T] where it has them, and each piece's word [T].

    Words are numbered over the pair, the target's after the source's; -1 is a piece of no word.
    """

    ids: np.ndarray
    segments: np.ndarray | None
    word: np.ndarray


def windows(pairs: Sequence[SentencePair], tokenizer: Tokenizer, reading: str = "together") -> list[list[Window]]:
    """What to read of each pair; each of its words is in one window."""
    if reading not in READINGS:
        raise ConfigError(f"reading={reading!r} is neither {' nor '.join(READINGS)}")
    return [list(_windows(pair, tokenizer, reading)) for pair in pairs]


def _windows(pair: SentencePair, tokenizer: Tokenizer, reading: str) -> Iterator[Window]:
    source, target = ([matching_form(token) for token in side.tokens] for side in (pair.source, pair.target))
    if reading == "together" and source and target:
        yield from _cut(source, target, 0, len(source), tokenizer)
        return
    for words, first in ((source, 0), (target, len(source))):
        if words:
            yield from _cut(words, [], first, 0, tokenizer)


def _cut(one: list[str], other: list[str], first: int, second: int, tokenizer: Tokenizer) -> Iterator[Window]:
    """As few windows as fit over the words of both sides, whose first words have the numbers `first`, `second`."""
    longest = max(len(one), len(other))
    for parts in range(1, min(longest, _MOST_CUTS) + 1):
        cuts = [(_part(one, k, parts), _part(other, k, parts)) for k in range(parts)]
        made = [_window(one, other, a, b, first, second, tokenizer) for a, b in cuts if a or b]
        if all(len(window.ids) <= tokenizer.longest for window in made):
            yield from made
            return
    yield from (_shortened(window, tokenizer.longest) for window in made)


def _part(words: list[str], k: int, parts: int) -> range:
    return range(len(words) * k // parts, len(words) * (k + 1) // parts)


def _window(
    one: list[str], other: list[str], a: range, b: range, first: int, second: int, tokenizer: Tokenizer
) -> Window:
    left, right = [one[i] for i in a], [other[j] for j in b]
    sides = [(left, first + a.start), (right, second + b.start)]
    told = [(words, start) for words, start in sides if words]
    read = tokenizer.split(*(words for words, _ in told), is_split_into_words=True, verbose=False)
    starts = np.array([start for _, start in told])
    word = np.array([-1 if w is None else w for w in read.word_ids()])
    side = np.array([0 if s is None else s for s in read.sequence_ids()])
    segments = read.get("token_type_ids")
    return Window(
        np.array(read["input_ids"]),
        None if segments is None else np.array(segments),
        np.where(word < 0, -1, word + starts[side]),
    )


def _shortened(window: Window, longest: int) -> Window:
    """Of a single word that is longer than what the encoder takes, its beginning: no word is that long."""
    segments = None if window.segments is None else window.segments[:longest]
    return Window(window.ids[:longest], segments, window.word[:longest])
