"""The papers' scores of a pair: one number from its alignment, higher if the sentences say the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..types import Alignment, SentencePair
from .content import content

Score = Callable[[SentencePair, Alignment], float]


def shares(pair: SentencePair, alignment: Alignment) -> tuple[float, float]:
    """The shares of the content words of source and target that are aligned; 0 of a side without any."""
    found = []
    linked = {i for i, _ in alignment.sure}, {j for _, j in alignment.sure}
    for sentence, places in zip((pair.source, pair.target), linked, strict=True):
        words = content(sentence)
        aligned = sum(words[k] is not None for k in places)
        found.append(aligned / max(1, len(words) - words.count(None)))
    return found[0], found[1]


def similarity(pair: SentencePair, alignment: Alignment) -> float:
    """Return the harmonic mean of both sides' shares of aligned content words (Sultan et al. 2014)."""
    source, target = shares(pair, alignment)
    return 2 * source * target / (source + target) if source + target else 0.0


def coverage(pair: SentencePair, alignment: Alignment) -> float:
    """Return the share of the target's content words that are aligned: a sign that the source entails it."""
    return shares(pair, alignment)[1]


def normalised(pair: SentencePair, alignment: Alignment) -> float:
    """The alignment's score per token (MacCartney et al. 2008; Yao et al. 2013).

    The scores of most aligners are divided by tokens already: those of the CRFs and the network by the source's,
    those of bag_of_words and stanford by the target's. `per_token` is for sums, as MANLI's. An aligner without
    scores gives the mean confidence of the target's tokens.
    """
    if alignment.score is None:
        best: dict[int, float] = {}
        for i, j in alignment.sure:
            best[j] = max(best.get(j, 0.0), alignment.confidence.get((i, j), 1.0))
        return sum(best.values()) / max(1, alignment.n_target)
    return alignment.score


def per_token(pair: SentencePair, alignment: Alignment) -> float:
    """The alignment's score, which is a sum over edits, divided by the number of tokens."""
    return normalised(pair, alignment) / max(1, alignment.n_source + alignment.n_target)


SCORES: Mapping[str, Score] = MappingProxyType(
    {"similarity": similarity, "coverage": coverage, "normalised": normalised, "per_token": per_token}
)
