"""WordNet's morphology for many words at once: inflected forms in, the base forms that WordNet has out, as NLTK's.

A form's analyses are itself, then what the list of exceptions or else the suffix rules make of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .store import Arrays
from .strings import StringTable

POS = "nvar"

# As NLTK's WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS.
_SUFFIXES = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip
# part of speech -> last letter -> its rules, so that most words are done with after one look
_RULES = {
    pos: {last: [rule for rule in rules if rule[0][-1] == last] for last in {old[-1] for old, _ in rules}}
    for pos, rules in _SUFFIXES.items()
}


def plain(pos: str) -> str:
    """Satellite adjectives are looked up as adjectives."""
    return "a" if pos == "s" else pos


class Morphology:
    """Forms are numbered as WordNet's arrays number them; nothing is read before the first word is asked for."""

    def __init__(self, arrays: Arrays) -> None:
        self._forms = StringTable(arrays, "forms")
        self._starts = arrays["senses.starts"]  # [len(POS), forms + 1], where each form's senses begin
        self._exceptions = arrays.meta["exceptions"]

    def __len__(self) -> int:
        return len(self._forms)

    def analyses(self, form: str, pos: str) -> list[str]:
        """What the form may come from, whether or not WordNet has it."""
        pos = plain(pos)
        bases = self._exceptions[pos].get(form)
        if bases is None:
            rules = _RULES[pos].get(form[-1:])
            if rules is None:
                return [form]
            bases = [form[: -len(old)] + new for old, new in rules if form.endswith(old)]
        return list(dict.fromkeys([form, *bases]))

    def rows(self, forms: Sequence[str], pos: Sequence[str]) -> np.ndarray:
        """The row of each form, -1 where it is no word of its part of speech."""
        rows = self._forms.lookup(forms)
        column = np.array([POS.index(plain(each)) for each in pos], dtype=np.int64)
        has_senses = self._starts[column, rows + 1] > self._starts[column, np.maximum(rows, 0)]
        return np.where(has_senses & (rows >= 0), rows, -1)

    def bases(self, forms: Sequence[str], pos: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
        """All base forms, those of the first form first, with their rows and the number of the form of each."""
        analyses = [self.analyses(form, each) for form, each in zip(forms, pos, strict=True)]
        counts = [len(found) for found in analyses]
        asked = np.repeat(np.arange(len(forms)), counts)
        candidates = [candidate for found in analyses for candidate in found]
        rows = self.rows(candidates, [each for each, count in zip(pos, counts, strict=True) for _ in range(count)])
        known = np.flatnonzero(rows >= 0)
        return [candidates[k] for k in known.tolist()], rows[known], asked[known]

    def first_bases(self, forms: Sequence[str], pos: Sequence[str]) -> list[str | None]:
        """The first base form of each form, None where WordNet has none."""
        first: list[str | None] = [None] * len(forms)
        names, _, asked = self.bases(forms, pos)
        for name, k in zip(reversed(names), reversed(asked.tolist()), strict=True):
            first[k] = name
        return first
