"""Phrases that WordNet knows: which of them share a synset with a word or phrase of the other sentence.

The runs of words of two sides in; which two of them mean the same out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Runs = Sequence[Sequence[str]]  # [D][T] the 1, 2, ... words from each token on, with spaces; "" beyond an end

_PARTS = "nvar"


class SharedSenses:
    """`source`, `target`: numbers [D, T] of both sides' runs, -1 where they are of no account."""

    def __init__(self, source: Runs, target: Runs) -> None:
        from ...resources import wordnet

        net = wordnet()
        texts = sorted({text for side in (source, target) for run in side for text in run if _is_wordy(text)})
        phrases = [text for text in texts if " " in text]
        forms = [text.replace(" ", "_") for text in phrases for _ in _PARTS]
        bases = net.morphy_all(forms, _PARTS * len(phrases))
        known = [
            text for text, *found in zip(phrases, *(bases[k::4] for k in range(4)), strict=True) if any(found)
        ]
        n_phrases = len(known)
        known += [text for text in texts if " " not in text] if known else []
        number = {text: k for k, text in enumerate(known)}
        self.source, self.target = (
            np.array([[number.get(text, -1) for text in run] for run in side], np.int64)
            for side in (source, target)
        )
        synsets = net.incidence([(text, None) for text in known])[0].astype(np.int32)
        pairs = (synsets[:n_phrases] @ synsets.T).tocoo()
        one, other = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
        self._n = len(known)
        self._codes = np.unique(np.concatenate([one * self._n + other, other * self._n + one]))

    def between(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Whether runs of these numbers share a synset, and one of them is a phrase."""
        source, target = np.broadcast_arrays(source, target)
        out = np.zeros(source.shape, dtype=bool)
        ask = np.nonzero((source >= 0) & (target >= 0))
        out[ask] = np.isin(source[ask] * self._n + target[ask], self._codes)
        return out


def _is_wordy(text: str) -> bool:
    return all(word[:1].isalnum() for word in text.split(" "))
