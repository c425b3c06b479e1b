"""Split sentence pairs into the word pieces that an encoder reads, and record the word of each piece.

A pair is read together (each word sees both sentences) or apart. Pairs that are too long for the encoder are cut
into windows, both sentences at the same fractions of their lengths, so that every word is in a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..annotate.tokens import matching_form
from ..errors import ConfigError
from ..types import SentencePair
from .checkpoint import Tokenizer

READINGS = ("together", "apart")
_MOST_CUTS = 4096  # only a single word that is too long for the encoder needs so many


@dataclass(frozen=True)
class Window:
    """One input of the encoder, of T pieces. Words are numbered over the pair, the target's after the source's."""

    ids: np.ndarray  # [T]
    segments: np.ndarray | None  # [T], for encoders that have segments
    word: np.ndarray  # [T] the word of each piece, -1 for pieces of no word


def windows(pairs: Sequence[SentencePair], tokenizer: Tokenizer, reading: str = "together") -> list[list[Window]]:
    """The windows of each pair. Every word is in exactly one."""
    if reading not in READINGS:
        raise ConfigError(f"reading={reading!r} must be {' or '.join(READINGS)}")
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
    """The fewest windows that fit. `first` and `second` are the numbers of the first word of either side."""
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
    read = tokenizer.split(*(words for words, _ in sides if words), is_split_into_words=True, verbose=False)
    starts = np.array([start for words, start in sides if words])
    word = np.array([-1 if w is None else w for w in read.word_ids()])
    side = np.array([0 if s is None else s for s in read.sequence_ids()])
    segments = read.get("token_type_ids")
    return Window(
        np.array(read["input_ids"]),
        None if segments is None else np.array(segments),
        np.where(word < 0, -1, word + starts[side]),
    )


def _shortened(window: Window, longest: int) -> Window:
    """The beginning of a window over a single word that is too long for the encoder."""
    segments = None if window.segments is None else window.segments[:longest]
    return Window(window.ids[:longest], segments, window.word[:longest])
